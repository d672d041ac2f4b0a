import { type Box, type Model, type Wire, wireId } from "./model";

/** What has not changed stays the same object, so that only what has changed is drawn again. */

function same<T extends object>(a: T, b: T): boolean {
  const keys = Object.keys(b) as (keyof T)[];
  return keys.length === Object.keys(a).length && keys.every((key) => Object.is(a[key], b[key]));
}

function sameBox(a: Box, b: Box): boolean {
  if (a.rows.length !== b.rows.length) return false;
  if (a.rows.some((row, i) => row.name !== b.rows[i]?.name || row.type !== b.rows[i]?.type))
    return false;
  return same({ ...a, rows: null }, { ...b, rows: null });
}

function sameWire(a: Wire, b: Wire): boolean {
  if ((a.flow === null) !== (b.flow === null)) return false;
  if (a.flow && b.flow && !same(a.flow, b.flow)) return false;
  if (wireId(a.reported) !== wireId(b.reported)) return false;
  return same({ ...a, flow: null, reported: null }, { ...b, flow: null, reported: null });
}

function kept<T extends { id: string }>(old: T[], fresh: T[], equal: (a: T, b: T) => boolean): T[] {
  const known = new Map(old.map((one) => [one.id, one]));
  let moved = old.length !== fresh.length;
  const found = fresh.map((one, i) => {
    const before = known.get(one.id);
    const mine = before && equal(before, one) ? before : one;
    moved ||= mine !== old[i];
    return mine;
  });
  return moved ? found : old;
}

/** The new model, made of the old one's parts wherever they say the same. */
export function reuse(old: Model | undefined, fresh: Model): Model {
  if (!old) return fresh;
  const boxes = kept(old.boxes, fresh.boxes, sameBox);
  const wires = kept(old.wires, fresh.wires, sameWire);
  const columns = kept(old.columns, fresh.columns, (a, b) => a.edge === b.edge);
  const framed = JSON.stringify(old.frames) === JSON.stringify(fresh.frames);
  const frames = framed ? old.frames : fresh.frames;
  const nothing = boxes === old.boxes && wires === old.wires && columns === old.columns && framed;
  return nothing ? old : { boxes, wires, columns, frames };
}
