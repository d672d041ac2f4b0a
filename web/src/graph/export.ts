import { type Kind, nodeKind } from "../lib/kinds";
import { boxName, shortName } from "../lib/names";
import { shown } from "../lib/shown";
import type { EstateMap } from "../lib/types";
import { ICONS } from "../ui/icons";
import { SHAPES, shownState, stateWord } from "../ui/state";
import { curve, endsOf } from "./curves";
import { PAD, type Room, roomOf } from "./frames";
import type { Laid } from "./layout";
import { type Box, LINE, levelOf, NAME, ROW, type Wire } from "./model";
import { wrapped } from "./words";

/** The graph as a picture that stands alone: attributes only, no style sheet, no script. */

const MARGIN = 32;
const FONT = "system-ui, 'Segoe UI', Roboto, 'Open Sans', sans-serif";

function plain(text: string): string {
  return (
    shown(text)
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll('"', "&quot;")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they have no place in XML
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "")
  );
}

function colours(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim() || "#888";
}

function drawBox(box: Box, x: number, y: number, tone: (name: string) => string): string {
  const node = box.node;
  const name = node ? boxName(node) : shortName(box.group?.namespace ?? "");
  const kind: Kind = node ? nodeKind(node) : { icon: "group", label: "Namespace" };
  const radius = box.kind === "job" ? 14 : 6;
  const state = node?.kind === "job" ? shownState(node) : null;
  const edge = state ? tone(state.toLowerCase()) : tone("line");
  const about = box.group
    ? `${box.group.jobs} jobs, ${box.group.datasets} datasets`
    : (kind.short ?? kind.label);
  const most = (box.width - NAME.beside) / NAME.size;
  const lines = wrapped(name, most).slice(0, 4);
  const parts = [
    `<title>${plain(name)}</title>`,
    `<rect x="${x}" y="${y}" width="${box.width}" height="${box.height}" rx="${radius}" fill="${tone("surface")}" stroke="${edge}" stroke-width="1.5"/>`,
    `<path transform="translate(${x + 11} ${y + 9}) scale(.8)" d="${ICONS[kind.icon]}" fill="none" stroke="${tone("accent")}" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round"/>`,
    `<text x="${x + 33}" y="${y + 21}" font-size="11" fill="${tone("muted")}">${plain(about)}</text>`,
    ...lines.map(
      (line, i) =>
        `<text x="${x + 12}" y="${y + 44 + LINE * i}" font-size="${NAME.size}" font-weight="600" fill="${tone("text")}">${plain(line)}</text>`,
    ),
  ];
  if (state && node?.kind === "job")
    parts.push(
      `<path transform="translate(${x + 12} ${y + box.height - 23})" d="${SHAPES[state]}" fill="${edge}" fill-rule="evenodd"/>`,
      `<text x="${x + 30}" y="${y + box.height - 13}" font-size="12" font-weight="600" fill="${edge}">${stateWord(state, node.inferred)}</text>`,
    );
  box.rows.forEach((field, i) => {
    const line = y + box.head + 4 + ROW * i + 15;
    parts.push(
      `<text x="${x + 14}" y="${line}" font-size="11" fill="${tone("text")}">${plain(field.name.slice(0, 24))}</text>`,
      `<text x="${x + box.width - 12}" y="${line}" font-size="10" text-anchor="end" fill="${tone("muted")}">${plain((field.type ?? "").slice(0, 16))}</text>`,
    );
  });
  return `<g>${parts.join("")}</g>`;
}

function bent(x1: number, y1: number, x2: number, y2: number): string {
  const bend = Math.max(30, Math.abs(x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function drawFrame(name: string, room: Room, tone: (name: string) => string): string {
  const { x, y, width, height } = room;
  return (
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="14" fill="${tone("frame")}" stroke="${tone("line-strong")}" stroke-dasharray="6 5"/>` +
    `<text x="${x + PAD.side}" y="${y + 26}" font-size="13" font-weight="600" fill="${tone("text")}">${plain(shortName(name, 60))}</text>`
  );
}

export function toSvg(laid: Laid): { text: string; width: number; height: number } {
  const { model, places } = laid;
  const tone = colours();
  const boxes = new Map(model.boxes.map((box) => [box.id, box]));
  const at = (id: string) => places[id] ?? { x: 0, y: 0 };
  const low = { x: Infinity, y: Infinity };
  const high = { x: -Infinity, y: -Infinity };
  for (const box of model.boxes) {
    const { x, y } = at(box.id);
    low.x = Math.min(low.x, x);
    low.y = Math.min(low.y, y);
    high.x = Math.max(high.x, x + box.width);
    high.y = Math.max(high.y, y + box.height);
  }
  const rooms = model.frames.map((frame) => ({ name: frame.namespace, room: roomOf(frame, laid) }));
  for (const { room } of rooms) {
    if (!room) continue;
    low.x = Math.min(low.x, room.x);
    low.y = Math.min(low.y, room.y);
    high.x = Math.max(high.x, room.x + room.width);
    high.y = Math.max(high.y, room.y + room.height);
  }
  if (model.boxes.length === 0)
    Object.assign(low, { x: 0, y: 0 }, Object.assign(high, { x: 1, y: 1 }));
  const width = Math.ceil(high.x - low.x + 2 * MARGIN);
  const height = Math.ceil(high.y - low.y + 2 * MARGIN);
  const shift = (id: string) => ({ x: at(id).x - low.x + MARGIN, y: at(id).y - low.y + MARGIN });
  const line = (from: string, to: string, fromY?: number, toY?: number) => {
    const a = shift(from);
    const b = shift(to);
    const one = boxes.get(from);
    const other = boxes.get(to);
    return bent(
      a.x + (one?.width ?? 0),
      a.y + (fromY ?? (one ? levelOf(one) : 0)),
      b.x,
      b.y + (toY ?? (other ? levelOf(other) : 0)),
    );
  };
  const row = (box: Box | undefined, field: string) =>
    (box?.head ?? 0) +
    4 +
    ROW * Math.max(0, box?.rows.findIndex((one) => one.name === field) ?? 0) +
    ROW / 2;
  const way = (wire: Wire) => {
    const ends = wire.returns ? endsOf(wire, boxes, places) : undefined;
    if (!ends) return line(wire.source, wire.target);
    const [x, y] = [MARGIN - low.x, MARGIN - low.y];
    return curve({ sx: ends.sx + x, sy: ends.sy + y, tx: ends.tx + x, ty: ends.ty + y });
  };
  const paths = model.wires.map(
    (wire) =>
      `<path d="${way(wire)}" fill="none" stroke="${tone(wire.change === "added" ? "running" : wire.change === "removed" ? "failed" : "wire")}" stroke-width="1.5"${wire.change === "removed" ? ' stroke-dasharray="5 4"' : ""}/>`,
  );
  for (const { edge } of model.columns)
    paths.push(
      `<path d="${line(edge.from, edge.to, row(boxes.get(edge.from), edge.source.field), row(boxes.get(edge.to), edge.target.field))}" fill="none" stroke="${tone("accent")}" stroke-opacity=".5"/>`,
    );
  const frames = rooms.map(({ name, room }) =>
    room
      ? drawFrame(name, { ...room, x: room.x - low.x + MARGIN, y: room.y - low.y + MARGIN }, tone)
      : "",
  );
  const drawn = model.boxes.map((box) => drawBox(box, shift(box.id).x, shift(box.id).y, tone));
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}"><rect width="100%" height="100%" fill="${tone("ground")}"/>${frames.join("")}${paths.join("")}${drawn.join("")}</svg>`;
  return { text, width, height };
}

function download(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function save(
  format: "png" | "svg" | "json",
  laid: Laid,
  map: EstateMap,
): Promise<void> {
  const name = `headwater-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}`;
  if (format === "json") {
    download(
      new Blob([JSON.stringify(map, null, 2)], { type: "application/json" }),
      `${name}.json`,
    );
    return;
  }
  const { text, width, height } = toSvg(laid);
  const picture = new Blob([text], { type: "image/svg+xml" });
  if (format === "svg") {
    download(picture, `${name}.svg`);
    return;
  }
  const scale = Math.min(2, 12_000 / Math.max(width, height));
  const image = new Image();
  const url = URL.createObjectURL(picture);
  await new Promise((resolve, reject) => {
    image.onload = resolve;
    image.onerror = () => reject(new Error("the picture could not be drawn"));
    image.src = url;
  });
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob) download(blob, `${name}.png`);
}
