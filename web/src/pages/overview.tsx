import { useEffect, useRef } from "react";
import { duration, number, plural } from "../lib/format";
import { graphUrl, jobUrl } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link, navigate } from "../lib/router";
import type { CountedState, JobFacts, Overview, Reach } from "../lib/types";
import { Ago, Empty, Loading, Panel, Problem } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { DatasetLink, JobRow, Rows } from "../ui/lists";
import { count, Plot } from "../ui/plot";
import { StateMark, stateWord } from "../ui/state";
import { Alerts } from "./alerts";
import { FirstRun } from "./firstrun";
import { Changes, Feed } from "./news";
import { WhyStale } from "./why";

const PATH = "/api/v2/overview";
const ORDER: CountedState[] = ["FAILED", "ABORTED", "RUNNING", "COMPLETED"];
/** What somebody wanted so is counted where there is any. */
const PLANNED: CountedState[] = ["PAUSED", "STOPPED"];

function Affected({ job, reach }: { job: JobFacts; reach: Reach }) {
  const more = reach.more ? "at least " : "";
  return (
    <p className="row-note">
      {reach.datasets + reach.jobs > 0 ? (
        <Link to={graphUrl(job.id)}>
          {more}
          {[
            reach.datasets > 0 ? plural(reach.datasets, "dataset") : "",
            reach.jobs > 0 ? plural(reach.jobs, "job") : "",
          ]
            .filter(Boolean)
            .join(" and ")}{" "}
          downstream
        </Link>
      ) : (
        <span className="muted">nothing downstream</span>
      )}
    </p>
  );
}

function Counts({ data }: { data: Overview }) {
  const states = [...ORDER, ...PLANNED.filter((state) => data.jobs[state] > 0)];
  return (
    <div className="counts">
      {states.map((state) => (
        <div
          key={state}
          className={`count state-${state.toLowerCase()}`}
          data-zero={data.jobs[state] === 0}
        >
          <span className="count-figure">{number(data.jobs[state])}</span>
          <span className="count-word">
            <StateMark state={state} /> {stateWord(state)}
          </span>
        </div>
      ))}
      <div className="count">
        <span className="count-figure">{number(data.jobs.total)}</span>
        <span className="count-word">Jobs</span>
      </div>
      <div className="count">
        <span className="count-figure">{number(data.datasets)}</span>
        <span className="count-word">Datasets</span>
      </div>
    </div>
  );
}

/** What somebody wanted so is no trouble, but what is stale behind it has its reason there. */
function Planned({ jobs }: { jobs: Overview["jobs"] }) {
  const { PAUSED: paused, STOPPED: stopped } = jobs;
  if (paused + stopped === 0) return null;
  const first = paused > 0 ? paused : stopped;
  return (
    <p className="muted">
      {plural(first, "job")} {first === 1 ? "is" : "are"} {paused > 0 ? "paused" : "stopped"}
      {paused > 0 && stopped > 0 ? ` and ${number(stopped)} stopped` : ""} on purpose; what only{" "}
      {paused + stopped === 1 ? "it writes" : "they write"} gets no newer.
    </p>
  );
}

function Troubles({ data }: { data: Overview }) {
  const { jobs, truncated } = data.troubles;
  const late = data.stale;
  const lagging = data.lagging;
  if (jobs.length + late.length + lagging.length === 0)
    return (
      <Empty icon="check">
        <strong>Nothing fails, nothing is late, and nothing falls behind.</strong>
        <br />
        {plural(data.jobs.RUNNING, "job")} running.
      </Empty>
    );
  return (
    <Rows label="Jobs in trouble">
      {jobs.map((job) => (
        <JobRow key={job.id} job={job}>
          {job.error ? <p className="row-error wrap">{job.error}</p> : null}
          {job.with.length > 0 ? (
            <p className="row-note">
              together with{" "}
              {job.with.slice(0, 5).map((other, index) => (
                <span key={other.id}>
                  {index > 0 ? ", " : ""}
                  <Link to={jobUrl(other)}>{breakable(other.name)}</Link>
                </span>
              ))}
              {job.with.length > 5 ? ` and ${job.with.length - 5} more` : ""}
            </p>
          ) : null}
          <Affected job={job} reach={job.affected} />
        </JobRow>
      ))}
      {late.map((job) => (
        <JobRow key={job.id} job={job}>
          <p className="row-late">
            Late: usually runs every {duration(job.usualSeconds)}, last seen{" "}
            {duration(job.silentSeconds)} ago
          </p>
          <Affected job={job} reach={job.affected} />
        </JobRow>
      ))}
      {lagging.map((job) => (
        <JobRow key={job.id} job={job}>
          <p className="row-late">
            Falls behind: {number(job.lag)} records of <DatasetLink dataset={job.dataset} /> to
            read, up from {number(job.lagBefore)} (<Ago time={job.since} />)
          </p>
          <Affected job={job} reach={job.affected} />
        </JobRow>
      ))}
      {truncated ? <li className="row muted">More are in trouble; these are the newest.</li> : null}
    </Rows>
  );
}

export function OverviewPage() {
  const { data, error, reload } = useResource<Overview>(PATH, () => true);
  const waited = useRef(false);
  useEffect(() => {
    if (data?.records === 0) waited.current = true;
    else if (data && waited.current) navigate("/graph", { replace: true });
  }, [data]);
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  if (data.records === 0) return <FirstRun />;
  const minutes = data.perMinute;
  const hour = minutes.reduce((sum, minute) => sum + minute.events, 0);
  return (
    <div className="page">
      <h1 className="sr">Overview</h1>
      <Counts data={data} />
      <div className="columns">
        <div className="stack">
          <Panel title="What needs a look" json={PATH}>
            <Troubles data={data} />
            <Planned jobs={data.jobs} />
          </Panel>
          <Alerts alerts={data.alerts} />
          <WhyStale datasets={data.halted} json={PATH} />
          <Panel title="Live" json="/api/v2/live">
            <Feed />
          </Panel>
        </div>
        <div className="stack">
          <Panel
            title="Events a minute"
            json={PATH}
            aside={<span className="muted">{plural(hour, "event")} in the last hour</span>}
          >
            <Plot
              title="Events received a minute"
              unit={count}
              whole
              points={minutes.map((m) => ({ time: m.minute, value: m.events }))}
            />
          </Panel>
          <Panel title="Newest changes" json={PATH}>
            <Changes changes={data.changes} />
          </Panel>
        </div>
      </div>
    </div>
  );
}
