import { getViewportForBounds, type Viewport } from "@xyflow/react";
import { shownState } from "../ui/state";
import { type Room, roomOf } from "./frames";
import type { Laid } from "./layout";
import type { Box, Model } from "./model";

/** Which part of the graph the window shows by itself, and how large. */

/** The least zoom at which the smallest words can be read. */
export const READABLE = 0.74;
const EDGE = 16;
export const PADDING = `${EDGE}px` as const;

export interface Size {
  width: number;
  height: number;
}

/** Small graphs are not blown up, but on a wall screen they may be seen from afar. */
export function largest(size: Size): number {
  return Math.min(2, Math.max(1.15, size.width / 1_600));
}

/** A place in the graph, by the id of what stands there. */
type Spot = Room & { id: string };

function spotsOf(laid: Laid): { boxes: Map<Box, Spot>; frames: Spot[] } {
  const boxes = new Map(
    laid.model.boxes.map((box) => {
      const { x, y } = laid.places[box.id] ?? { x: 0, y: 0 };
      return [box, { id: box.id, x, y, width: box.width, height: box.height }];
    }),
  );
  const frames = laid.model.frames.flatMap((frame) => {
    const room = roomOf(frame, laid);
    return room ? [{ id: frame.namespace, ...room }] : [];
  });
  return { boxes, frames };
}

function boundsOf(rooms: Room[]): Room {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const room of rooms) {
    left = Math.min(left, room.x);
    top = Math.min(top, room.y);
    right = Math.max(right, room.x + room.width);
    bottom = Math.max(bottom, room.y + room.height);
  }
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/** Whether a box is, or holds, a job that ended in this state without anybody wanting it so. */
function ended(state: "FAILED" | "ABORTED"): (box: Box) => boolean {
  return ({ group, node }) =>
    group ? (group.states[state] ?? 0) > 0 : node?.kind === "job" && shownState(node) === state;
}

/** What is looked for first: what was asked for or opened, what changed, what failed or was aborted, the beginning. */
export function matters(laid: Laid, asked: (string | null)[]): Spot | undefined {
  const { boxes, frames } = spotsOf(laid);
  const ordered = [...boxes].toSorted(([, a], [, b]) => a.x - b.x || a.y - b.y);
  const first = (wanted: (box: Box) => boolean) => ordered.find(([box]) => wanted(box))?.[1];
  for (const id of asked) {
    const found = id ? first((box) => box.id === id) : undefined;
    if (found) return found;
  }
  return (
    frames.at(-1) ??
    first((box) => Boolean(box.node?.change)) ??
    first(ended("FAILED")) ??
    first(ended("ABORTED")) ??
    first(() => true)
  );
}

/** All of the graph; where it would be too small to read, the part round what matters. */
export function sight(laid: Laid, size: Size, asked: (string | null)[]): Viewport {
  const { boxes, frames } = spotsOf(laid);
  const room = boundsOf([...boxes.values(), ...frames]);
  const { width, height } = size;
  const whole = getViewportForBounds(room, width, height, 0.01, largest(size), PADDING);
  const middle = matters(laid, asked);
  if (whole.zoom >= READABLE || !middle) return whole;
  const zoom = READABLE;
  const along = (length: number, from: number, extent: number, at: number) => {
    const low = length - EDGE - (from + extent) * zoom;
    const high = EDGE - from * zoom;
    // Where all fits this way it stands in the middle; else no room is lost beyond its ends.
    return low >= high ? (low + high) / 2 : Math.min(high, Math.max(low, length / 2 - at * zoom));
  };
  return {
    x: along(width, room.x, room.width, middle.x + middle.width / 2),
    y: along(height, room.y, room.height, middle.y + middle.height / 2),
    zoom,
  };
}

/** The same view, moved just so far that a box is in it. */
export function within(view: Viewport, size: Size, box: Box, laid: Laid): Viewport {
  const place = laid.places[box.id];
  if (!place) return view;
  const along = (offset: number, length: number, from: number, extent: number) => {
    const low = EDGE - from * view.zoom;
    const high = length - EDGE - (from + extent) * view.zoom;
    // What is larger than the window is shown from its beginning.
    return high < low ? low : Math.min(high, Math.max(low, offset));
  };
  const x = along(view.x, size.width, place.x, box.width);
  const y = along(view.y, size.height, place.y, box.height);
  return x === view.x && y === view.y ? view : { x, y, zoom: view.zoom };
}

/** The dataset that a column belongs to. */
export function ownerOf(column: string | null, model: Model): string | null {
  if (!column) return null;
  const name = `dataset:${column.slice("datasetField:".length)}`;
  return model.boxes.find((box) => name.startsWith(`${box.id}:`))?.id ?? null;
}
