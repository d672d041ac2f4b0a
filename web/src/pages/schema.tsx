import { useState } from "react";
import { lasting, plural, shortClock } from "../lib/format";
import { datasetId, datasetUrl, graphUrl } from "../lib/names";
import { Link, usePlace } from "../lib/router";
import type {
  ColumnEdge,
  DatasetPage,
  Field,
  SchemaClaim,
  SchemaFinding,
  TaggedColumn,
} from "../lib/types";
import { Ago, Tag } from "../ui/basics";
import { JobLink } from "../ui/lists";

/** How a column comes about, in one word; masked only if no job hands its value on in the clear. */
export function how(edge: Pick<ColumnEdge, "how">): string {
  const values = edge.how.filter((step) => step.type !== "INDIRECT");
  if (values.length > 0 && values.every((step) => step.masking)) return "masked";
  const step = values.find((one) => !one.masking) ?? edge.how[0];
  if (!step) return "unknown";
  return (step.subtype || step.type || "unknown").toLowerCase();
}

function Origins({ edges, me, field }: { edges: ColumnEdge[]; me: string; field: string }) {
  const id = `datasetField:${me.slice("dataset:".length)}:${field}`;
  const into = edges.filter((edge) => edge.destination === id);
  if (into.length === 0) return <span className="muted">–</span>;
  return (
    <ul className="origins">
      {into.map((edge) => (
        <li key={edge.origin}>
          <Link to={datasetUrl(edge.source)}>
            {edge.source.name}.<b>{edge.source.field}</b>
          </Link>
          <span className={`how how-${how(edge)}`}>{how(edge)}</span>
          {edge.how.find((step) => step.description) ? (
            <span className="muted mono">
              {edge.how.find((step) => step.description)?.description}
            </span>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

/** A tag that came to a column along the data, told apart from one that was set on it. */
export function Propagated({ tagged }: { tagged: TaggedColumn }) {
  const path = tagged.path.map((step) => `${step.name}.${step.field}`).join(" → ");
  return (
    <span className="tag propagated" title={`propagated: ${path}`}>
      {tagged.tag}
      <span className="tag-from">from {tagged.path[0]?.name ?? "upstream"}</span>
    </span>
  );
}

export function Columns({
  dataset,
  edges,
  tagged = [],
}: {
  dataset: DatasetPage;
  edges: ColumnEdge[];
  tagged?: TaggedColumn[];
}) {
  const marked = usePlace().query.get("column");
  const me = datasetId(dataset);
  const came = tagged.filter((one) => !one.set && one.field !== null);
  const about =
    came.length > 0 || dataset.columns.some((field) => field.description || field.tags?.length);
  return (
    <div className="table-box">
      <table className="table">
        <thead>
          <tr>
            <th>Column</th>
            <th>Type</th>
            <th>Comes from</th>
            {about ? <th>About</th> : null}
          </tr>
        </thead>
        <tbody>
          {dataset.columns.map((field) => (
            <tr key={field.name} className={field.name === marked ? "marked" : ""}>
              <td className={`mono indent-${Math.min(4, field.level ?? 0)}`}>
                <Link
                  to={graphUrl(me, { columns: "1", column: field.name })}
                  title="Light up its path in the graph"
                >
                  {field.name}
                </Link>
              </td>
              <td className="mono muted">{field.type ?? "–"}</td>
              <td>
                <Origins edges={edges} me={me} field={field.name} />
              </td>
              {about ? (
                <td>
                  {field.description ? <span className="wrap">{field.description} </span> : null}
                  {(field.tags ?? []).map((tag) => (
                    <Tag key={tag}>{tag}</Tag>
                  ))}
                  {came
                    .filter((one) => one.field === field.name)
                    .map((one) => (
                      <Propagated key={one.tag} tagged={one} />
                    ))}
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export interface Difference {
  name: string;
  was: string | null;
  is: string | null;
  kind: "added" | "removed" | "changed" | "same";
}

/** Two schemas side by side, in the order of the newer one. */
export function difference(before: Field[], after: Field[]): Difference[] {
  const old = new Map(before.map((field) => [field.name, field.type ?? ""]));
  const fresh = new Set(after.map((field) => field.name));
  const rows: Difference[] = after.map((field) => {
    const was = old.get(field.name);
    const is = field.type ?? "";
    if (was === undefined) return { name: field.name, was: null, is, kind: "added" };
    return { name: field.name, was, is, kind: was === is ? "same" : "changed" };
  });
  for (const field of before)
    if (!fresh.has(field.name))
      rows.push({ name: field.name, was: field.type ?? "", is: null, kind: "removed" });
  return rows;
}

const SIGN = { added: "+", removed: "−", changed: "~", same: "" } as const;
const WORD = { added: "added", removed: "removed", changed: "type changed", same: "" } as const;

export function History({ versions }: { versions: DatasetPage["history"] }) {
  const [pair, setPair] = useState<[number, number]>([Math.min(1, versions.length - 1), 0]);
  const [from, to] = pair.map((i) => versions[Math.min(i, versions.length - 1)]);
  const options = versions.map((version, i) => (
    <option key={version.time} value={i}>
      Version {versions.length - i}, {shortClock(version.time)}
    </option>
  ));
  if (versions.length < 2 || !from || !to)
    return (
      <p className="muted">
        One version since {shortClock(versions[0]?.time ?? 0)},{" "}
        {plural(versions[0]?.fields.length ?? 0, "column")}.
      </p>
    );
  const rows = difference(from.fields, to.fields);
  const changed = rows.filter((row) => row.kind !== "same");
  return (
    <>
      <div className="filters">
        <label>
          From{" "}
          <select value={pair[0]} onChange={(e) => setPair([Number(e.target.value), pair[1]])}>
            {options}
          </select>
        </label>
        <label>
          to{" "}
          <select value={pair[1]} onChange={(e) => setPair([pair[0], Number(e.target.value)])}>
            {options}
          </select>
        </label>
        <span className="muted">
          {changed.length === 0
            ? "no difference"
            : `${changed.length} of ${rows.length} columns differ`}
        </span>
      </div>
      <ul className="diff" aria-label="Difference between the two versions">
        {rows.map((row) => (
          <li key={row.name} className={row.kind}>
            <span className="sign" aria-hidden="true">
              {SIGN[row.kind]}
            </span>
            <span className="mono">{row.name}</span>
            <span className="mono muted">
              {row.kind === "changed" ? (
                <>
                  <del>{row.was}</del> <ins>{row.is}</ins>
                </>
              ) : (
                (row.is ?? row.was)
              )}
            </span>
            <span className="sr">{WORD[row.kind]}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

const FINDING: Record<SchemaFinding["kind"], string> = {
  type: "different types",
  writers: "written by one of two running jobs only",
  source: "not as the registry or catalog has them",
};

function Claimant({ claim, fields }: { claim: SchemaClaim; fields: string[] }) {
  const types = claim.fields.filter((f) => fields.includes(f.name));
  return (
    <li>
      {claim.job ? <JobLink job={claim.job} /> : <span className="mono">{claim.subject}</span>}{" "}
      <span className="mono wrap">
        {types.map((f) => `${f.name} ${f.type}`.trim()).join(", ") || "none of them"}
      </span>
    </li>
  );
}

/** Claims that cannot both be right: which fields, since when, and what each side reports. */
export function Findings({ findings }: { findings: SchemaFinding[] }) {
  return (
    <ul className="aliases" aria-label="Disagreements on the schema">
      {findings.map((found) => (
        <li key={`${found.kind}${found.since}${found.fields.join()}`}>
          <b className="mono wrap">{found.fields.slice(0, 10).join(", ")}</b>: {FINDING[found.kind]}{" "}
          (<Ago time={found.since} words={lasting} />)
          <ul>
            <Claimant claim={found.one} fields={found.fields} />
            <Claimant claim={found.other} fields={found.fields} />
          </ul>
        </li>
      ))}
    </ul>
  );
}
