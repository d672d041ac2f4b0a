import { type ReactNode, useState } from "react";
import { ApiError, postJson, segments } from "../lib/api";
import { clock, duration, shortRun } from "../lib/format";
import { graphUrl, jobId, jobUrl } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link } from "../lib/router";
import type { Facets, FlowSample, Health, JobPage, Run, RunRows, RunUse } from "../lib/types";
import { Loading, Panel, Problem, WebLink } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { RawFacets, Trace } from "../ui/code";
import { Dialog } from "../ui/dialog";
import { DatasetLink, Facts } from "../ui/lists";
import { count, Plot, rangeOf } from "../ui/plot";
import { StateBadge, shownState } from "../ui/state";

export function facet(facets: Facets, name: string): Record<string, unknown> {
  const found = facets[name];
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** How much a run has read and written so far, as far as it counts. */
export function rowsSoFar(run: Run | undefined, actions?: RunRows): string {
  if (!run) return "";
  const read = rows(run.inputDatasetVersions, "inputStatistics") ?? actions?.read ?? null;
  const written = rows(run.outputDatasetVersions, "outputStatistics") ?? actions?.written ?? null;
  return [
    read === null ? "" : `${count(read)} read`,
    written === null ? "" : `${count(written)} written`,
  ]
    .filter(Boolean)
    .join(", ");
}

export function rows(uses: RunUse[], name: string): number | null {
  const found = uses
    .map((use) => facet(use.facets, name).rowCount)
    .filter((n): n is number => typeof n === "number");
  return found.length > 0 ? found.reduce((a, b) => a + b, 0) : null;
}

export function Failure({ facets }: { facets: Facets }) {
  const error = facet(facets, "errorMessage");
  if (!error.message) return null;
  return <Trace message={text(error.message)} trace={text(error.stackTrace)} />;
}

/** Who ended a run, where that is known; an end that its job reported later is the job's own. */
export function endedBy(run: Run, planned: boolean): string {
  const own = run.state === "ABORTED" || planned;
  return own ? text(facet(run.facets, "headwater_end").by) : "";
}

/** Where the engine of a run can be watched: its page ends with it, its history stays. */
export function watched(run: Run | undefined): [string, ReactNode][] {
  const facets = run?.facets ?? {};
  const mine = facet(facets, "headwater_spark");
  const other = facet(facets, "spark_applicationDetails");
  const ui = run?.state === "RUNNING" ? text(mine.ui) || text(other.uiWebUrl) : "";
  const history = text(mine.history) || text(other.historyUrl);
  return [
    ["Spark UI", ui ? <WebLink key="ui" url={ui} /> : null],
    ["Spark history", history ? <WebLink key="history" url={history} /> : null],
  ];
}

/** Closing a stuck run by hand: asked twice, and only where the token's role allows it. */
export function Abort({ run, done }: { run: string; done: () => void }) {
  const { data: health } = useResource<Health>("/api/v2/health");
  const [asking, setAsking] = useState(false);
  const [problem, setProblem] = useState("");
  async function abort(): Promise<void> {
    try {
      await postJson(`/api/v2/runs/${segments(run)}/abort`);
      setAsking(false);
      done();
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
  }
  if (!health) return null;
  if (!health.may.includes("write"))
    return (
      <span className="refused">
        <button type="button" className="button" disabled aria-describedby="abort-why">
          Abort run
        </button>
        <span id="abort-why" className="muted">
          Your token may only read; this needs the role admin.
        </span>
      </span>
    );
  return (
    <>
      <button type="button" className="button danger" onClick={() => setAsking(true)}>
        Abort run
      </button>
      {asking ? (
        <Dialog title="Abort this run?" close={() => setAsking(false)}>
          <div className="dialog-body">
            <p>
              The run is closed in Headwater as aborted, from now on. The job itself is not stopped.
              A later end reported by the job still counts.
            </p>
            {problem ? (
              <p className="row-error" role="alert">
                {problem}
              </p>
            ) : null}
            <div className="form-row">
              <button type="button" className="button danger" onClick={() => void abort()}>
                Abort run {shortRun(run)}
              </button>
              <button type="button" className="button" onClick={() => setAsking(false)}>
                Leave it
              </button>
            </div>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}

export function Uses({ uses, statistics }: { uses: RunUse[]; statistics: string }) {
  if (uses.length === 0) return <p className="muted">None.</p>;
  return (
    <ul className="uses">
      {uses.map((use) => {
        const size = facet(use.facets, statistics).rowCount;
        return (
          <li key={`${use.datasetVersionId.namespace}${use.datasetVersionId.name}`}>
            <DatasetLink dataset={use.datasetVersionId} full />
            {typeof size === "number" ? <span className="muted">{count(size)} rows</span> : null}
          </li>
        );
      })}
    </ul>
  );
}

/** How fast a run reads and writes, dataset by dataset; nothing where nobody measured. */
export function Flow({ id }: { id: string }) {
  const path = `/api/v2/flow?run=${segments(id)}`;
  const { data } = useResource<{ flow: (FlowSample & { seconds: number })[] }>(
    path,
    (change) => change.kind === "flow" && change.data.run === id,
  );
  const minutes = (data?.flow ?? []).filter((sample) => sample.seconds === 60);
  if (minutes.length === 0) return null;
  const range = rangeOf(
    minutes.map((sample) => sample.time),
    60_000,
  );
  const byName = new Map<string, FlowSample[]>();
  for (const sample of minutes) {
    const name = `${sample.direction === "input" ? "Reads" : "Writes"} ${sample.dataset.name}`;
    byName.set(name, [...(byName.get(name) ?? []), sample]);
  }
  return (
    <Panel title="Flow" json={path}>
      {[...byName].map(([name, samples]) => (
        <div key={name}>
          <h3 className="plot-title">{name}, records a second</h3>
          <Plot
            title={name}
            unit={count}
            height={110}
            range={range}
            points={samples
              .toSorted((a, b) => a.time.localeCompare(b.time))
              .map((s) => ({ time: s.time, value: s.recordsPerSecond ?? 0 }))}
          />
        </div>
      ))}
    </Panel>
  );
}

const END_FACETS = ["headwater_connect", "headwater_end"];

export function RunPage({ id }: { id: string }) {
  const path = `/api/v1/jobs/runs/${segments(id)}`;
  const { data, error, reload } = useResource<Run>(path, (change) => change.data.run === id);
  const job = data?.jobVersion;
  // Whether somebody wanted its end is known of the job: asked only where its producer says something.
  const told = data && data.endedAt !== null && END_FACETS.some((name) => name in data.facets);
  const { data: of } = useResource<JobPage>(
    told && job ? `/api/v2/jobs/${segments(job.namespace, job.name)}` : null,
  );
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  const planned = of?.plannedEnds[id];
  const state = shownState({ state: data.state, planned });
  const parent = facet(data.facets, "parent");
  const upRun = text(facet(parent, "run").runId);
  const upJob = facet(parent, "job");
  return (
    <div className="page">
      <div className="page-title">
        <div>
          <p className="crumb">
            Run of {job ? <Link to={jobUrl(job)}>{breakable(job.name)}</Link> : "an unknown job"}
          </p>
          <h1 className="mono">{data.id}</h1>
        </div>
        <div className="page-actions">
          {job ? (
            <Link className="button" to={graphUrl(jobId(job))}>
              Show in the graph
            </Link>
          ) : null}
          {data.state === "RUNNING" || data.state === "NEW" ? (
            <Abort run={data.id} done={reload} />
          ) : null}
        </div>
      </div>
      <Panel title="Life" json={path}>
        <Facts
          items={[
            ["State", <StateBadge key="s" state={state} />],
            ["Started", clock(data.startedAt)],
            ["Ended", data.endedAt ? clock(data.endedAt) : "not yet"],
            ["Ended by", endedBy(data, Boolean(planned)) || null],
            [
              "Duration",
              data.durationMs !== null
                ? duration(data.durationMs / 1000)
                : data.startedAt && data.state === "RUNNING"
                  ? `${duration((Date.now() - Date.parse(data.startedAt)) / 1000)} so far`
                  : "–",
            ],
            ...watched(data),
            ["Nominal time", data.nominalStartTime ? clock(data.nominalStartTime) : null],
            [
              "Parent run",
              upRun ? (
                <Link key="up" to={`/runs/${segments(upRun)}`}>
                  {text(upJob.name) || shortRun(upRun)}
                </Link>
              ) : null,
            ],
          ]}
        />
        <Failure facets={data.facets} />
      </Panel>
      <div className="columns even">
        <Panel title="Read" json={path}>
          <Uses uses={data.inputDatasetVersions} statistics="inputStatistics" />
        </Panel>
        <Panel title="Written" json={path}>
          <Uses uses={data.outputDatasetVersions} statistics="outputStatistics" />
        </Panel>
      </div>
      <Flow id={id} />
      <Panel title="Raw facets" json={`${path}/facets`}>
        <RawFacets facets={data.facets} />
      </Panel>
    </div>
  );
}
