import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import { lasting, plural } from "../lib/format";
import { nodeKind } from "../lib/kinds";
import { boxName, shortName } from "../lib/names";
import type { Field, ShownState } from "../lib/types";
import { breakable } from "../ui/breakable";
import { Icon } from "../ui/icons";
import { EFFECTS } from "../ui/impact";
import { StateMark, shownState, stateWord } from "../ui/state";
import { light, useLevel } from "./light";
import { type Box, levelOf } from "./model";

export interface Actions {
  unfold: (id: string, side: "up" | "down") => void;
  column: (id: string | null) => void;
  group: (namespace: string) => void;
  close: (namespace: string) => void;
}

export type BoxNode = Node<{ box: Box; actions: Actions }, "box">;

/** The ends of the wires of a box itself; those of its columns have the names of columns. */
export const PORTS = { in: "in", out: "out" } as const;

function columnId(box: Box, field: Field): string {
  return `datasetField:${box.id.slice("dataset:".length)}:${field.name}`;
}

function Row({ box, field, pick }: { box: Box; field: Field; pick: Actions["column"] }) {
  const id = columnId(box, field);
  const level = useLevel(light.columnLevel, id);
  return (
    <button
      type="button"
      className={`col ${level}`}
      title={`${field.name} ${field.type ?? ""}`}
      onClick={(event) => {
        event.stopPropagation();
        pick(id);
      }}
    >
      <Handle
        id={`in ${field.name}`}
        type="target"
        position={Position.Left}
        isConnectable={false}
      />
      <span className="col-name">{field.name}</span>
      <span className="col-type">{field.type ?? ""}</span>
      <Handle
        id={`out ${field.name}`}
        type="source"
        position={Position.Right}
        isConnectable={false}
      />
    </button>
  );
}

function More({
  count,
  side,
  box,
  actions,
}: {
  count: number;
  side: "up" | "down";
  box: Box;
  actions: Actions;
}) {
  if (count === 0) return null;
  const where = side === "up" ? "upstream" : "downstream";
  return (
    <button
      type="button"
      className={`more more-${side}`}
      aria-label={`Show ${count} more ${where} of ${box.node?.name ?? ""}`}
      title={`${count} more ${where}`}
      onClick={(event) => {
        event.stopPropagation();
        actions.unfold(box.id, side);
      }}
    >
      +{count}
    </button>
  );
}

function Content({ box, actions }: { box: Box; actions: Actions }) {
  const node = box.node;
  if (!node) return null;
  const kind = nodeKind(node);
  return (
    <>
      <div className="box-head">
        <span className="box-kind" title={kind.label}>
          <Icon name={kind.icon} size={14} />
          <span>{kind.short ?? kind.label}</span>
          {node.change ? <span className={`box-change ${node.change}`}>{node.change}</span> : null}
        </span>
        <span className="box-name" title={node.name}>
          {breakable(boxName(node))}
        </span>
        {node.kind === "job" ? (
          <span className={`box-state state-${shownState(node).toLowerCase()}`}>
            <StateMark state={shownState(node)} size={11} />
            {stateWord(shownState(node), node.inferred)}
          </span>
        ) : null}
      </div>
      {box.rows.length > 0 ? (
        <div className="cols">
          {box.rows.map((field) => (
            <Row key={field.name} box={box} field={field} pick={actions.column} />
          ))}
          {box.hiddenRows > 0 ? (
            <div className="col-more">and {plural(box.hiddenRows, "column")} more</div>
          ) : null}
        </div>
      ) : null}
    </>
  );
}

const WORST: ShownState[] = [
  "FAILED",
  "ABORTED",
  "RUNNING",
  "PAUSED",
  "STOPPED",
  "COMPLETED",
  "NEW",
  "DELETED",
];

function GroupContent({ box, actions }: { box: Box; actions: Actions }) {
  const group = box.group;
  if (!group) return null;
  return (
    <button type="button" className="group-open" onClick={() => actions.group(group.namespace)}>
      <span className="box-head">
        <span className="box-kind">
          <Icon name="group" size={16} />
          <span>
            {[
              group.jobs ? plural(group.jobs, "job") : "",
              group.datasets ? plural(group.datasets, "dataset") : "",
            ]
              .filter(Boolean)
              .join(", ")}
          </span>
        </span>
        <span className="box-name" title={group.namespace}>
          {breakable(shortName(group.namespace))}
        </span>
      </span>
      <span className="group-states">
        {WORST.filter((state) => group.states[state]).map((state) => (
          <span
            key={state}
            className={`state-${state.toLowerCase()}`}
            title={`${group.states[state]} ${stateWord(state).toLowerCase()}`}
          >
            <StateMark state={state} size={10} /> {group.states[state]}
            <span className="sr"> {stateWord(state).toLowerCase()}</span>
          </span>
        ))}
      </span>
    </button>
  );
}

export function describe(box: Box): string {
  const node = box.node;
  if (!node) return `Namespace ${box.group?.namespace ?? ""}`;
  const kind = nodeKind(node).label;
  if (node.kind === "dataset") return `${kind} ${node.name}`;
  return `${kind} ${node.name}, ${stateWord(shownState(node), node.inferred)} ${lasting(node.since)}`;
}

function BoxView({ data, selected }: NodeProps<BoxNode>) {
  const { box, actions } = data;
  const level = useLevel(light.level, box.id);
  const node = box.node;
  const port = { top: `${(100 * levelOf(box)) / box.height}%` };
  const state = node?.kind === "job" ? `job-${shownState(node).toLowerCase()}` : "";
  return (
    <div
      className={`box box-${box.kind} ${state} ${node?.change ? `change-${node.change}` : ""} ${EFFECTS.some(([effect]) => effect === level) ? `hit-${level}` : level} ${selected ? "selected" : ""}`}
    >
      {EFFECTS.some(([effect]) => effect === level) ? (
        <span className={`box-effect effect effect-${level}`}>{level}</span>
      ) : null}
      <Handle
        id={PORTS.in}
        type="target"
        position={Position.Left}
        style={port}
        isConnectable={false}
      />
      {box.kind === "group" ? (
        <GroupContent box={box} actions={actions} />
      ) : (
        <Content box={box} actions={actions} />
      )}
      <Handle
        id={PORTS.out}
        type="source"
        position={Position.Right}
        style={port}
        isConnectable={false}
      />
      <More count={box.up} side="up" box={box} actions={actions} />
      <More count={box.down} side="down" box={box} actions={actions} />
    </div>
  );
}

export const BoxNodeView = memo(BoxView);
