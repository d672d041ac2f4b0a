/** A layout that cannot fail and takes no time: layers by longest path, in the order given. */

export interface Shape {
  nodes: { id: string; width: number; height: number }[];
  edges: [string, string][];
  /** Nodes that stay together, as lists of ids. */
  frames: string[][];
  /** Whether wires carry words that need room between the layers. */
  wordy: boolean;
}

export type Places = Record<string, { x: number; y: number }>;

export const GAP = { layer: 51, words: 88, row: 24, frame: 64 } as const;

export function layered({ nodes, edges, wordy }: Shape): Places {
  const out = new Map<string, string[]>();
  const degree = new Map(nodes.map((node) => [node.id, 0]));
  for (const [from, to] of edges) {
    if (!degree.has(from) || !degree.has(to)) continue;
    out.set(from, [...(out.get(from) ?? []), to]);
    degree.set(to, (degree.get(to) ?? 0) + 1);
  }
  const layer = new Map<string, number>();
  const queue = nodes.filter((node) => degree.get(node.id) === 0).map((node) => node.id);
  const left = new Set(nodes.map((node) => node.id));
  while (left.size > 0) {
    let id = queue.shift();
    // A circle has no beginning; any of its nodes will do.
    if (id === undefined) id = left.values().next().value as string;
    if (!left.delete(id)) continue;
    const mine = layer.get(id) ?? 0;
    layer.set(id, mine);
    for (const next of out.get(id) ?? []) {
      if (!left.has(next)) continue;
      layer.set(next, Math.max(layer.get(next) ?? 0, mine + 1));
      const rest = (degree.get(next) ?? 1) - 1;
      degree.set(next, rest);
      if (rest === 0) queue.push(next);
    }
  }
  const places: Places = {};
  const bottoms: number[] = [];
  for (const node of nodes) {
    const at = layer.get(node.id) ?? 0;
    const top = bottoms[at] ?? 0;
    places[node.id] = { x: at * (node.width + (wordy ? GAP.words : GAP.layer)), y: top };
    bottoms[at] = top + node.height + GAP.row;
  }
  return places;
}
