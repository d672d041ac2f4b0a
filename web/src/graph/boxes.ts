import { boxName, pieces, shortName } from "../lib/names";
import type {
  ColumnEdge,
  DatasetNode,
  EstateMap,
  Group,
  JobNode,
  MapEdge,
  MapNode,
} from "../lib/types";
import { shownState } from "../ui/state";
import {
  type Box,
  folded,
  HEAD,
  LINE,
  type Model,
  NAME,
  type Options,
  ROW,
  type Wire,
  wireId,
} from "./model";
import { breadth, wrapped } from "./words";

/** From an answer to what is drawn. */

/** Narrow, since pipelines are long: as wide as the longest word needs, the same for all. */
const WIDTHS = [124, 140, 160] as const;
const WIDTH = { columns: 216, group: 192 } as const;
const STATE = 22;
const ROWS = 14;
const LINES = 4;

/** How many lines a name takes, short as it is shown. */
function linesOf(name: string, width: number): number {
  return wrapped(name, (width - NAME.beside) / NAME.size).length;
}

/** The least width that breaks no word and needs no fifth line. */
export function widthFor(nodes: MapNode[]): number {
  const fits = (width: number) =>
    nodes.every(
      (node) =>
        linesOf(boxName(node), width) <= LINES &&
        pieces(boxName(node)).every((piece) => breadth(piece) * NAME.size <= width - NAME.beside),
    );
  return WIDTHS.find(fits) ?? WIDTHS[WIDTHS.length - 1] ?? 160;
}

/** The room for a name of one line or more. */
function headOf(name: string, width: number): number {
  return HEAD + LINE * (Math.min(LINES, linesOf(name, width)) - 1);
}

function datasetBox(node: DatasetNode, width: number, edges: ColumnEdge[], columns: boolean): Box {
  const used = new Set<string>();
  if (columns)
    for (const edge of edges) {
      if (edge.from === node.id) used.add(edge.source.field);
      if (edge.to === node.id) used.add(edge.target.field);
    }
  const fields = columns ? [...(node.fields ?? [])] : [];
  for (const name of used)
    if (!fields.some((field) => field.name === name)) fields.push({ name, type: null });
  // Columns with lineage come first when there is no room for all of them.
  const rows =
    fields.length > ROWS
      ? [
          ...fields.filter((f) => used.has(f.name)),
          ...fields.filter((f) => !used.has(f.name)),
        ].slice(0, ROWS)
      : fields;
  const hiddenRows = fields.length - rows.length;
  const tail = rows.length > 0 ? rows.length * ROW + 8 + (hiddenRows > 0 ? ROW : 0) : 0;
  const mine = rows.length > 0 ? WIDTH.columns : width;
  const head = headOf(boxName(node), mine);
  return {
    id: node.id,
    kind: "dataset",
    width: mine,
    height: head + tail,
    head,
    node,
    rows,
    hiddenRows,
    up: node.more.upstream,
    down: node.more.downstream,
  };
}

function jobBox(node: JobNode, width: number): Box {
  const head = headOf(boxName(node), width);
  return {
    id: node.id,
    kind: "job",
    width,
    height: head + STATE,
    head,
    node,
    rows: [],
    hiddenRows: 0,
    up: node.more.upstream,
    down: node.more.downstream,
  };
}

function groupBox(group: Group): Box {
  const head = headOf(shortName(group.namespace), WIDTH.group);
  return {
    id: group.id,
    kind: "group",
    width: WIDTH.group,
    height: head + (group.jobs > 0 ? STATE : 0),
    head,
    group,
    rows: [],
    hiddenRows: 0,
    up: 0,
    down: 0,
  };
}

function plainWire(edge: MapEdge, nodes: Map<string, MapNode>): Wire {
  const origin = nodes.get(edge.origin);
  const destination = nodes.get(edge.destination);
  const job =
    origin?.kind === "job" ? origin : destination?.kind === "job" ? destination : undefined;
  const dataset = origin?.kind === "dataset" ? origin : destination;
  const direction = job === origin ? "output" : "input";
  return {
    id: wireId(edge),
    source: edge.origin,
    target: edge.destination,
    change: edge.change ?? "",
    count: edge.count ?? 1,
    back: 0,
    // What has ended moves nothing, whatever it said last.
    flow:
      job?.run && job.state === "RUNNING" && dataset
        ? { run: job.run, direction, name: dataset.name }
        : null,
    streaming: job?.processing === "streaming",
    returns: false,
    reported: edge.of ?? edge,
  };
}

/** Boxes and wires for an answer, some of it folded or grouped. */
export function build(map: EstateMap, options: Options): Model {
  if (map.groups)
    return {
      boxes: map.groups.map(groupBox),
      wires: twoWay(map.edges.map((edge) => plainWire(edge, new Map()))),
      columns: [],
      frames: [],
    };
  const gone = folded(map.nodes, map.edges, options.folds);
  const nodes = map.nodes.filter((node) => !gone.has(node.id));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const edges = map.edges.filter((edge) => byId.has(edge.origin) && byId.has(edge.destination));
  const columns = (map.columns?.edges ?? []).filter(
    (edge) => byId.has(edge.from) && byId.has(edge.to),
  );
  if (options.grouped) return grouped(nodes, edges, new Set(options.open));
  const width = widthFor(nodes);
  const boxes = nodes.map((node) =>
    node.kind === "job" ? jobBox(node, width) : datasetBox(node, width, columns, options.columns),
  );
  const shown = new Map(boxes.map((box) => [box.id, box]));
  for (const fold of options.folds) {
    const box = shown.get(fold.slice(fold.indexOf("|") + 1));
    if (!box) continue;
    const hidden = map.edges.filter((edge) =>
      fold.startsWith("up")
        ? edge.destination === box.id && gone.has(edge.origin)
        : edge.origin === box.id && gone.has(edge.destination),
    ).length;
    if (fold.startsWith("up")) box.up += hidden;
    else box.down += hidden;
  }
  return {
    boxes,
    wires: returning(edges.map((edge) => plainWire(edge, byId))),
    columns: options.columns
      ? columns.map((edge) => ({ id: `${edge.origin}\n${edge.destination}`, edge }))
      : [],
    frames: [],
  };
}

/** Wires of jobs that read what they write are marked: both ways would not fit in one direction. */
function returning(wires: Wire[]): Wire[] {
  const known = new Set(wires.map((wire) => wire.id));
  return wires.map((wire) =>
    wire.source.startsWith("dataset:") && known.has(`${wire.target}\n${wire.source}`)
      ? { ...wire, returns: true }
      : wire,
  );
}

/** Two wires between the same ends, one each way, as one: a layout has only one direction. */
export function twoWay(wires: Wire[]): Wire[] {
  const kept = new Map<string, Wire>();
  for (const wire of wires) {
    const other = kept.get(`${wire.target}\n${wire.source}`);
    if (other) other.back += wire.count;
    else kept.set(`${wire.source}\n${wire.target}`, wire);
  }
  return [...kept.values()];
}

function grouped(nodes: MapNode[], edges: MapEdge[], open: Set<string>): Model {
  const groups = new Map<string, Group>();
  const place = new Map<string, string>();
  const boxes: Box[] = [];
  const frames = new Map<string, string[]>();
  const width = widthFor(nodes.filter((node) => open.has(node.namespace)));
  for (const node of nodes) {
    if (open.has(node.namespace)) {
      frames.set(node.namespace, [...(frames.get(node.namespace) ?? []), node.id]);
      boxes.push(node.kind === "job" ? jobBox(node, width) : datasetBox(node, width, [], false));
      place.set(node.id, node.id);
      continue;
    }
    const id = `namespace:${node.namespace}`;
    const group = groups.get(id) ?? {
      id,
      namespace: node.namespace,
      jobs: 0,
      datasets: 0,
      states: {},
    };
    if (node.kind === "job") {
      group.jobs += 1;
      const state = shownState(node);
      group.states[state] = (group.states[state] ?? 0) + 1;
    } else group.datasets += 1;
    groups.set(id, group);
    place.set(node.id, id);
  }
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const wires = new Map<string, Wire>();
  for (const edge of edges) {
    const origin = place.get(edge.origin);
    const destination = place.get(edge.destination);
    if (!origin || !destination || origin === destination) continue;
    const key = `${origin}\n${destination}`;
    const known = wires.get(key);
    if (known) known.count += 1;
    else
      wires.set(key, {
        ...plainWire(edge, byId),
        id: key,
        source: origin,
        target: destination,
        flow: null,
        count: 1,
      });
  }
  return {
    boxes: [...boxes, ...[...groups.values()].map(groupBox)],
    wires: twoWay([...wires.values()]),
    columns: [],
    frames: [...frames].map(([namespace, members]) => ({ namespace, members })),
  };
}
