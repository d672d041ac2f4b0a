import { useId, useState } from "react";
import { ApiError, postJson } from "../lib/api";
import { plural } from "../lib/format";
import type { Connector, ConnectorPreview, Named } from "../lib/types";
import { Copy, Panel, Problem } from "./basics";
import { DatasetLink } from "./lists";

const ROUTE = "/api/v2/connectors/preview";
const SHOWN = 12;

/** The addresses of the Kafka clusters that connectors read and write. */
export function bootstraps(connectors: Connector[]): string[] {
  const names = connectors.flatMap((one) => [...one.inputs, ...one.outputs]);
  const found = names
    .map((one) => one.namespace)
    .filter((namespace) => namespace.startsWith("kafka://"))
    .map((namespace) => namespace.slice("kafka://".length));
  return [...new Set(found)];
}

/** What is known of the columns of an edge, in words. */
export function columnsOf(pairs: [string, string][] | null): string {
  if (pairs === null) return "columns unknown";
  const shown = pairs.slice(0, SHOWN).map(([from, to]) => (from === to ? from : `${from} → ${to}`));
  const more = pairs.length > SHOWN ? ` and ${pairs.length - SHOWN} more` : "";
  return pairs.length > 0
    ? `${plural(pairs.length, "column")}: ${shown.join(", ")}${more}`
    : "no columns";
}

/** A file for a configuration, ending as `headwater connect apply` tells JSON from properties. */
export function fileFor(name: string, config: string): string {
  return `${name}.${/^\s*[{[]/.test(config) ? "json" : "properties"}`;
}

function Names({ names, empty }: { names: Named[]; empty: string }) {
  if (names.length === 0) return <span className="muted">{empty}</span>;
  return (
    <>
      {names.map((one) => (
        <span key={`${one.namespace} ${one.name}`} className="preview-name">
          <DatasetLink dataset={one} full />
        </span>
      ))}
    </>
  );
}

export function Previewed({
  found,
  file,
  line,
}: {
  found: ConnectorPreview;
  file: string;
  line: string;
}) {
  return (
    <div className="preview-found" role="status">
      <p>
        <b>{found.name}</b>{" "}
        <span className="muted">
          {found.family}
          {found.type ? `, ${found.type}` : ""}: not deployed, nothing was sent to Connect
        </span>
      </p>
      <dl className="preview-sides">
        <dt>reads</dt>
        <dd>
          <Names names={found.inputs} empty="nothing that is known" />
        </dd>
        <dt>writes</dt>
        <dd>
          <Names names={found.outputs} empty="nothing that is known" />
        </dd>
      </dl>
      {found.edges.length > 0 ? (
        <ul className="preview-edges" aria-label="Edges">
          {found.edges.map((edge) => (
            <li key={`${edge.input.name} ${edge.output.namespace} ${edge.output.name}`}>
              <b>{edge.input.name}</b> → <b>{edge.output.name}</b>, {columnsOf(edge.columns)}
              <p className="row-sub wrap">{edge.evidence.join(" · ")}</p>
            </li>
          ))}
        </ul>
      ) : null}
      {found.problems.length > 0 ? (
        <ul className="connector-problems">
          {found.problems.map((problem) => (
            <li key={problem} className="wrap">
              {problem}
            </li>
          ))}
        </ul>
      ) : null}
      <div className="command">
        <span className="muted">Save it as {file}, then</span>
        <code className="command-line">{line}</code>
        <Copy text={line} />
      </div>
    </div>
  );
}

/** A configuration that somebody pastes, and the lineage it would have. */
export function PreviewPanel({
  connectors,
  line,
}: {
  connectors: Connector[];
  line: (file: string) => string;
}) {
  const id = useId();
  const known = bootstraps(connectors);
  const [config, setConfig] = useState("");
  const [picked, setPicked] = useState<string | null>(null);
  const bootstrap = picked ?? known[0] ?? "";
  const [found, setFound] = useState<{ preview: ConnectorPreview; file: string } | null>(null);
  const [error, setError] = useState<ApiError | null>(null);

  function ask(): void {
    postJson<ConnectorPreview>(ROUTE, { config, bootstrap }).then(
      (answer) => {
        setFound({ preview: answer, file: fileFor(answer.name, config) });
        setError(null);
      },
      (problem: unknown) => {
        setFound(null);
        if (problem instanceof ApiError) setError(problem);
      },
    );
  }

  return (
    <Panel title="Before you deploy">
      <form
        className="preview-form"
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <label htmlFor={`${id}-config`}>
          A connector's configuration: JSON as one would POST it, or properties
        </label>
        <textarea
          id={`${id}-config`}
          className="mono"
          rows={6}
          spellCheck={false}
          value={config}
          placeholder={
            '{"name": "orders-sink", "config": {"connector.class": "…", "topics": "orders"}}'
          }
          onChange={(event) => setConfig(event.target.value)}
        />
        <div className="form-row">
          <label htmlFor={`${id}-kafka`}>Kafka</label>
          <input
            id={`${id}-kafka`}
            type="text"
            value={bootstrap}
            list={`${id}-known`}
            placeholder="kafka:9092"
            onChange={(event) => setPicked(event.target.value)}
          />
          <datalist id={`${id}-known`}>
            {known.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
          <button type="submit" className="button" disabled={config.trim() === ""}>
            Show its lineage
          </button>
        </div>
      </form>
      {error ? <Problem error={error} /> : null}
      {found ? <Previewed found={found.preview} file={found.file} line={line(found.file)} /> : null}
    </Panel>
  );
}
