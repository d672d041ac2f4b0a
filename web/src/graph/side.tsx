import { flowKey, useRate } from "../lib/flow";
import { brief, clock, shortRun } from "../lib/format";
import { nodeKind } from "../lib/kinds";
import { nodeUrl, runUrl } from "../lib/names";
import { Link } from "../lib/router";
import type { JobNode, MapNode } from "../lib/types";
import { Ago } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { Icon } from "../ui/icons";
import { StateBadge, shownState } from "../ui/state";
import { SideHead } from "./edgeside";
import type { Box, Wire } from "./model";

interface SideProps {
  box: Box;
  wires: Wire[];
  nodes: Map<string, MapNode>;
  close: () => void;
  focus: (id: string) => void;
  fold: (id: string, side: "up" | "down") => void;
  select: (id: string) => void;
  impact: (id: string) => void;
}

function Neighbour({
  wire,
  other,
  select,
}: {
  wire: Wire;
  other: MapNode;
  select: (id: string) => void;
}) {
  const rate = useRate(
    wire.flow ? flowKey(wire.flow.run, wire.flow.direction, wire.flow.name) : null,
  );
  return (
    <li>
      <button type="button" className="link" onClick={() => select(other.id)}>
        <Icon name={nodeKind(other).icon} size={15} /> {breakable(other.name)}
      </button>
      {rate ? (
        <span className="rate">
          {brief(rate.records)}/s{rate.lag ? `, lag ${rate.lag}` : ""}
        </span>
      ) : null}
      {rate?.last ? (
        <span className="muted">
          last record <Ago time={rate.last} />
        </span>
      ) : null}
    </li>
  );
}

/** What a program does: the actions that its box is drawn for. */
function Actions({ actions }: { actions: JobNode[] }) {
  return (
    <section aria-label="Actions">
      <h3>
        Actions <span className="muted">{actions.length}</span>
      </h3>
      <ul className="side-list">
        {actions.slice(0, 30).map((action) => (
          <li key={action.id}>
            <Link className="wrap" to={nodeUrl("job", action)}>
              {breakable(action.name)}
            </Link>
            <StateBadge state={shownState(action)} inferred={action.inferred} />
          </li>
        ))}
      </ul>
    </section>
  );
}

export function NodeSide({ box, wires, nodes, close, focus, fold, select, impact }: SideProps) {
  const node = box.node;
  if (!node) return null;
  const kind = nodeKind(node);
  const sides = [
    {
      name: "Upstream",
      side: "up" as const,
      list: wires.filter((w) => w.target === node.id),
      end: "source" as const,
    },
    {
      name: "Downstream",
      side: "down" as const,
      list: wires.filter((w) => w.source === node.id),
      end: "target" as const,
    },
  ];
  return (
    <aside className="side" aria-label={`${kind.label} ${node.name}`}>
      <SideHead icon={kind.icon} title={kind.label} close={close} />
      <h2 className="wrap">
        <Link to={nodeUrl(node.kind, node)}>{breakable(node.name)}</Link>
      </h2>
      <p className="mono muted wrap">{node.namespace}</p>
      {node.kind === "job" ? (
        <p className="side-state">
          <StateBadge state={shownState(node)} inferred={node.inferred} />
          <span className="muted" title={clock(node.since)}>
            <Ago time={node.since} />
          </span>
          {node.run ? <Link to={runUrl(node.run)}>run {shortRun(node.run)}</Link> : null}
        </p>
      ) : (
        <p className="muted">
          last reported <Ago time={node.updatedAt} />
        </p>
      )}
      {node.kind === "job" && node.error ? <p className="row-error wrap">{node.error}</p> : null}
      {node.kind === "job" && node.assumed ? (
        <p className="muted">
          It does not report which input feeds which output: every input is taken to feed all.
        </p>
      ) : null}
      {node.kind === "job" && node.actions ? <Actions actions={node.actions} /> : null}
      <div className="side-actions">
        <button type="button" className="button small" onClick={() => focus(node.id)}>
          <Icon name="target" size={14} /> Centre on it
        </button>
        <Link className="button small" to={nodeUrl(node.kind, node)}>
          Open its page
        </Link>
        {node.kind === "dataset" ? (
          <button type="button" className="button small" onClick={() => impact(node.id)}>
            Impact of a change
          </button>
        ) : null}
      </div>
      {sides.map(({ name, side, list, end }) => (
        <section key={name} aria-label={name}>
          <h3>
            {name} <span className="muted">{list.length}</span>
            {list.length > 0 ? (
              <button type="button" className="link" onClick={() => fold(node.id, side)}>
                fold
              </button>
            ) : null}
          </h3>
          <ul className="side-list">
            {list.slice(0, 30).map((wire) => {
              const other = nodes.get(wire[end]);
              return other ? (
                <Neighbour key={wire.id} wire={wire} other={other} select={select} />
              ) : null;
            })}
          </ul>
        </section>
      ))}
    </aside>
  );
}
