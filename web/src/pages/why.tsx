import { segments } from "../lib/api";
import { nodeUrl } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link } from "../lib/router";
import type { Cause, Named, WhyAnswer } from "../lib/types";
import { Ago, Panel } from "../ui/basics";

const WORDS: Record<Cause["kind"], string> = {
  failed: "failed",
  aborted: "was aborted",
  late: "has not run when it was due",
  lagging: "lags behind",
  schema: "changed its schema",
  ended: "ended, nothing writes any more",
  quality: "failed its checks",
  paused: "was paused",
  stopped: "was stopped",
};
const SHOWN = 10;

function last(node: string): string {
  return node.slice(node.lastIndexOf(":") + 1);
}

/** What is wrong upstream, the causes that nothing explains first. */
export function Causes({ causes }: { causes: Cause[] }) {
  return (
    <ul className="rows" aria-label="Causes">
      {causes.slice(0, SHOWN).map((cause) => (
        <li className="row" key={`${cause.kind} ${cause.node}`}>
          <div className="row-main">
            <Link
              to={nodeUrl(cause.node.slice(0, cause.node.indexOf(":")), cause.named)}
              className="row-name"
              data-row
            >
              {cause.named.name}
            </Link>{" "}
            {WORDS[cause.kind]}
            {cause.planned ? " (planned)" : ""}
            {cause.root ? "" : ", as a consequence"}
            {cause.detail ? <p className="row-error wrap">{cause.detail}</p> : null}
            <p className="row-sub wrap">{cause.path.map(last).join(" → ")}</p>
            {cause.changes.map((change) => (
              <p className="row-sub wrap" key={`${change.time}${change.node}${change.text}`}>
                before: {last(change.node)}, {change.text}, <Ago time={change.time} />
              </p>
            ))}
          </div>
          <div className="row-end">
            <span className="muted">
              <Ago time={cause.since} />
            </span>
          </div>
        </li>
      ))}
      {causes.length > SHOWN ? <li className="muted">and {causes.length - SHOWN} more</li> : null}
    </ul>
  );
}

/** Why a dataset is stale; nothing while all is well upstream. */
export function Why({ dataset, stale }: { dataset: Named; stale: boolean }) {
  const path = `/api/v2/datasets/${segments(dataset.namespace, dataset.name)}/why`;
  const { data } = useResource<WhyAnswer>(
    path,
    (change) => change.kind === "run" || change.kind === "edges" || change.kind === "schema",
  );
  if (!data || (!stale && data.causes.length === 0)) return null;
  return (
    <Panel title="Why" json={path}>
      {data.causes.length === 0 ? (
        <p className="muted">Nothing is wrong upstream.</p>
      ) : (
        <Causes causes={data.causes} />
      )}
    </Panel>
  );
}
