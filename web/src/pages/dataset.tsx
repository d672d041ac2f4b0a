import { useMemo, useState } from "react";
import { apiPath, segments } from "../lib/api";
import { bytes, duration } from "../lib/format";
import { storeKind } from "../lib/kinds";
import { datasetId, graphUrl, jobUrl } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link } from "../lib/router";
import type {
  ColumnPath,
  DatasetPage as Dataset,
  JobFacts,
  Named,
  PlannedChange,
  TagsAnswer,
  Write,
} from "../lib/types";
import { Ago, Empty, Loading, PageTitle, Panel, Problem, Tag } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { RawFacets } from "../ui/code";
import { Edit, owners } from "../ui/edit";
import { Impact, written } from "../ui/impact";
import { DatasetLink, Facts, JobRow, Rows } from "../ui/lists";
import { count, Plot } from "../ui/plot";
import { DatasetBlastRadius } from "./analysis";
import { AuditPanel } from "./audit";
import { producerTags } from "./job";
import { Columns, Findings, History } from "./schema";
import { Why } from "./why";

const VERDICT: Record<string, string> = {
  live: "Live: a running job writes it",
  fresh: "Fresh",
  stale: "Stale",
  unknown: "Not enough writes to say",
};

/** Whether a dataset is up to date, in the words of the command. */
export function verdictText(verdict: string, writers: number): string {
  if (verdict === "unknown" && writers === 0) return "No job that writes it is known";
  return VERDICT[verdict] ?? verdict;
}

/** What the time of a dataset's last write stands for: by a heartbeat a job only says that it runs. */
export function lastWord(from: string | null): string {
  return from === "heartbeat" ? "Last reported" : "Last written";
}

/** No report of a write does not mean that there was none: a source is often only read. */
export function LastWritten({ time }: { time: string | null }) {
  return <Ago time={time} none="not known" />;
}

function Jobs({
  title,
  jobs,
  path,
  none,
}: {
  title: string;
  jobs: JobFacts[];
  path: string;
  none: string;
}) {
  return (
    <Panel title={title} json={path}>
      {jobs.length === 0 ? <p className="muted">{none}</p> : null}
      <Rows label={title}>
        {jobs.map((job) => (
          <JobRow key={job.id} job={job} />
        ))}
      </Rows>
    </Panel>
  );
}

function Size({ writes, path }: { writes: Write[]; path: string }) {
  const past = writes.toReversed();
  const rows = past
    .filter((w) => w.rows !== null)
    .map((w) => ({ time: w.time, value: w.rows ?? 0 }));
  const sizes = past
    .filter((w) => w.bytes !== null)
    .map((w) => ({ time: w.time, value: w.bytes ?? 0 }));
  if (rows.length === 0 && sizes.length === 0) return null;
  return (
    <div className="columns even">
      {rows.length > 0 ? (
        <Panel title="Rows written" json={path}>
          <Plot title="Rows written a run" unit={count} whole points={rows} />
        </Panel>
      ) : null}
      {sizes.length > 0 ? (
        <Panel title="Bytes written" json={path}>
          <Plot title="Bytes written a run" unit={bytes} points={sizes} />
        </Panel>
      ) : null}
    </div>
  );
}

interface Check {
  name: string;
  column: string;
  ok: boolean;
}

function checks(write: Write): Check[] {
  const found = write.quality.dataQualityAssertions?.assertions;
  if (!Array.isArray(found)) return [];
  return found.map((one) => {
    const check = one as Record<string, unknown>;
    return {
      name: String(check.assertion ?? ""),
      column: String(check.column ?? ""),
      ok: check.success === true,
    };
  });
}

function Quality({ writes, path }: { writes: Write[]; path: string }) {
  const checked = writes
    .map((write) => ({ write, checks: checks(write) }))
    .filter((w) => w.checks.length > 0);
  const latest = checked[0];
  if (!latest) return null;
  const names = [...new Set(checked.flatMap((w) => w.checks.map((c) => `${c.name} ${c.column}`)))];
  return (
    <Panel title="Quality" json={path} aside={<span className="muted">newest first</span>}>
      <ul className="quality">
        {names.map((name) => (
          <li key={name}>
            <span className="mono wrap">{name}</span>
            <span className="quality-marks">
              {checked.slice(0, 24).map(({ write, checks: all }) => {
                const one = all.find((c) => `${c.name} ${c.column}` === name);
                return (
                  <span
                    key={write.run}
                    className={`quality-mark ${one ? (one.ok ? "ok" : "bad") : "none"}`}
                    title={one ? (one.ok ? "held" : "did not hold") : "not checked"}
                  >
                    {one ? (one.ok ? "✓" : "✕") : "·"}
                  </span>
                );
              })}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** From where and to where a dataset moved, and when. */
export function Moves({ moves }: { moves: Dataset["moves"] }) {
  return (
    <ul className="aliases">
      {moves.map(({ from, to, at }) => {
        const other = from ?? to;
        return other ? (
          <li key={`${other.namespace} ${other.name}`}>
            {from ? "from" : "to"} <DatasetLink dataset={other} full /> <Ago time={at} />
          </li>
        ) : null;
      })}
    </ul>
  );
}

export function DatasetPage({ dataset: named }: { dataset: Named }) {
  const path = `/api/v2/datasets/${segments(named.namespace, named.name)}`;
  const concerns = (change: { kind: string; data: Record<string, unknown> }) =>
    change.kind === "run" || change.kind === "edges" || change.data.name === named.name;
  const { data, error, reload } = useResource<Dataset>(path, concerns);
  const columnsPath = useMemo(
    () => apiPath("/api/v2/columns", { node: datasetId(named), depth: 1 }),
    [named],
  );
  const lineage = useResource<ColumnPath>(
    data ? columnsPath : null,
    (change) => change.kind === "edges",
  );
  const tags = useResource<TagsAnswer>(
    data ? `${path}/tags` : null,
    (change) => change.kind === "edges" || change.data.name === named.name,
  );
  const [change, setChange] = useState<PlannedChange | null>(null);
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  const kind = storeKind(data.store, data.type);
  const { freshness } = data;
  const me = datasetId(data);
  return (
    <div className="page">
      <PageTitle kind={kind} of={data}>
        <Link className="button" to={graphUrl(me)}>
          Show in the graph
        </Link>
        <Link className="button" to={graphUrl(me, { columns: "1" })}>
          Columns in the graph
        </Link>
        <Edit kind="dataset" of={data} done={reload} />
      </PageTitle>
      <Panel title="Now" json={path}>
        <Facts
          items={[
            [
              "Freshness",
              <span key="f" className={`verdict ${freshness.verdict}`}>
                {verdictText(freshness.verdict, data.producers.length)}
              </span>,
            ],
            ["Since", freshness.since ? <Ago key="s" time={freshness.since} /> : null],
            [
              "Because of",
              freshness.causes
                .filter((cause) => cause.root)
                .slice(0, 5)
                .map(({ job, trouble }) => (
                  <span key={`${job.namespace} ${job.name}`}>
                    <Link to={jobUrl(job)}>{breakable(job.name)}</Link> ({trouble}){" "}
                  </span>
                )),
            ],
            [
              lastWord(freshness.lastWrittenFrom),
              <LastWritten key="w" time={freshness.lastWrittenAt} />,
            ],
            ["Usually every", freshness.usualSeconds ? duration(freshness.usualSeconds) : null],
            ["Owners", owners(data.facets).join(", ")],
            [
              "Tags",
              [...data.tags, ...producerTags(data.facets)].map((tag) => <Tag key={tag}>{tag}</Tag>),
            ],
            [
              "Also known as",
              data.aliases.length > 0 ? (
                <ul key="n" className="aliases">
                  {data.aliases.map((alias) => (
                    <li key={`${alias.namespace}${alias.name}`} className="mono wrap">
                      {alias.namespace} {alias.name}
                    </li>
                  ))}
                </ul>
              ) : null,
            ],
            ["Moved", data.moves.length > 0 ? <Moves key="m" moves={data.moves} /> : null],
          ]}
        />
      </Panel>
      <Why dataset={data} stale={freshness.verdict === "stale"} />
      <Panel title="Columns" json={columnsPath}>
        {data.columns.length === 0 ? (
          <Empty icon="column">No producer has said which columns there are.</Empty>
        ) : (
          <Columns
            dataset={data}
            edges={lineage.data?.edges ?? []}
            tagged={tags.data?.columns ?? []}
          />
        )}
      </Panel>
      <Panel
        title="Impact of a change"
        json={path}
        aside={
          change ? (
            <Link className="button small" to={graphUrl(me, { impact: written(me, change) })}>
              Light it in the graph
            </Link>
          ) : null
        }
      >
        <Impact
          node={me}
          columns={data.columns.map((field) => field.name)}
          change={change}
          ask={setChange}
        />
      </Panel>
      <DatasetBlastRadius dataset={data} />
      <AuditPanel dataset={data} path={path} />
      {data.findings.length > 0 ? (
        <Panel title="Disagreements on the schema" json={path}>
          <Findings findings={data.findings} />
        </Panel>
      ) : null}
      {data.history.length > 0 ? (
        <Panel title="Schema history" json={path}>
          <History versions={data.history} />
        </Panel>
      ) : null}
      <div className="columns even">
        <Jobs
          title="Written by"
          jobs={data.producers}
          path={path}
          none="No job is known to write it."
        />
        <Jobs
          title="Read by"
          jobs={data.consumers}
          path={path}
          none="No job is known to read it."
        />
      </div>
      <Size writes={data.writes} path={path} />
      <Quality writes={data.writes} path={path} />
      <Panel title="Raw facets" json={path}>
        <RawFacets facets={data.facets} />
      </Panel>
    </div>
  );
}
