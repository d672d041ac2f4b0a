import { apiPath } from "../lib/api";
import { flowKey, useRate } from "../lib/flow";
import { ago, brief, lasting, plural, shortRun } from "../lib/format";
import { datasetId, datasetUrl, nodeUrl, runUrl, ShownNames } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link } from "../lib/router";
import type {
  ColumnEdge,
  ColumnPath,
  EdgeProof,
  MapNode,
  Named,
  Evidence as Proof,
  WhyAnswer,
} from "../lib/types";
import { how } from "../pages/schema";
import { whyPath } from "../pages/why";
import { Ago, CloseButton, Json } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { Icon, type IconName } from "../ui/icons";
import { StateBadge } from "../ui/state";
import type { Wire } from "./model";

/** The top of a panel beside the graph: what it is about, its JSON and how to close it. */
export function SideHead({
  icon,
  title,
  json,
  close,
}: {
  icon: IconName;
  title: string;
  json?: string;
  close: () => void;
}) {
  return (
    <header>
      <p className="crumb">
        <Icon name={icon} size={16} /> {title}
      </p>
      <span>
        {json ? <Json path={json} /> : null}
        <CloseButton close={close} />
      </span>
    </header>
  );
}

function Reasons({ evidence }: { evidence: Proof[] }) {
  return evidence.map((item) => (
    <p key={`${item.source}${item.detail}`} className="muted">
      {item.observed ? "observed" : "derived"} from {item.source}:{" "}
      <span className="mono wrap">{item.detail}</span>
    </p>
  ));
}

function namesOf(edges: ColumnEdge[]): ShownNames {
  const ends = edges.flatMap((edge) => [datasetId(edge.source), datasetId(edge.target)]);
  return new ShownNames([...ends, ...edges.flatMap((edge) => edge.jobs)]);
}

function End({ end, names }: { end: Named & { field: string }; names: ShownNames }) {
  return (
    <>
      {breakable(names.of(datasetId(end), end.name))}.<b>{end.field}</b>
    </>
  );
}

export function Evidence({ edge, names }: { edge: ColumnEdge; names: ShownNames }) {
  return (
    <div className="evidence">
      {edge.how.map((step, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the steps of one edge never move
        <p key={i}>
          <span
            className={`how how-${(step.masking ? "masked" : (step.subtype ?? "unknown")).toLowerCase()}`}
          >
            {(step.subtype ?? step.type ?? "unknown").toLowerCase()}
          </span>
          {step.masking ? <span className="how how-masked">masked</span> : null}
          {step.type === "INDIRECT" ? <span className="muted"> decides which rows</span> : null}
          {step.description ? <code className="wrap">{step.description}</code> : null}
        </p>
      ))}
      {edge.jobs.length > 0 ? (
        <p className="muted">by {breakable(edge.jobs.map((job) => names.of(job)).join(", "))}</p>
      ) : null}
      <Reasons evidence={edge.evidence} />
    </div>
  );
}

const INPUTS = 12;

function unchanged(same: number, changed: number): string {
  if (changed > 0) return `The schema of ${plural(same, "other")} never changed`;
  return same === 1
    ? "The schema of its only input never changed"
    : `The schema of none of its ${same} inputs ever changed`;
}

/** Of which of the columns that a column comes from the schema changed last; data that came is no change. */
export function ColumnInputs({
  column,
  pick,
}: {
  column: Named & { field: string };
  pick: (id: string) => void;
}) {
  const path = apiPath(whyPath(column), { column: column.field });
  const { data } = useResource<WhyAnswer>(
    path,
    (change) => change.kind === "schema" || change.kind === "edges",
  );
  const inputs = data?.inputs ?? [];
  const unknown = [...new Set((data?.unknown ?? []).map((one) => one.job))];
  const names = new ShownNames([...inputs.map(datasetId), ...unknown]);
  if (inputs.length + unknown.length === 0) return null;
  const changed = inputs.filter((one) => one.changedAt);
  const same = inputs.length - changed.length;
  return (
    <section aria-label="Schema changed last">
      <h3>
        {inputs.length > 0 ? "Which input's schema changed last" : "Where it comes from"}{" "}
        <Json path={path} />
      </h3>
      <ul className="side-list">
        {changed.slice(0, INPUTS).map((one) => (
          <li key={one.node}>
            <button type="button" className="link" onClick={() => pick(one.node)}>
              <span>
                <End end={one} names={names} />
              </span>
            </button>
            <span className="wrap">
              {one.change}, <Ago time={one.changedAt} />
            </span>
          </li>
        ))}
        {changed.length > INPUTS ? (
          <li className="muted">and {changed.length - INPUTS} more</li>
        ) : null}
        {same > 0 ? <li className="muted">{unchanged(same, changed.length)}</li> : null}
      </ul>
      {unknown.length > 0 ? (
        <p className="row-late wrap">
          It is not known which {inputs.length > 0 ? "more " : ""}columns it comes from:{" "}
          {unknown.map((job) => names.of(job)).join(", ")}{" "}
          {unknown.length === 1 ? "reports" : "report"} no columns
        </p>
      ) : null}
    </section>
  );
}

/** The column that an id stands for, by the ends of the edges around it. */
function namedIn(edges: ColumnEdge[], id: string): (Named & { field: string }) | undefined {
  const into = edges.find((edge) => edge.destination === id);
  return into?.target ?? edges.find((edge) => edge.origin === id)?.source;
}

/** One column: every step that leads to it and every step it leads to, drawn or not. */
export function ColumnSide({
  id,
  at,
  close,
  pick,
  drop,
}: {
  id: string;
  at: string | null;
  close: () => void;
  pick: (id: string) => void;
  drop: (dataset: string, column: string) => void;
}) {
  const path = apiPath("/api/v2/columns", { node: id, at });
  const { data, error } = useResource<ColumnPath>(path, (change) => change.kind === "edges");
  const me = data?.columns.find((one) => one.id === id);
  const steps = data?.edges ?? [];
  const named = namedIn(steps, id);
  const names = namesOf(steps);
  return (
    <aside className="side" aria-label="Column">
      <SideHead icon="column" title="Column" json={path} close={close} />
      <h2 className="mono wrap">{me?.field ?? id.split(":").pop()}</h2>
      {me ? (
        <div className="side-actions">
          <button type="button" className="button small" onClick={() => drop(me.dataset, me.field)}>
            Impact of dropping it
          </button>
        </div>
      ) : null}
      {error ? <p className="row-error">{error.message}</p> : null}
      {data && steps.length === 0 ? (
        <p className="muted">No producer has told where it comes from or goes.</p>
      ) : null}
      {named && at === null ? <ColumnInputs column={named} pick={pick} /> : null}
      <ol className="steps">
        {steps.map((edge) => (
          <li key={`${edge.origin}${edge.destination}`}>
            <p className="step-ends wrap">
              <button type="button" className="link" onClick={() => pick(edge.origin)}>
                <End end={edge.source} names={names} />
              </button>
              <span aria-hidden="true"> → </span>
              <span className="sr">leads to</span>
              <button type="button" className="link" onClick={() => pick(edge.destination)}>
                <End end={edge.target} names={names} />
              </button>
            </p>
            <Evidence edge={edge} names={names} />
          </li>
        ))}
      </ol>
    </aside>
  );
}

export function EdgeSide({ edge, close }: { edge: ColumnEdge; close: () => void }) {
  const names = namesOf([edge]);
  return (
    <aside className="side" aria-label="Edge">
      <SideHead icon="graph" title={how(edge)} close={close} />
      <p className="wrap">
        <Link to={datasetUrl(edge.source)}>
          <End end={edge.source} names={names} />
        </Link>{" "}
        →{" "}
        <Link to={datasetUrl(edge.target)}>
          <End end={edge.target} names={names} />
        </Link>
      </p>
      <Evidence edge={edge} names={names} />
    </aside>
  );
}

/** An edge between a job and a dataset: what flows, and how it is known. */
export function WireSide({
  wire,
  nodes,
  close,
}: {
  wire: Wire;
  nodes: Map<string, MapNode>;
  close: () => void;
}) {
  const rate = useRate(
    wire.flow ? flowKey(wire.flow.run, wire.flow.direction, wire.flow.name) : null,
  );
  const ends = [nodes.get(wire.source), nodes.get(wire.target)];
  const path = apiPath("/api/v2/evidence", {
    origin: wire.reported.origin,
    destination: wire.reported.destination,
  });
  const { data, error } = useResource<EdgeProof>(path, (change) => change.kind === "edges");
  const first = data?.intervals.at(-1);
  return (
    <aside className="side" aria-label="Edge">
      <SideHead
        icon="graph"
        title={ends[0]?.kind === "job" ? "Writes" : "Reads"}
        json={path}
        close={close}
      />
      <p className="wrap">
        {ends[0] ? (
          <Link to={nodeUrl(ends[0].kind, ends[0])}>{breakable(ends[0].name)}</Link>
        ) : null}{" "}
        →{" "}
        {ends[1] ? (
          <Link to={nodeUrl(ends[1].kind, ends[1])}>{breakable(ends[1].name)}</Link>
        ) : null}
      </p>
      {rate ? (
        <p>
          <span className="rate">{brief(rate.records)} records/s</span>
          {rate.lag !== null && rate.lag !== undefined ? <span>, lag {rate.lag}</span> : null}
          {rate.last ? (
            <span className="muted">
              , last record <Ago time={rate.last} />
            </span>
          ) : null}
        </p>
      ) : null}
      <div className="evidence">
        {first ? (
          <p className="muted">
            {data?.current ? "holds" : "first seen"}{" "}
            <Ago time={first.since} words={data?.current ? lasting : ago} />
          </p>
        ) : null}
        {data?.runs.slice(0, 5).map((run) => (
          <p key={run.id}>
            <Link to={runUrl(run.id)}>run {shortRun(run.id)}</Link>
            <StateBadge state={run.state} />
          </p>
        ))}
        <Reasons evidence={data?.evidence ?? []} />
        {data?.evidence.length === 0 ? (
          <p className="muted">Its producer gives no further evidence.</p>
        ) : null}
        {error ? <p className="row-error">{error.message}</p> : null}
      </div>
    </aside>
  );
}
