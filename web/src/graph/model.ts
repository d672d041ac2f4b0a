import type {
  Change,
  ColumnEdge,
  EstateMap,
  Field,
  Group,
  JobFacts,
  MapEdge,
  MapNode,
} from "../lib/types";

/** What is drawn: boxes of a known size and the wires between them. */

export const ROW = 22;
/** What a box needs for a name of one line, and for each line more. */
export const HEAD = 58;
export const LINE = 18;
/** The size of a name, and what stands beside it in a box. */
export const NAME = { size: 14, beside: 21 } as const;
export interface Box {
  id: string;
  kind: "job" | "dataset" | "group";
  width: number;
  height: number;
  /** Where the columns of a dataset begin, below its name. */
  head: number;
  node?: MapNode;
  group?: Group;
  rows: Field[];
  /** Columns that there is no room for. */
  hiddenRows: number;
  /** Neighbours that are not drawn, before and after. */
  up: number;
  down: number;
}

/** How far below its top the wires of a box begin and end: beside its name where columns stand below it. */
export function levelOf(box: Box): number {
  return (box.rows.length > 0 ? box.head : box.height) / 2;
}

export interface Wire {
  id: string;
  source: string;
  target: string;
  change: Change;
  count: number;
  /** Edges the other way, drawn by the same wire. */
  back: number;
  /** The run and dataset whose flow the wire shows, while the run goes on. */
  flow: { run: string; direction: "input" | "output"; name: string } | null;
  streaming: boolean;
  /** Whether the job writes the dataset too: the way back to it. */
  returns: boolean;
  /** The edge as it was reported, which the server knows evidence of. */
  reported: Pick<MapEdge, "origin" | "destination">;
}

export interface ColumnWire {
  id: string;
  edge: ColumnEdge;
}

/** A namespace that stays open while the others are grouped, and the boxes it holds. */
export interface Frame {
  namespace: string;
  members: string[];
}

export interface Model {
  boxes: Box[];
  wires: Wire[];
  columns: ColumnWire[];
  frames: Frame[];
}

export interface Options {
  columns: boolean;
  grouped: boolean;
  /** Namespaces that stay open while the others are grouped. */
  open: string[];
  folds: string[];
}

export function wireId(edge: Pick<MapEdge, "origin" | "destination">): string {
  return `${edge.origin}\n${edge.destination}`;
}

/** Several answers as one: what was asked for, and the neighbours opened since. */
export function merge(maps: EstateMap[], most: number): EstateMap | undefined {
  const [first, ...others] = maps;
  if (!first || others.length === 0) return first;
  const nodes = new Map(first.nodes.map((node) => [node.id, node]));
  let truncated = first.truncated;
  for (const map of others) {
    for (const node of map.nodes) {
      const known = nodes.get(node.id);
      if (known) {
        const more = {
          upstream: Math.min(known.more.upstream, node.more.upstream),
          downstream: Math.min(known.more.downstream, node.more.downstream),
        };
        nodes.set(node.id, joined(known, node, more));
      } else if (nodes.size < most) nodes.set(node.id, node);
      else truncated = true;
    }
  }
  const edges = new Map<string, MapEdge>();
  const columns = new Map<string, ColumnEdge>();
  for (const map of maps) {
    for (const edge of map.edges)
      if (nodes.has(edge.origin) && nodes.has(edge.destination)) edges.set(wireId(edge), edge);
    for (const edge of map.columns?.edges ?? [])
      if (nodes.has(edge.from) && nodes.has(edge.to))
        columns.set(`${edge.origin}\n${edge.destination}`, edge);
  }
  return {
    ...first,
    nodes: [...nodes.values()],
    edges: [...edges.values()],
    truncated,
    parents: parentsOf(maps, nodes),
    ...(first.columns ? { columns: { edges: [...columns.values()], truncated: false } } : {}),
  };
}

function parentsOf(maps: EstateMap[], nodes: Map<string, MapNode>): JobFacts[] {
  const all = maps.flatMap((map) => map.parents ?? []).filter((job) => !nodes.has(job.id));
  return [...new Map(all.map((job) => [job.id, job])).values()];
}

/** A node of two answers: each has the pairs of a job among the datasets that it draws. */
function joined(known: MapNode, node: MapNode, more: MapNode["more"]): MapNode {
  if (known.kind !== "job" || node.kind !== "job" || !known.pairs || !node.pairs)
    return { ...known, more };
  return { ...known, more, pairs: [...known.pairs, ...node.pairs] };
}

/** The nodes on one side of a node that are reached through it alone: those that folding hides. */
export function folded(nodes: MapNode[], edges: MapEdge[], folds: string[]): Set<string> {
  const gone = new Set<string>();
  const known = new Set(nodes.map((node) => node.id));
  for (const fold of folds) {
    const up = fold.startsWith("up|");
    const id = fold.slice(fold.indexOf("|") + 1);
    if (!known.has(id)) continue;
    const ahead = new Map<string, string[]>();
    const back = new Map<string, string[]>();
    for (const { origin, destination } of edges) {
      const [near, far] = up ? [destination, origin] : [origin, destination];
      ahead.set(near, [...(ahead.get(near) ?? []), far]);
      back.set(far, [...(back.get(far) ?? []), near]);
    }
    const hidden = reached(id, ahead);
    hidden.delete(id);
    for (let changed = true; changed; ) {
      changed = false;
      for (const one of hidden) {
        const other = (back.get(one) ?? []).some((near) => near !== id && !hidden.has(near));
        if (other) changed = hidden.delete(one);
      }
    }
    for (const one of hidden) gone.add(one);
  }
  return gone;
}

function reached(start: string, next: Map<string, string[]>): Set<string> {
  const seen = new Set([start]);
  const queue = [start];
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const one of next.get(at) ?? []) {
      if (!seen.has(one)) {
        seen.add(one);
        queue.push(one);
      }
    }
  }
  return seen;
}
