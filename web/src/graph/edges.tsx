import {
  BaseEdge,
  type Edge,
  EdgeLabelRenderer,
  type EdgeProps,
  getBezierPath,
} from "@xyflow/react";
import { memo } from "react";
import { flowKey, useRate } from "../lib/flow";
import { brief } from "../lib/format";
import { how } from "../pages/schema";
import { curve, type Ends, pointAt, wordsPoint } from "./curves";
import { light, useLevel } from "./light";
import type { ColumnWire, Wire } from "./model";

export type WireEdge = Edge<
  {
    wire: Wire;
    still: boolean;
    /** How far along the wire its words stand. */
    along: number;
    /** Where a wire runs that leads back to what writes its dataset. */
    back: Ends | undefined;
  },
  "wire"
>;
export type ColumnWireEdge = Edge<{ wire: ColumnWire; chosen: boolean }, "column">;

/** Words that fit between two boxes. */
const SHORT: Record<string, string> = { transformation: "transform" };

/** The way of a wire and the place of its words. */
function drawn(props: EdgeProps<WireEdge>): { path: string; x: number; y: number } {
  const { back, along = 0.5 } = props.data ?? {};
  if (back) return { path: curve(back), ...pointAt(back, along) };
  const [path, x, y] = getBezierPath(props);
  const { sourceX: sx, sourceY: sy, targetX: tx, targetY: ty } = props;
  return { path, ...(tx > sx ? wordsPoint({ sx, sy, tx, ty }, along) : { x, y }) };
}

function WireView(props: EdgeProps<WireEdge>) {
  const { data, id } = props;
  const level = useLevel(light.wire, id);
  const wire = data?.wire;
  const flow = wire?.flow;
  const rate = useRate(flow && !data?.still ? flowKey(flow.run, flow.direction, flow.name) : null);
  const { path, x, y } = drawn(props);
  const moving = rate !== undefined && rate.records > 0;
  const kind = `wire ${level} ${wire?.change ?? ""} ${wire?.streaming ? "streaming" : ""}`;
  return (
    <>
      <BaseEdge path={path} className={kind} interactionWidth={14} />
      {moving ? <path d={path} className={`wire-flow ${level}`} /> : null}
      {rate && !wire?.returns ? (
        <EdgeLabelRenderer>
          <div
            className={`wire-label ${level} ${moving ? "" : "idle"}`}
            title={rate.last ? `last record ${rate.last}` : undefined}
            ref={(element) => {
              if (element)
                element.style.transform = `translate(-50%, -50%) translate(${x}px, ${y}px)`;
            }}
          >
            <b>{brief(rate.records)}/s</b>
            {rate.lag ? <span>lag {brief(rate.lag)}</span> : null}
          </div>
        </EdgeLabelRenderer>
      ) : null}
      {wire && wire.count + wire.back > 1 && !rate ? (
        <EdgeLabelRenderer>
          <div
            className={`wire-label sum ${level}`}
            ref={(element) => {
              if (element)
                element.style.transform = `translate(-50%, -50%) translate(${x}px, ${y}px)`;
            }}
          >
            {wire.back > 0 ? `→ ${brief(wire.count)} ← ${brief(wire.back)}` : brief(wire.count)}
          </div>
        </EdgeLabelRenderer>
      ) : null}
    </>
  );
}

function ColumnWireView(props: EdgeProps<ColumnWireEdge>) {
  const { data, id } = props;
  const level = useLevel(light.columnWire, id);
  const [path] = getBezierPath(props);
  const x = props.targetX - 3;
  const y = props.targetY;
  if (!data) return null;
  const word = how(data.wire.edge);
  return (
    <>
      <BaseEdge
        path={path}
        className={`column-wire how-${word} ${level} ${data.chosen ? "chosen" : ""}`}
        interactionWidth={10}
      />
      {level === "self" ? (
        <EdgeLabelRenderer>
          <div
            className={`wire-label how how-${word}`}
            ref={(element) => {
              if (element)
                element.style.transform = `translate(-100%, -50%) translate(${x}px, ${y}px)`;
            }}
          >
            {SHORT[word] ?? word}
          </div>
        </EdgeLabelRenderer>
      ) : null}
    </>
  );
}

export const WireEdgeView = memo(WireView);
export const ColumnEdgeView = memo(ColumnWireView);
