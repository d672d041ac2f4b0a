import type { Laid } from "./layout";
import { type Box, levelOf } from "./model";

/** The box that arrow keys start at: the one that has the focus, else the selected one. */
export function startOf(
  focused: string | undefined,
  selected: string | null,
  { model }: Laid,
): string | null {
  return model.boxes.some((box) => box.id === focused) ? (focused ?? null) : selected;
}

/** Where an arrow key leads from a box: along a wire to the nearest, or to a neighbour in its layer. */
export function beside(key: string, from: string | null, { model, places }: Laid): Box | undefined {
  if (!/^Arrow(Left|Right|Up|Down)$/.test(key)) return undefined;
  const boxes = new Map(model.boxes.map((box) => [box.id, box]));
  const here = from ? places[from] : undefined;
  if (!from || !here) return model.boxes[0];
  const level = (id: string) => {
    const box = boxes.get(id);
    return (places[id]?.y ?? 0) + (box ? levelOf(box) : 0);
  };
  const mine = level(from);
  let ids: string[];
  if (key === "ArrowLeft") ids = model.wires.filter((w) => w.target === from).map((w) => w.source);
  else if (key === "ArrowRight")
    ids = model.wires.filter((w) => w.source === from).map((w) => w.target);
  else {
    const sign = key === "ArrowDown" ? 1 : -1;
    ids = model.boxes
      .filter((box) => Math.abs((places[box.id]?.x ?? 0) - here.x) < box.width / 2)
      .map((box) => box.id)
      .filter((id) => (level(id) - mine) * sign > 0);
  }
  const nearest = ids.toSorted((a, b) => Math.abs(level(a) - mine) - Math.abs(level(b) - mine))[0];
  return nearest ? boxes.get(nearest) : undefined;
}
