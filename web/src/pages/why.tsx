import { Fragment } from "react";
import { segments } from "../lib/api";
import { plural } from "../lib/format";
import type { Change } from "../lib/live";
import { graphUrl, nodeUrl, ShownNames } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link } from "../lib/router";
import type { Cause, Named, WhyAnswer } from "../lib/types";
import { Ago, Panel, Unseen } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { DatasetLink, Rows } from "../ui/lists";

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
const ROOTS = 2;

/** What is wrong upstream, the causes that nothing explains first. */
export function Causes({ causes }: { causes: Cause[] }) {
  const names = new ShownNames(
    causes.flatMap((cause) => [...cause.path, ...cause.changes.map((change) => change.node)]),
  );
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
              {breakable(names.of(cause.node, cause.named.name))}
            </Link>{" "}
            {WORDS[cause.kind]}
            {cause.by ? ` by ${cause.by}` : ""}
            {cause.planned ? " (planned)" : ""}
            {cause.root ? "" : ", as a consequence"}
            {cause.detail ? <p className="row-error wrap">{cause.detail}</p> : null}
            <p className="row-sub wrap">{names.path(cause.path)}</p>
            {cause.changes.map((change) => (
              <p className="row-sub wrap" key={`${change.time}${change.node}${change.text}`}>
                before: {names.of(change.node)}, {change.text}, <Ago time={change.time} />
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

export function whyPath(dataset: Named): string {
  return `/api/v2/datasets/${segments(dataset.namespace, dataset.name)}/why`;
}

function matters(change: Change): boolean {
  return change.kind === "run" || change.kind === "edges" || change.kind === "schema";
}

/** A stale dataset with the causes that nothing else explains, the gravest first. */
export function StaleDataset({ dataset, answer }: { dataset: Named; answer: WhyAnswer }) {
  const roots = answer.causes.filter((cause) => cause.root && !cause.planned);
  return (
    <li className="row">
      <div className="row-main">
        <DatasetLink dataset={dataset} /> is stale
        {roots.slice(0, ROOTS).map((cause) => (
          <Fragment key={`${cause.kind} ${cause.node}`}>
            <p className="row-sub wrap">
              because{" "}
              <Link to={nodeUrl(cause.node.slice(0, cause.node.indexOf(":")), cause.named)}>
                {breakable(cause.named.name)}
              </Link>{" "}
              {WORDS[cause.kind]}
              {cause.by ? ` by ${cause.by}` : ""}
            </p>
            {cause.detail ? <p className="row-error wrap">{cause.detail}</p> : null}
          </Fragment>
        ))}
        {roots.length > ROOTS ? (
          <p className="row-sub muted">and {plural(roots.length - ROOTS, "more cause")}</p>
        ) : null}
      </div>
      <div className="row-end">
        <span className="muted">
          <Ago time={answer.since} />
        </span>
      </div>
    </li>
  );
}

function MaybeStale({ dataset }: { dataset: Named }) {
  const { data } = useResource<WhyAnswer>(whyPath(dataset), matters);
  return data?.verdict === "stale" ? <StaleDataset dataset={dataset} answer={data} /> : null;
}

/** Why what jobs in trouble write is stale; the style hides the panel while nothing is. */
export function WhyStale({ datasets, json }: { datasets: Named[]; json: string }) {
  if (datasets.length === 0) return null;
  return (
    <Panel title="Why" json={json} className="only-with-rows">
      <Rows label="Stale datasets">
        {datasets.map((dataset) => (
          <MaybeStale key={`${dataset.namespace} ${dataset.name}`} dataset={dataset} />
        ))}
      </Rows>
    </Panel>
  );
}

/** Schemas upstream that changed in the last day: while nothing is wrong, they are news and no cause. */
function Recent({ changes }: { changes: WhyAnswer["recent"] }) {
  if (changes.length === 0) return null;
  const names = new ShownNames(changes.map((change) => change.node));
  return (
    <>
      <p className="muted">Changed recently, and could break a reader:</p>
      <Rows label="Changed recently">
        {changes.map((change) => (
          <li className="row" key={`${change.time} ${change.node} ${change.text}`}>
            <div className="row-main">
              <Link to={graphUrl(change.node)} className="row-name" data-row>
                {names.of(change.node)}
              </Link>
              <p className="row-note wrap">{change.text}</p>
            </div>
            <div className="row-end">
              <span className="muted">
                <Ago time={change.time} />
              </span>
            </div>
          </li>
        ))}
      </Rows>
    </>
  );
}

/** What is wrong upstream of a dataset, as far as it can be seen, or else what changed there. */
export function Upstream({ answer }: { answer: WhyAnswer }) {
  const seen = answer.hidden > 0 ? "Nothing that can be seen" : "Nothing";
  const nothing = `${seen} is wrong upstream${answer.truncated ? ", as far as was looked" : ""}.`;
  return (
    <>
      {answer.causes.length === 0 ? (
        <p className="muted">{nothing}</p>
      ) : (
        <Causes causes={answer.causes} />
      )}
      <Recent changes={answer.recent} />
      {answer.truncated ? <p className="muted">There is more than was looked at.</p> : null}
      <Unseen count={answer.hidden} where="upstream" />
    </>
  );
}

/** Why a dataset is stale; nothing while all is well and unchanged upstream, and can be seen. */
export function Why({ dataset, stale }: { dataset: Named; stale: boolean }) {
  const path = whyPath(dataset);
  const { data } = useResource<WhyAnswer>(path, matters);
  const news = data ? data.causes.length + data.recent.length + data.hidden : 0;
  if (!data || (!stale && news === 0)) return null;
  return (
    <Panel title="Why" json={path}>
      <Upstream answer={data} />
    </Panel>
  );
}
