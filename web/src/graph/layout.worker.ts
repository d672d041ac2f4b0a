import { Graph, layout } from "@dagrejs/dagre";
import { GAP, type Places, type Shape } from "./layered";

export function arrange({ nodes, edges, frames, wordy }: Shape): Places {
  const graph = new Graph({ compound: frames.length > 0 });
  graph.setGraph({
    rankdir: "LR",
    // A frame needs room for its name between its nodes and the others.
    nodesep: frames.length > 0 ? GAP.frame : GAP.row,
    ranksep: wordy ? GAP.words : GAP.layer,
    ranker: nodes.length > 120 ? "tight-tree" : "network-simplex",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: node.width, height: node.height });
  for (const [i, frame] of frames.entries()) {
    graph.setNode(`frame ${i}`, {});
    for (const id of frame) graph.setParent(id, `frame ${i}`);
  }
  for (const [from, to] of edges) graph.setEdge(from, to);
  layout(graph);
  const places: Places = {};
  for (const node of nodes) {
    const { x, y } = graph.node(node.id) as { x: number; y: number };
    places[node.id] = { x: Math.round(x - node.width / 2), y: Math.round(y - node.height / 2) };
  }
  return places;
}

if (typeof WorkerGlobalScope !== "undefined" && self instanceof WorkerGlobalScope) {
  self.onmessage = (event: MessageEvent<{ ticket: number; shape: Shape }>) => {
    const { ticket, shape } = event.data;
    try {
      self.postMessage({ ticket, places: arrange(shape) });
    } catch (error) {
      self.postMessage({ ticket, problem: String(error) });
    }
  };
}
