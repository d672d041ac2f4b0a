import { type Change, feed, link } from "../lib/live";
import { datasetId, runUrl, ShownNames } from "../lib/names";
import { Link } from "../lib/router";
import { useStore } from "../lib/store";
import type { EdgeChange, Named, Planned, SchemaChange, State } from "../lib/types";
import { Ago, Empty } from "../ui/basics";
import { Icon, type IconName } from "../ui/icons";
import { DatasetLink, JobLink } from "../ui/lists";
import { StateBadge, shownState } from "../ui/state";

const ICON: Record<string, IconName> = {
  run: "clock",
  job: "gear",
  dataset: "table",
  edges: "graph",
  schema: "column",
};

interface RunNews {
  state: State;
  planned?: Planned;
}

function Line({ change }: { change: Change }) {
  const named = change.data as unknown as Named;
  switch (change.kind) {
    case "run":
      return (
        <>
          <JobLink job={named} /> is{" "}
          <Link to={runUrl(String(change.data.run))}>
            <StateBadge state={shownState(change.data as unknown as RunNews)} />
            <span className="sr"> run of {named.name}</span>
          </Link>
        </>
      );
    case "job":
      return (
        <>
          new job <JobLink job={named} />
        </>
      );
    case "dataset":
      return (
        <>
          new dataset <DatasetLink dataset={named} />
        </>
      );
    case "edges":
      return (
        <>
          <JobLink job={named} /> reads or writes something else
        </>
      );
    case "schema":
      return (
        <>
          <DatasetLink dataset={named} /> has new columns
        </>
      );
    default:
      return <>{change.kind}</>;
  }
}

/** What changes while one looks; the newest on top. */
export function Feed() {
  const changes = useStore(feed);
  const state = useStore(link);
  if (changes.length === 0)
    return (
      <Empty icon="wave">
        {state === "live" ? "Listening. Changes show here as they happen." : "Not connected yet."}
      </Empty>
    );
  return (
    <ul className="feed" aria-label="Live changes">
      {changes.slice(0, 30).map((change, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list only shifts
        <li key={`${change.at}${i}`}>
          <Icon name={ICON[change.kind] ?? "events"} size={15} />
          <span className="feed-text">
            <Line change={change} />
          </span>
          <span className="muted">
            <Ago time={change.at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Ends({ change }: { change: EdgeChange }) {
  const words = [
    ["added", change.added],
    ["removed", change.removed],
  ] as const;
  const names = new ShownNames([...change.added, ...change.removed].map(datasetId));
  return (
    <>
      {words.map(([word, ends]) =>
        ends.length > 0 ? (
          <ul key={word} className="change-ends">
            {ends.slice(0, 4).map((end) => (
              <li key={`${end.direction}${end.namespace}${end.name}`}>
                <span className={`sign ${word}`}>{word === "added" ? "+" : "−"}</span>
                <span className="muted">{end.direction === "input" ? "reads" : "writes"}</span>{" "}
                <DatasetLink dataset={end} full={names.of(datasetId(end), end.name) !== end.name} />
              </li>
            ))}
            {ends.length > 4 ? (
              <li className="muted">and {ends.length - 4 + change.more} more</li>
            ) : null}
          </ul>
        ) : null,
      )}
    </>
  );
}

function Columns({ change }: { change: SchemaChange }) {
  return (
    <p className="change-ends">
      {change.added.map((name) => (
        <span key={name} className="chip added">
          + {name}
        </span>
      ))}
      {change.removed.map((name) => (
        <span key={name} className="chip removed">
          − {name}
        </span>
      ))}
      {change.added.length + change.removed.length === 0 ? (
        <span className="muted">types changed</span>
      ) : null}
    </p>
  );
}

export function Changes({ changes }: { changes: (EdgeChange | SchemaChange)[] }) {
  if (changes.length === 0) return <Empty icon="diff">Nothing has changed yet.</Empty>;
  return (
    <ul className="changes">
      {changes.slice(0, 8).map((change) => (
        <li
          key={
            change.change === "edges"
              ? `e${change.time}${change.job.name}`
              : `s${change.time}${change.dataset.name}`
          }
        >
          <Icon name={change.change === "edges" ? "graph" : "column"} size={16} />
          <div className="change-main">
            {change.change === "edges" ? (
              <>
                <JobLink job={change.job} />
                <Ends change={change} />
              </>
            ) : (
              <>
                <DatasetLink dataset={change.dataset} />
                <Columns change={change} />
              </>
            )}
          </div>
          <span className="muted">
            <Ago time={change.time} />
          </span>
        </li>
      ))}
    </ul>
  );
}
