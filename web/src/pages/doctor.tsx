import { useState } from "react";
import { ApiError, postJson } from "../lib/api";
import { plural } from "../lib/format";
import { datasetUrl, nodeUrl } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link } from "../lib/router";
import type {
  DoctorAnswer,
  DoctorFinding,
  DoubtKind,
  Health,
  Named,
  ProposedPair,
} from "../lib/types";
import { Ago, Empty, Loading, Panel, Problem, Unseen } from "../ui/basics";
import { DatasetLink, Rows } from "../ui/lists";

const PATH = "/api/v2/doctor";
const SHOWN = 20;
const TITLES: [DoubtKind, string][] = [
  ["schema", "Producers disagree about a schema"],
  ["external file", "Tables of dbt that are files elsewhere"],
  ["reported twice", "Streams that are reported twice"],
  ["clock", "Clocks that are off"],
  ["silent", "Producers that went silent"],
  ["inferred", "Runs closed because nothing more came"],
  ["no outputs", "Jobs without outputs"],
  ["orphan", "Datasets that no job reads or writes"],
  ["refused", "Refused events, by reason"],
  ["assumed", "Events read with an assumption, by reason"],
];

type Act = (body: Record<string, unknown>) => void;

function key(pair: { alias: Named; dataset: Named }): string {
  return [pair.alias.namespace, pair.alias.name, pair.dataset.namespace, pair.dataset.name].join(
    "\n",
  );
}

/** Pairs that may be one dataset, the surest first; `act` is null for a role that may not join. */
export function Pairs({
  pairs,
  total,
  sure,
  act,
}: {
  pairs: ProposedPair[];
  total: number;
  sure: number;
  act: Act | null;
}) {
  return (
    <>
      <Rows label="Pairs">
        {pairs.map((pair) => (
          <li className="row" key={key(pair)}>
            <span
              className={pair.score >= sure ? "effect effect-sure" : "effect"}
              title={pair.score >= sure ? "almost surely one" : "may be one"}
            >
              {pair.score.toFixed(2)}
            </span>
            <div className="row-main">
              <Link to={datasetUrl(pair.alias)} className="row-name" data-row>
                {pair.alias.name}
              </Link>
              <span className="entity-space mono">{pair.alias.namespace}</span>
              <div>
                <span className="muted">is </span>
                <DatasetLink dataset={pair.dataset} full />
              </div>
              <p className="row-sub wrap">{pair.evidence.map((one) => one.text).join(" · ")}</p>
            </div>
            <div className="row-end">
              {act ? (
                <button
                  type="button"
                  className="button small"
                  aria-label={`Apply: ${pair.alias.name} in ${pair.alias.namespace}`}
                  onClick={() =>
                    act({ action: "apply", pairs: [{ alias: pair.alias, dataset: pair.dataset }] })
                  }
                >
                  Apply
                </button>
              ) : null}
            </div>
          </li>
        ))}
      </Rows>
      {total > pairs.length ? (
        <p className="muted">and {total - pairs.length} more, none of them surer</p>
      ) : null}
    </>
  );
}

function Finding({ one }: { one: DoctorFinding }) {
  return (
    <li className="row">
      <div className="row-main">
        {one.named && one.node ? (
          <Link
            to={nodeUrl(one.node.slice(0, one.node.indexOf(":")), one.named)}
            className="row-name"
            data-row
          >
            {one.named.name}
          </Link>
        ) : (
          <span className="row-name">{plural(one.count, "event")}</span>
        )}
        <p className="row-sub wrap">{one.text}</p>
      </div>
      <div className="row-end">
        {one.since ? (
          <span className="muted">
            <Ago time={one.since} />
          </span>
        ) : null}
      </div>
    </li>
  );
}

/** What makes answers doubtful, by kind. */
export function Doubts({ answer }: { answer: DoctorAnswer }) {
  return (
    <>
      {TITLES.map(([kind, title]) => {
        const some = answer.findings.filter((one) => one.kind === kind);
        const total = answer.counts[kind];
        return some.length > 0 ? (
          <Panel
            key={kind}
            title={title}
            json={PATH}
            aside={<span className="muted">{total}</span>}
          >
            <Rows label={title}>
              {some.slice(0, SHOWN).map((one) => (
                <Finding key={`${one.node} ${one.text}`} one={one} />
              ))}
            </Rows>
            {total > SHOWN ? (
              <p className="muted">
                and {total - SHOWN} more: <code>headwater doctor --json</code>
              </p>
            ) : null}
          </Panel>
        ) : null;
      })}
    </>
  );
}

export function DoctorPage() {
  const { data, error, reload } = useResource<DoctorAnswer>(
    PATH,
    (change) => change.kind === "edges" || change.kind === "dataset" || change.kind === "schema",
  );
  const { data: health } = useResource<Health>("/api/v2/health");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  const may = health?.may.includes("write") ?? false;
  const act: Act = (body) => {
    if (busy) return;
    setBusy(true);
    setProblem("");
    postJson(PATH, body)
      .catch((failed: unknown) =>
        setProblem(failed instanceof ApiError ? failed.message : String(failed)),
      )
      .finally(() => {
        setBusy(false);
        reload();
      });
  };
  const { counts, recorded } = data;
  return (
    <div className="page" aria-busy={busy}>
      <h1>Doctor</h1>
      <p className="lead">Datasets under two names, and what else makes answers doubtful.</p>
      <Unseen count={data.hidden} />
      {problem ? (
        <p className="row-error" role="alert">
          {problem}
        </p>
      ) : null}
      <div className="columns">
        <div className="stack">
          <Panel
            title="One dataset under two names"
            json={PATH}
            aside={
              may && counts.sure > 0 ? (
                <button
                  type="button"
                  className="button small primary"
                  disabled={busy}
                  onClick={() => act({ action: "apply" })}
                >
                  Apply {plural(counts.sure, "sure pair")}
                </button>
              ) : null
            }
          >
            {data.pairs.length === 0 ? (
              <Empty icon="check">No two names look like one dataset.</Empty>
            ) : (
              <Pairs
                pairs={data.pairs}
                total={counts.pairs}
                sure={data.defaultScore}
                act={may ? act : null}
              />
            )}
            {data.pairs.length > 0 && health && !may ? (
              <p className="muted">Your token may only read; applying needs the role write.</p>
            ) : null}
          </Panel>
          {recorded.length > 0 ? (
            <Panel
              title="Joined by doctor"
              json={PATH}
              aside={
                may ? (
                  <button
                    type="button"
                    className="button small"
                    disabled={busy}
                    onClick={() => act({ action: "undo" })}
                  >
                    Undo all
                  </button>
                ) : null
              }
            >
              <Rows label="Joined">
                {recorded.map((one) => (
                  <li className="row" key={key(one)}>
                    <div className="row-main">
                      <span className="mono wrap">
                        {one.alias.namespace} {one.alias.name}
                      </span>
                      <div>
                        <span className="muted">is </span>
                        <DatasetLink dataset={one.dataset} full />
                      </div>
                    </div>
                    <div className="row-end">
                      <span className="muted">
                        <Ago time={one.at} />
                      </span>
                    </div>
                  </li>
                ))}
              </Rows>
            </Panel>
          ) : null}
        </div>
        <div className="stack">
          <Doubts answer={data} />
          {data.findings.length === 0 ? (
            <Panel title="What else is doubtful" json={PATH}>
              <Empty icon="check">Nothing.</Empty>
            </Panel>
          ) : null}
        </div>
      </div>
    </div>
  );
}
