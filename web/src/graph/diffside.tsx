import { apiPath } from "../lib/api";
import { plural } from "../lib/format";
import { useResource } from "../lib/resource";
import type { ChangedColumnEdge, DifferenceAnswer } from "../lib/types";
import { Loading, Problem, Unseen } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { SideHead } from "./edgeside";
import type { Times } from "./timebar";

const MOST = 500;

interface ListedChange {
  sign: "+" | "−" | "~";
  kind: string;
  text: string;
  /** The job or dataset that it is about, if it is about one. */
  node?: string;
  breaks?: boolean;
}

const rest = (id: string) => id.slice(id.indexOf(":") + 1);

/** The list that `headwater diff` prints, in its order. */
export function listed(found: DifferenceAnswer): ListedChange[] {
  const edges = (sign: "+" | "−", some: { origin: string; destination: string }[]) =>
    some.map((edge) => ({
      sign,
      kind: "edge",
      text: `${rest(edge.origin)} → ${rest(edge.destination)}`,
    }));
  const columns = (sign: "+" | "−", some: ChangedColumnEdge[]) =>
    some.map((one) => ({
      sign,
      kind: "column",
      text: `${one.originName} → ${one.destinationName}`,
    }));
  const nodes = (sign: "+" | "−", ids: string[]) =>
    ids.map((id) => ({ sign, kind: id.slice(0, id.indexOf(":")), text: rest(id), node: id }));
  return [
    ...nodes("+", found.appeared),
    ...edges("+", found.added),
    ...columns("+", found.columnsAdded),
    ...nodes("−", found.vanished),
    ...edges("−", found.removed),
    ...columns("−", found.columnsRemoved),
    ...found.schemas.map((one) => ({
      sign: "~" as const,
      kind: "schema",
      text: `${rest(one.dataset)}: ${one.changes.join("; ")}`,
      node: one.dataset,
      breaks: !one.compatible,
    })),
    ...found.states.map((one) => ({
      sign: "~" as const,
      kind: "state",
      text: `${rest(one.job)}: ${one.before} → ${one.after}`,
      node: one.job,
    })),
  ];
}

const WORD = { "+": "added", "−": "removed", "~": "changed" };

/** What changed between two moments, as a list beside the graph. */
export function DiffSide({
  times,
  node,
  depth,
  known,
  select,
  close,
}: {
  times: Times;
  node: string | null;
  depth: number;
  known: (id: string) => boolean;
  select: (id: string) => void;
  close: () => void;
}) {
  const path = apiPath("/api/v2/graph/diff", {
    from: times.from,
    to: times.to,
    node,
    depth: node ? depth : null,
    limit: MOST,
  });
  const { data, error } = useResource<DifferenceAnswer>(path, () => times.to === null);
  const changes = data ? listed(data) : [];
  return (
    <aside className="side" aria-label="Difference">
      <SideHead icon="diff" title="Difference" json={path} close={close} />
      {error && !data ? <Problem error={error} /> : null}
      {!data && !error ? <Loading /> : null}
      {data ? (
        <p className="muted" aria-live="polite">
          {changes.length === 0 ? "Nothing changed" : plural(changes.length, "change")}
          {data.truncated ? "; there is more than is shown" : ""}
          {node ? " around this node" : ""}
          {data.source ? "; older than the server keeps, from the lake" : ""}.
        </p>
      ) : null}
      {data ? <Unseen count={data.hidden} /> : null}
      <ul className="diff-list" aria-label="Changes">
        {changes.map(({ sign, kind, text, node: id, breaks }) => (
          <li key={`${sign}${kind}${text}`}>
            <span className={`sign ${WORD[sign]}`} aria-hidden="true">
              {sign}
            </span>
            <span className="sr">{WORD[sign]}</span> <span className="muted">{kind}</span>{" "}
            {id && known(id) ? (
              <button type="button" className="link wrap" onClick={() => select(id)}>
                {breakable(text)}
              </button>
            ) : (
              <span className="wrap">{breakable(text)}</span>
            )}
            {breaks ? <span className="row-error"> breaks readers</span> : null}
          </li>
        ))}
      </ul>
    </aside>
  );
}
