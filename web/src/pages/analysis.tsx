import { apiPath, segments } from "../lib/api";
import { plural } from "../lib/format";
import { useResource } from "../lib/resource";
import { Link, usePlace } from "../lib/router";
import type { DatasetAnalysis, Named, RankedDatasets } from "../lib/types";
import { Ago, Empty, Loading, Panel, Problem, Unseen } from "../ui/basics";
import { DatasetLink, Facts } from "../ui/lists";

const ORDERS: [string, string][] = [
  ["jobs", "Most jobs downstream"],
  ["datasets", "Most datasets downstream"],
  ["owners", "Most owners downstream"],
  ["unused-columns", "Most unused columns"],
];
const UNUSED = "unused";
const SHOWN = 8;

/** Datasets by their blast radius, or those that are written and that nobody reads. */
export function Ranking({ answer, json }: { answer: RankedDatasets; json: string }) {
  if (answer.datasets.length === 0)
    return <Empty icon="database">No dataset of the last analysis is of this kind.</Empty>;
  return (
    <Panel title="Datasets" json={json}>
      <div className="table-box">
        <table className="table">
          <thead>
            <tr>
              <th>Dataset</th>
              <th className="right">Jobs downstream</th>
              <th className="right">Datasets downstream</th>
              <th className="right">Their owners</th>
              <th className="right">Readers</th>
              <th className="right">Unused columns</th>
            </tr>
          </thead>
          <tbody>
            {answer.datasets.map((one) => (
              <tr key={`${one.namespace} ${one.name}`}>
                <td>
                  <DatasetLink dataset={one} full />
                </td>
                <td className="right">{one.jobs.toLocaleString("en")}</td>
                <td className="right">{one.datasets.toLocaleString("en")}</td>
                <td className="right">{one.owners.toLocaleString("en")}</td>
                <td className="right">{one.readers.toLocaleString("en")}</td>
                <td className="right">
                  {one.unusedColumns} of {one.columns}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {answer.truncated ? <p className="muted">There are more than are shown.</p> : null}
    </Panel>
  );
}

/** The parts of the estate that no edge joins; nothing where there is only one. */
export function Components({ answer, json }: { answer: RankedDatasets; json: string }) {
  const { total, largest } = answer.components;
  if (total < 2) return null;
  return (
    <Panel
      title="Components"
      json={json}
      aside={<span className="muted">parts of the estate that no edge joins</span>}
    >
      <div className="table-box">
        <table className="table">
          <thead>
            <tr>
              <th>Around</th>
              <th className="right">Datasets</th>
              <th className="right">Jobs</th>
              <th className="right">Columns</th>
            </tr>
          </thead>
          <tbody>
            {largest.map((one) => (
              <tr key={one.component}>
                <td>
                  {one.around ? (
                    <DatasetLink dataset={one.around} full />
                  ) : (
                    <span className="muted">nothing that is still known</span>
                  )}
                </td>
                <td className="right">{one.datasets.toLocaleString("en")}</td>
                <td className="right">{one.jobs.toLocaleString("en")}</td>
                <td className="right">{one.columns.toLocaleString("en")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {total > largest.length ? (
        <p className="muted">
          The largest {largest.length} of {total.toLocaleString("en")}.
        </p>
      ) : null}
    </Panel>
  );
}

/** The ranked list of the whole estate; how it is ranked stands in the address. */
export function AnalysisPage() {
  const { query } = usePlace();
  const unused = query.get("show") === UNUSED;
  const by = ORDERS.some(([key]) => key === query.get("by")) ? query.get("by") : "jobs";
  const path = apiPath("/api/v2/analysis", unused ? { show: UNUSED } : { by: by ?? "jobs" });
  const { data, error, reload } = useResource<RankedDatasets>(path);
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  return (
    <div className="page">
      <h1>Blast radius</h1>
      {data.analysedAt ? (
        <p className="lead">
          {plural(data.total, "dataset")}, {data.unused.toLocaleString("en")} of them written and
          read by nobody. Analysed <Ago time={data.analysedAt} />; use counts since{" "}
          <Ago time={data.since} />.
        </p>
      ) : null}
      {data.analysedAt ? (
        <>
          <nav className="segments links" aria-label="Ranked by">
            {ORDERS.map(([key, title]) => (
              <Link
                key={key}
                to={`/analysis?by=${key}`}
                aria-current={!unused && key === by ? "page" : undefined}
              >
                <span>{title}</span>
              </Link>
            ))}
            <Link to={`/analysis?show=${UNUSED}`} aria-current={unused ? "page" : undefined}>
              <span>Read by nobody</span>
            </Link>
          </nav>
          <Ranking answer={data} json={path} />
          <Components answer={data} json={path} />
        </>
      ) : (
        <Empty icon="database">
          The estate was not analysed yet. A server with a lake (<code>--lake</code>) shows here
          what <code>headwater lake analyse</code> finds.
        </Empty>
      )}
      <Unseen count={data.hidden} />
    </div>
  );
}

/** What lies downstream of a dataset and its columns; nothing while it was not analysed. */
export function BlastRadius({ answer, json }: { answer: DatasetAnalysis; json: string }) {
  const { figures, columns } = answer;
  if (!figures) return null;
  const unused = columns.filter((one) => one.unused);
  const far = columns
    .filter((one) => one.jobs > 0)
    .toSorted((a, b) => b.jobs - a.jobs || b.columns - a.columns);
  return (
    <Panel
      title="Blast radius"
      json={json}
      aside={
        <span className="muted">
          <Link to="/analysis">all datasets</Link>, analysed <Ago time={answer.analysedAt} />
        </span>
      }
    >
      <Facts
        items={[
          ["Jobs downstream", figures.jobs.toLocaleString("en")],
          ["Datasets downstream", figures.datasets.toLocaleString("en")],
          ["Their owners", figures.owners.toLocaleString("en")],
          [
            "Use",
            figures.unused
              ? "Written, and read by nobody"
              : `Read by ${plural(figures.readers, "job")}`,
          ],
          [
            "Unused columns",
            unused.length > 0 ? (
              <span key="u" className="mono wrap">
                {unused.map((one) => one.name).join(", ")}
              </span>
            ) : null,
          ],
          [
            "Columns with the most downstream",
            far.length > 0 ? (
              <ul key="f" className="aliases">
                {far.slice(0, SHOWN).map((one) => (
                  <li key={one.name}>
                    <span className="mono">{one.name}</span>{" "}
                    <span className="muted">
                      {plural(one.columns, "column")} in {plural(one.datasets, "dataset")},{" "}
                      {plural(one.jobs, "job")}
                    </span>
                  </li>
                ))}
              </ul>
            ) : null,
          ],
        ]}
      />
    </Panel>
  );
}

export function DatasetBlastRadius({ dataset }: { dataset: Named }) {
  const path = `/api/v2/datasets/${segments(dataset.namespace, dataset.name)}/analysis`;
  const { data } = useResource<DatasetAnalysis>(path);
  return data ? <BlastRadius answer={data} json={path} /> : null;
}
