import type { Node, NodeProps } from "@xyflow/react";
import { memo } from "react";
import { plural } from "../lib/format";
import { Icon } from "../ui/icons";
import type { Laid } from "./layout";
import type { Frame } from "./model";
import type { Actions } from "./nodes";

/** An opened namespace: a frame round its nodes, with its name and a way to close it again. */

export const PAD = { side: 18, top: 42, bottom: 18 } as const;

export interface Room {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The room that a frame takes up: its members' and some air round them. */
export function roomOf(frame: Frame, { model, places }: Laid): Room | undefined {
  const inside = new Set(frame.members);
  const mine = model.boxes.filter((box) => inside.has(box.id) && places[box.id]);
  if (mine.length === 0) return undefined;
  const at = (id: string) => places[id] ?? { x: 0, y: 0 };
  const left = Math.min(...mine.map((box) => at(box.id).x)) - PAD.side;
  const top = Math.min(...mine.map((box) => at(box.id).y)) - PAD.top;
  const right = Math.max(...mine.map((box) => at(box.id).x + box.width)) + PAD.side;
  const bottom = Math.max(...mine.map((box) => at(box.id).y + box.height)) + PAD.bottom;
  return { x: left, y: top, width: right - left, height: bottom - top };
}

export type FrameNode = Node<{ frame: Frame; actions: Actions }, "frame">;

export function frameNodes(laid: Laid, actions: Actions): FrameNode[] {
  return laid.model.frames.flatMap((frame): FrameNode[] => {
    const room = roomOf(frame, laid);
    if (!room) return [];
    return [
      {
        id: `frame:${frame.namespace}`,
        type: "frame",
        position: { x: room.x, y: room.y },
        width: room.width,
        height: room.height,
        data: { frame, actions },
        zIndex: -1,
        // The ground shows through: it can be dragged and clicked as elsewhere.
        style: { pointerEvents: "none" },
        ariaLabel: `Namespace ${frame.namespace}, open`,
        selectable: false,
        focusable: false,
        draggable: false,
        connectable: false,
        deletable: false,
      },
    ];
  });
}

function FrameView({ data }: NodeProps<FrameNode>) {
  const { frame, actions } = data;
  return (
    <div className="frame">
      <div className="frame-head">
        <Icon name="group" size={16} />
        <span className="frame-name" title={frame.namespace}>
          {frame.namespace}
        </span>
        <span className="frame-count">{plural(frame.members.length, "node")}</span>
        <button
          type="button"
          className="frame-close"
          aria-label={`Close namespace ${frame.namespace}`}
          onClick={() => actions.close(frame.namespace)}
        >
          Close
        </button>
      </div>
    </div>
  );
}

export const FrameNodeView = memo(FrameView);
