import type { Places } from "./layered";
import { type Box, levelOf, type Wire } from "./model";

/** Where wires run and where their words stand. */

export interface Ends {
  sx: number;
  sy: number;
  tx: number;
  ty: number;
}

/** How far the way back lies below the way there, where a job reads what it writes. */
const LANE = 15;
/** How far along a wire its words may stand, the middle first. */
const ALONG = [
  0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8, 0.15, 0.85, 0.1, 0.9, 0.05,
  0.95,
];
const ROUNDS = 4;
/** What a pixel away from the end that tells a wire from its neighbours costs. */
const PULL = 2;
/** The room for a rate, and for a rate above a lag; and what lies between them and a box. */
const WORDS = { width: 49, rate: 16, lag: 31, beside: 1 } as const;

/** From the right side of a box to the left side of another; back between the sides that face each other. */
export function endsOf(wire: Wire, boxes: Map<string, Box>, places: Places): Ends | undefined {
  const [from, to] = [boxes.get(wire.source), boxes.get(wire.target)];
  const [a, b] = [places[wire.source], places[wire.target]];
  if (!from || !to || !a || !b) return undefined;
  const [sy, ty] = [a.y + levelOf(from), b.y + levelOf(to)];
  if (wire.returns) return { sx: a.x, sy: sy + LANE, tx: b.x + to.width, ty: ty + LANE };
  return { sx: a.x + from.width, sy, tx: b.x, ty };
}

/** A wire that leaves and arrives level, whichever way it runs. */
export function curve({ sx, sy, tx, ty }: Ends): string {
  const bend = (tx - sx) / 2;
  return `M${sx} ${sy}C${sx + bend} ${sy} ${tx - bend} ${ty} ${tx} ${ty}`;
}

/** The point at a part of a wire's way. */
export function pointAt({ sx, sy, tx, ty }: Ends, part: number): { x: number; y: number } {
  const rest = 1 - part;
  const level = rest ** 3 + 3 * rest ** 2 * part;
  const middle = (sx + tx) / 2;
  const bent = 3 * rest * part;
  return {
    x: rest ** 3 * sx + bent * (rest + part) * middle + part ** 3 * tx,
    y: level * sy + (1 - level) * ty,
  };
}

interface Room {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

function overlap(a: Room, b: Room): number {
  const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return across > 0 && down > 0 ? across * down : 0;
}

/** Where words stand, some part of a wire's way along: between the boxes, where there is room for them. */
export function wordsPoint(ends: Ends, part: number): { x: number; y: number } {
  const { x, y } = pointAt(ends, part);
  const half = WORDS.width / 2 + WORDS.beside;
  const middle = (ends.sx + ends.tx) / 2;
  // Drawn ends lie up to two pixels nearer to each other than the boxes: then there is only the middle.
  const [left, right] = [Math.min(ends.sx + half, middle), Math.max(ends.tx - half, middle)];
  return { x: Math.min(right, Math.max(left, x)), y };
}

/** The room that the words of a wire take, some part of its way along. */
function wordsAt(ends: Ends, height: number, part: number): Room {
  const { x, y } = wordsPoint(ends, part);
  const [across, down] = [WORDS.width / 2, height / 2];
  return { left: x - across, right: x + across, top: y - down, bottom: y + down };
}

/** How often each of these occurs. */
function counted(ids: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/**
 * By wire, how far along it its words stand, so that they cover one another and boxes least. Where wires
 * fan out they stand near the end that only one of them has, and so tell which they belong to.
 */
export function wordsAlong(wires: Wire[], boxes: Box[], places: Places): Map<string, number> {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const rooms = boxes.flatMap((box): Room[] => {
    const at = places[box.id];
    if (!at) return [];
    return [{ left: at.x, right: at.x + box.width, top: at.y, bottom: at.y + box.height }];
  });
  const wordy = wires.filter((wire) => wire.flow !== null && wire.streaming && !wire.returns);
  const leaving = counted(wordy.map((wire) => wire.source));
  const arriving = counted(wordy.map((wire) => wire.target));
  const words = wordy.flatMap((wire) => {
    const ends = endsOf(wire, byId, places);
    if (!ends) return [];
    const height = wire.flow?.direction === "input" ? WORDS.lag : WORDS.rate;
    const [out, into] = [leaving.get(wire.source) ?? 0, arriving.get(wire.target) ?? 0];
    const [part, own] = out > 1 ? [0.95, ends.ty] : into > 1 ? [0.05, ends.sy] : [0.5, null];
    return [{ id: wire.id, ends, height, own, part, room: wordsAt(ends, height, part) }];
  });
  const near = words.map(({ ends }) => {
    const [left, right] = [ends.sx - WORDS.width, ends.tx + WORDS.width];
    const beside = (room: Room) => room.right > left && room.left < right;
    return { words: words.filter((one) => beside(one.room)), rooms: rooms.filter(beside) };
  });
  // Each in turn moves to its best place among the others; a few rounds are enough to settle.
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, one] of words.entries()) {
      let least = Number.POSITIVE_INFINITY;
      for (const part of ALONG) {
        const room = wordsAt(one.ends, one.height, part);
        let cost = one.own === null ? 0 : PULL * Math.abs((room.top + room.bottom) / 2 - one.own);
        // Words may stand on the edge of a box, but not on other words.
        for (const other of near[i]?.words ?? [])
          if (other.id !== one.id) cost += 20 * overlap(room, other.room);
        for (const other of near[i]?.rooms ?? []) cost += overlap(room, other);
        if (cost < least - 1) {
          least = cost;
          Object.assign(one, { part, room });
        }
      }
    }
  return new Map(words.map((one) => [one.id, one.part]));
}
