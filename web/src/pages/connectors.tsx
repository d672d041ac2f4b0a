import { useState } from "react";
import { flowKey, useFlow, useRate } from "../lib/flow";
import { brief, lasting, plural } from "../lib/format";
import { graphUrl, jobId, jobUrl } from "../lib/names";
import { useResource } from "../lib/resource";
import { Link } from "../lib/router";
import type { Connector, Named } from "../lib/types";
import { Ago, Copy, Empty, Loading, Panel, Problem } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { Trace } from "../ui/code";
import { Icon } from "../ui/icons";
import { DatasetLink } from "../ui/lists";
import { PreviewPanel } from "../ui/preview";
import { StateBadge, shownState } from "../ui/state";
import { text } from "./run";

const PATH = "/api/v2/connectors";
const ACTIONS = ["apply", "pause", "resume", "stop", "restart", "delete"] as const;

interface Task {
  id: number;
  state: string;
  worker: string;
}

export function tasks(report: Record<string, unknown>): Task[] {
  if (!Array.isArray(report.tasks)) return [];
  return report.tasks.map((one) => {
    const task = (typeof one === "object" && one !== null ? one : {}) as Record<string, unknown>;
    return {
      id: Number(task.id ?? 0),
      state: text(task.state).toUpperCase(),
      worker: text(task.workerId),
    };
  });
}

/** The cluster that a connector runs on, by the name it is watched under; else its namespace. */
export function clusterOf(connector: Connector): string {
  const named = text(connector.report.cluster);
  return named ? `Cluster ${named}` : `Namespace ${connector.namespace}`;
}

/** What there is in a cluster, in figures. */
export function summary(members: Connector[]): string {
  const all = members.flatMap((one) => tasks(one.report));
  const failed = all.filter((task) => task.state === "FAILED").length;
  return [
    plural(members.length, "connector"),
    plural(all.length, "task"),
    failed > 0 ? `${failed} failed` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

/** A word for the shell: quoted unless it is plain. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

const ADDRESS = /^(?:[\w.-]+|\[[\da-f:]+\]):\d+$/i;

/** Where a connector's cluster answers: a cluster without a name goes by its address, workers tell theirs. */
export function addressOf(connector: Connector): string | undefined {
  const { cluster, workerId } = connector.report;
  const workers = tasks(connector.report).map((task) => task.worker);
  return [text(cluster), text(workerId), ...workers].find((one) => ADDRESS.test(one));
}

/** The command line for an action; where no address is known the reader puts it in. */
export function command(action: string, name: string, address?: string): string {
  return action === "apply" ? deploy(`${name}.json`, address) : line(action, name, address);
}

/** The command line that deploys the connector in a file. */
export function deploy(file: string, address?: string): string {
  return line("apply", file, address);
}

function line(action: string, what: string, address = "CONNECT:8083"): string {
  return `headwater connect ${action} ${quoted(what)} --url ${quoted(`http://${address}`)}`;
}

function Rate({
  run,
  direction,
  dataset,
}: {
  run: string | null;
  direction: string;
  dataset: Named;
}) {
  const rate = useRate(run ? flowKey(run, direction, dataset.name) : null);
  if (!rate) return null;
  return (
    <span className={rate.records > 0 ? "rate" : "rate idle"}>
      {brief(rate.records)}/s{rate.lag === null ? "" : `, lag ${brief(rate.lag)}`}
    </span>
  );
}

function Side({
  names,
  direction,
  run,
}: {
  names: Named[];
  direction: string;
  run: string | null;
}) {
  return (
    <ul className="uses">
      {names.slice(0, 8).map((one) => (
        <li key={`${one.namespace}${one.name}`}>
          <DatasetLink dataset={one} full />
          <Rate run={run} direction={direction} dataset={one} />
        </li>
      ))}
      {names.length > 8 ? <li className="muted">and {names.length - 8} more</li> : null}
      {names.length === 0 ? <li className="muted">unknown</li> : null}
    </ul>
  );
}

function Actions({ connector }: { connector: Connector }) {
  const [chosen, setChosen] = useState<string>();
  const halted = ["PAUSED", "STOPPED"].includes(shownState(connector));
  const action = chosen ?? (halted ? "resume" : "restart");
  const words = command(action, connector.name, addressOf(connector));
  return (
    <div className="command">
      <select
        aria-label={`Action on ${connector.name}`}
        value={action}
        onChange={(e) => setChosen(e.target.value)}
      >
        {ACTIONS.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <code className="command-line">{words}</code>
      <Copy text={words} />
    </div>
  );
}

export function Card({ connector }: { connector: Connector }) {
  const list = tasks(connector.report);
  const live = connector.state === "RUNNING" ? connector.run : null;
  const message = text(connector.failure?.message);
  const problems = Array.isArray(connector.report.problems)
    ? connector.report.problems.map(String)
    : [];
  return (
    <article className="connector" aria-label={connector.name}>
      <header>
        <Icon name="plug" />
        <div className="row-main">
          <h3>
            <Link to={jobUrl(connector)}>{breakable(connector.name)}</Link>
          </h3>
          <p className="row-sub">
            <span>{text(connector.report.connectorClass).split(".").pop() || "Connector"}</span>
            <span className="mono">{connector.namespace}</span>
            <Link to={graphUrl(jobId(connector))}>Show in the graph</Link>
          </p>
        </div>
        <div className="row-end">
          <StateBadge state={shownState(connector)} inferred={connector.inferred} />
          {connector.since ? (
            <span className="muted">
              <Ago time={connector.since} words={lasting} />
            </span>
          ) : null}
        </div>
      </header>
      {list.length > 0 ? (
        <ul className="tasks" aria-label="Tasks">
          {list.map((task) => (
            <li key={task.id} className={`task task-${task.state.toLowerCase()}`}>
              <b>Task {task.id}</b> {task.state.toLowerCase()}
              {task.worker ? <span className="muted mono"> {task.worker}</span> : null}
            </li>
          ))}
        </ul>
      ) : null}
      {message ? <Trace message={message} trace={text(connector.failure?.stackTrace)} /> : null}
      {problems.length > 0 ? (
        <ul className="connector-problems">
          {problems.map((problem) => (
            <li key={problem} className="wrap">
              {problem}
            </li>
          ))}
        </ul>
      ) : null}
      <div className="connector-flow">
        <Side names={connector.inputs} direction="input" run={live} />
        <Icon name="chevron" />
        <Side names={connector.outputs} direction="output" run={live} />
      </div>
      <Actions connector={connector} />
    </article>
  );
}

export function ConnectorsPage() {
  useFlow();
  const { data, error, reload } = useResource<{ connectors: Connector[]; truncated: boolean }>(
    PATH,
    (change) => change.kind !== "flow",
  );
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  const clusters = Map.groupBy(data.connectors, clusterOf);
  // With several clusters the reader says which one a new connector is for.
  const only = clusters.size === 1 ? data.connectors.map(addressOf).find(Boolean) : undefined;
  return (
    <div className="page">
      <h1>Connectors</h1>
      {data.connectors.length === 0 ? (
        <Empty icon="plug">
          No connector has been reported.{" "}
          <code>headwater connect watch --url http://CONNECT:8083</code> watches a cluster.
        </Empty>
      ) : null}
      {[...clusters].map(([cluster, members]) => (
        <Panel
          key={cluster}
          title={cluster}
          json={PATH}
          aside={<span className="muted">{summary(members)}</span>}
        >
          <div className="connectors">
            {members.map((one) => (
              <Card key={one.id} connector={one} />
            ))}
          </div>
        </Panel>
      ))}
      {data.truncated ? (
        <p className="muted">Only the first {data.connectors.length} are shown.</p>
      ) : null}
      <PreviewPanel connectors={data.connectors} line={(file) => deploy(file, only)} />
    </div>
  );
}
