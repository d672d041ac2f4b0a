import { apiPath, segments } from "../lib/api";
import { duration, number, plural, shortRun } from "../lib/format";
import { jobKind } from "../lib/kinds";
import { graphUrl, jobId, runUrl } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link, usePlace } from "../lib/router";
import type { JobPage as Job, Named, Run, RunRows } from "../lib/types";
import { Ago, Empty, Json, Loading, PageTitle, Panel, Problem, Tag, WebLink } from "../ui/basics";
import { RawFacets, Sql } from "../ui/code";
import { Edit, owners } from "../ui/edit";
import { DatasetLink, Facts, JobLink, JobRow, Rows } from "../ui/lists";
import { count } from "../ui/plot";
import { StateBadge, shownState } from "../ui/state";
import { type Ends, Plots, TimeLine } from "./history";
import { Abort, Failure, Flow, facet, rows, rowsSoFar, text, Uses, watched } from "./run";

const RUNS = 60;

export function producerTags(facets: Record<string, unknown>): string[] {
  const found = facet(facets, "tags").tags;
  if (!Array.isArray(found)) return [];
  return found
    .map((one) => one as Record<string, unknown>)
    .filter((one) => !one.field)
    .map((one) =>
      one.value && one.value !== "true" ? `${one.key}=${one.value}` : String(one.key),
    );
}

/** By which of its children a program reads and writes: not those that only make a table or look at one. */
function Doing({ actions, listed }: { actions: number; listed: number }) {
  const some = listed > actions;
  const all = Math.max(listed, actions);
  return (
    <span
      className="muted"
      title={some ? "The others only create a table or look at one" : undefined}
    >
      by {some ? `${number(actions)} of ` : ""}its {all === 1 ? "child" : `${number(all)} children`}
    </span>
  );
}

function Sides({ job, run, path }: { job: Job; run: Run | undefined; path: string }) {
  const all = (names: Named[]) =>
    names.length > 0 ? (
      <ul className="uses">
        {names.map((one) => (
          <li key={`${one.namespace}${one.name}`}>
            <DatasetLink dataset={one} full />
          </li>
        ))}
      </ul>
    ) : (
      <p className="muted">None known.</p>
    );
  const which = job.actions ? (
    <Doing actions={job.actions.jobs} listed={job.children.length} />
  ) : run ? (
    <span className="muted">of run {shortRun(run.id)}</span>
  ) : (
    <span className="muted">of all live runs and the last</span>
  );
  return (
    <div className="columns even">
      <Panel title="Reads" json={path} aside={which}>
        {run && !job.actions ? (
          <Uses uses={run.inputDatasetVersions} statistics="inputStatistics" />
        ) : (
          all(job.inputs)
        )}
      </Panel>
      <Panel title="Writes" json={path} aside={which}>
        {run && !job.actions ? (
          <Uses uses={run.outputDatasetVersions} statistics="outputStatistics" />
        ) : (
          all(job.outputs)
        )}
      </Panel>
    </div>
  );
}

interface RunListProps {
  runs: Run[];
  ends: Ends;
  actions: Job["actions"];
  path: string;
}

function RunList({ runs, ends, actions, path }: RunListProps) {
  return (
    <Panel title="Latest runs" json={path}>
      {runs.length === 0 ? <Empty icon="clock">No runs yet.</Empty> : null}
      <div className="table-box">
        <table className="table">
          <thead>
            <tr>
              <th>Run</th>
              <th>State</th>
              <th>Started</th>
              <th className="right">Duration</th>
              <th className="right">Rows written</th>
            </tr>
          </thead>
          <tbody>
            {runs.slice(0, 15).map((run) => (
              <tr key={run.id}>
                <td className="mono">
                  <Link to={runUrl(run.id)}>{shortRun(run.id)}</Link>
                </td>
                <td>
                  <StateBadge state={shownState({ state: run.state, planned: ends[run.id] })} />
                </td>
                <td>
                  <Ago time={run.startedAt ?? run.createdAt} />
                </td>
                <td className="right">
                  {run.durationMs === null ? "–" : duration(run.durationMs / 1000)}
                </td>
                <td className="right">{rowsText(run, actions?.rows[run.id])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function rowsText(run: Run, actions?: RunRows): string {
  const value = rows(run.outputDatasetVersions, "outputStatistics") ?? actions?.written ?? null;
  return value === null ? "–" : count(value);
}

function rowsOf(job: Job, run: Run | undefined): RunRows | undefined {
  return run && job.actions ? job.actions.rows[run.id] : undefined;
}

export function JobPage({ job: named }: { job: Named }) {
  const path = `/api/v2/jobs/${segments(named.namespace, named.name)}`;
  const runsPath = apiPath(
    `/api/v1/namespaces/${segments(named.namespace)}/jobs/${segments(named.name)}/runs`,
    { limit: RUNS },
  );
  const concerns = (change: { data: Record<string, unknown> }) =>
    change.data.name === named.name && change.data.namespace === named.namespace;
  const { data: job, error, reload } = useResource<Job>(path, concerns);
  const runs = useResource<{ runs: Run[] }>(runsPath, concerns);
  const chosen = usePlace().query.get("run");
  if (!job) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  const list = runs.data?.runs ?? [];
  const run = list.find((one) => one.id === chosen);
  const latest = list[0];
  const kind = jobKind(job);
  const sql = text(facet(job.facets, "sql").query);
  return (
    <div className="page">
      <PageTitle kind={kind} of={job}>
        <Link className="button" to={graphUrl(jobId(job))}>
          Show in the graph
        </Link>
        <Edit kind="job" of={job} done={reload} />
        {job.run && job.state === "RUNNING" ? <Abort run={job.run} done={reload} /> : null}
      </PageTitle>
      <Panel title="Now" json={path}>
        <Facts
          items={[
            ["State", <StateBadge key="s" state={shownState(job)} inferred={job.inferred} />],
            ["Since", <Ago key="a" time={job.deleted ?? job.since} />],
            [
              "Downstream",
              `${plural(job.affected.datasets, "dataset")}, ${plural(job.affected.jobs, "job")}`,
            ],
            ["Rows so far", job.state === "RUNNING" ? rowsSoFar(latest, rowsOf(job, latest)) : ""],
            ["Owners", owners(job.facets).join(", ")],
            ["Parent", job.parent ? <JobLink key="p" job={job.parent} /> : null],
            ["Source", job.location ? <WebLink key="l" url={job.location} /> : null],
            ...watched(run ?? latest),
            [
              "Tags",
              [...job.tags, ...producerTags(job.facets)].map((tag) => <Tag key={tag}>{tag}</Tag>),
            ],
          ]}
        />
        {run || latest ? <Failure facets={(run ?? latest)?.facets ?? {}} /> : null}
      </Panel>
      {list.length > 0 ? (
        <Panel
          title="Runs over time"
          json={runsPath}
          aside={<span className="muted">{plural(list.length, "run")}</span>}
        >
          <TimeLine runs={list} ends={job.plannedEnds} chosen={chosen} />
        </Panel>
      ) : null}
      <Sides job={job} run={run} path={run ? runsPath : path} />
      {job.run && job.state === "RUNNING" ? <Flow id={job.run} /> : null}
      <Plots runs={list} ends={job.plannedEnds} path={runsPath} />
      {sql ? (
        <Panel title="SQL" json={path}>
          <Sql text={sql} />
        </Panel>
      ) : null}
      {job.children.length > 0 ? (
        <Panel
          title="Children"
          json={path}
          aside={<span className="muted">{plural(job.children.length, "job")}</span>}
        >
          <Rows label="Jobs started by this one">
            {job.children.map((child) => (
              <JobRow key={child.id} job={child} />
            ))}
          </Rows>
        </Panel>
      ) : null}
      <RunList runs={list} ends={job.plannedEnds} actions={job.actions} path={runsPath} />
      <Panel title="Raw facets" aside={<Json path={path} />}>
        <RawFacets facets={job.facets} />
      </Panel>
    </div>
  );
}
