import {
  Background,
  Controls,
  MiniMap,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { memo, useEffect, useMemo, useRef } from "react";
import { shownState } from "../ui/state";
import { endsOf, wordsAlong } from "./curves";
import { ColumnEdgeView, type ColumnWireEdge, type WireEdge, WireEdgeView } from "./edges";
import { largest, PADDING, READABLE } from "./fit";
import { type FrameNode, FrameNodeView, frameNodes } from "./frames";
import type { Laid } from "./layout";
import { light } from "./light";
import { type Actions, type BoxNode, BoxNodeView, describe, PORTS } from "./nodes";
import { useSight } from "./sight";
import { beside, startOf } from "./walk";

const NODES = { box: BoxNodeView, frame: FrameNodeView };
/** The room of the map in the strip below the graph: wide and low, as pipelines are. */
const MAP = { width: 220, height: 62 };
const EDGES = { wire: WireEdgeView, column: ColumnEdgeView };

interface CanvasProps {
  laid: Laid;
  still: boolean;
  /** The node that the view is about. */
  anchor: string | null;
  selected: string | null;
  column: string | null;
  /** Whether the side panel lights nodes itself. */
  lit: boolean;
  chosen: string | null;
  actions: Actions;
  select: (id: string | null) => void;
  choose: (edge: string | null) => void;
  focus: (id: string) => void;
}

function colour(node: BoxNode | FrameNode): string {
  if (node.type === "frame") return "var(--frame)";
  const one = node.data.box.node;
  if (one?.kind === "job") return `var(--${shownState(one).toLowerCase()})`;
  return node.data.box.kind === "group" ? "var(--accent)" : "var(--mini)";
}

/** A job or a dataset: what can be selected and centred on. */
function isPlain(node: BoxNode | FrameNode): boolean {
  return node.type !== "frame" && node.data.box.kind !== "group";
}

function Inner(props: CanvasProps) {
  const { laid, still, anchor, selected, column, lit, chosen, actions } = props;
  const { select, choose, focus } = props;
  const flow = useReactFlow();
  const size = useSight(laid, { anchor, selected, column });
  const { model, places } = laid;

  const known = useRef(new Map<string, BoxNode>());
  const boxes = useMemo(() => {
    const found = model.boxes.map((box): BoxNode => {
      const { x, y } = places[box.id] ?? { x: 0, y: 0 };
      const before = known.current.get(box.id);
      const chosenNow = box.id === selected;
      if (
        before?.data.box === box &&
        before.data.actions === actions &&
        before.selected === chosenNow &&
        before.position.x === x &&
        before.position.y === y
      )
        return before;
      return {
        id: box.id,
        type: "box",
        position: { x, y },
        width: box.width,
        height: box.height,
        data: { box, actions },
        selected: chosenNow,
        ariaLabel: describe(box),
        draggable: false,
        connectable: false,
        deletable: false,
      };
    });
    known.current = new Map(found.map((node) => [node.id, node]));
    return found;
  }, [model, places, actions, selected]);
  const frames = useMemo(() => frameNodes(laid, actions), [laid, actions]);
  const nodes = useMemo(() => (frames.length > 0 ? [...frames, ...boxes] : boxes), [frames, boxes]);

  const drawn = useRef(new Map<string, WireEdge>());
  const plain = useMemo(() => {
    const byId = new Map(model.boxes.map((box) => [box.id, box]));
    const along = wordsAlong(model.wires, model.boxes, places);
    const found = model.wires.map((wire): WireEdge => {
      const data = {
        wire,
        still,
        along: along.get(wire.id) ?? 0.5,
        back: wire.returns ? endsOf(wire, byId, places) : undefined,
      };
      const before = drawn.current.get(wire.id);
      if (before && JSON.stringify(before.data) === JSON.stringify(data)) return before;
      return {
        id: wire.id,
        type: "wire",
        source: wire.source,
        target: wire.target,
        sourceHandle: PORTS.out,
        targetHandle: PORTS.in,
        data,
        focusable: false,
        deletable: false,
      };
    });
    drawn.current = new Map(found.map((edge) => [edge.id, edge]));
    return found;
  }, [model, places, still]);
  const rows = useMemo(
    () =>
      new Set(model.boxes.flatMap((box) => box.rows.map((field) => `${box.id}\n${field.name}`))),
    [model.boxes],
  );
  const fine = useMemo(
    () =>
      model.columns
        .filter(
          ({ edge }) =>
            rows.has(`${edge.from}\n${edge.source.field}`) &&
            rows.has(`${edge.to}\n${edge.target.field}`),
        )
        .map(
          (wire): ColumnWireEdge => ({
            id: wire.id,
            type: "column",
            source: wire.edge.from,
            target: wire.edge.to,
            sourceHandle: `out ${wire.edge.source.field}`,
            targetHandle: `in ${wire.edge.target.field}`,
            data: { wire, chosen: wire.id === chosen },
            focusable: false,
            deletable: false,
          }),
        ),
    [model.columns, rows, chosen],
  );
  const edges = useMemo(() => [...plain, ...fine], [plain, fine]);

  useEffect(() => {
    if (lit) return;
    if (column) light.column(column, model.columns);
    else if (selected && model.boxes.some((box) => box.id === selected))
      light.node(selected, model.wires, model.boxes);
    else light.off();
    return () => light.off();
  }, [model, selected, column, lit]);

  useEffect(() => {
    function key(event: KeyboardEvent): void {
      const target = event.target as HTMLElement;
      if (target.closest?.("input, select, textarea, dialog, .find")) return;
      if (event.key === "Escape") {
        select(null);
        choose(null);
        return;
      }
      const focused = target.closest?.<HTMLElement>(".react-flow__node")?.dataset.id;
      if (event.key === "Enter" && focused && target.matches(".react-flow__node")) {
        select(focused);
        return;
      }
      const next = beside(event.key, startOf(focused, selected, laid), laid);
      if (!next) return;
      event.preventDefault();
      select(next.id);
      document
        .querySelector<HTMLElement>(`[data-id="${CSS.escape(next.id)}"]`)
        ?.focus({ preventScroll: true });
      const place = laid.places[next.id];
      if (!place) return;
      const zoom = Math.max(flow.getZoom(), READABLE);
      const middle = [place.x + next.width / 2, place.y + next.height / 2] as const;
      void flow.setCenter(...middle, { zoom, duration: 0 });
    }
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, [selected, laid, flow, select, choose]);

  return (
    <ReactFlow<BoxNode | FrameNode, WireEdge | ColumnWireEdge>
      nodes={nodes}
      edges={edges}
      nodeTypes={NODES}
      edgeTypes={EDGES}
      onNodeClick={(_, node) => isPlain(node) && select(node.id)}
      onNodeDoubleClick={(_, node) => isPlain(node) && focus(node.id)}
      onNodeMouseEnter={(_, node) => {
        if (!lit && !selected && !column && node.type !== "frame")
          light.node(node.id, model.wires, model.boxes);
      }}
      onNodeMouseLeave={() => {
        if (!lit && !selected && !column) light.off();
      }}
      onEdgeClick={(_, edge) => choose(edge.id)}
      onPaneClick={() => {
        select(null);
        choose(null);
      }}
      nodesDraggable={false}
      nodesConnectable={false}
      elementsSelectable
      multiSelectionKeyCode={null}
      selectionKeyCode={null}
      deleteKeyCode={null}
      disableKeyboardA11y={false}
      minZoom={0.05}
      maxZoom={2}
      zoomOnDoubleClick={false}
      proOptions={{ hideAttribution: true }}
      aria-label="Lineage graph"
    >
      <Background gap={24} size={1} />
      <MiniMap<BoxNode | FrameNode>
        style={MAP}
        pannable
        zoomable
        nodeColor={colour}
        nodeStrokeWidth={0}
        ariaLabel="Map of the graph"
      />
      <Controls
        orientation="horizontal"
        showInteractive={false}
        fitViewOptions={{ padding: PADDING, maxZoom: largest(size) }}
      />
    </ReactFlow>
  );
}

export const Canvas = memo(function Canvas(props: CanvasProps) {
  return (
    <ReactFlowProvider>
      <Inner {...props} />
    </ReactFlowProvider>
  );
});
