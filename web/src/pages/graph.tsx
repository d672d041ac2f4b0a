import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { build } from "../graph/boxes";
import { Canvas } from "../graph/canvas";
import { DiffSide } from "../graph/diffside";
import { ColumnSide, EdgeSide, WireSide } from "../graph/edgeside";
import { useEstate } from "../graph/estate";
import { save } from "../graph/export";
import { ImpactSide } from "../graph/impactside";
import { useLayout } from "../graph/layout";
import type { Model } from "../graph/model";
import type { Actions } from "../graph/nodes";
import { actionsOf, byAction, byProgram, drawnAs } from "../graph/programs";
import { reuse } from "../graph/reuse";
import { NodeSide } from "../graph/side";
import { TimeBar } from "../graph/timebar";
import { Toolbar } from "../graph/toolbar";
import { useView } from "../graph/view";
import { useFlow } from "../lib/flow";
import { plural } from "../lib/format";
import { useResource } from "../lib/resource";
import type { MapNode, Overview } from "../lib/types";
import { Empty, Loading, Problem } from "../ui/basics";
import { readChange, written } from "../ui/impact";
import { FirstRun } from "./firstrun";
import "../styles/graph.css";

function Note({
  nodes,
  truncated,
  total,
  lake,
}: {
  nodes: number;
  truncated: boolean;
  total: string;
  lake: boolean;
}) {
  return (
    <p className="graph-note" aria-live="polite">
      {total || plural(nodes, "node")}
      {truncated ? ", the rest is left out: centre on a node, or unfold with +" : ""}
      {lake ? "; older than the server keeps, from the lake" : ""}
    </p>
  );
}

export default function GraphPage() {
  const view = useView();
  useFlow();
  const { map: whole, error, reload, path } = useEstate(view);
  const map = useMemo(
    () => whole && (view.actions ? byAction : byProgram)(whole, view.node),
    [whole, view.actions, view.node],
  );
  const none = useRef(false);
  const head = useResource<Overview>("/api/v2/overview", () => none.current);
  none.current = head.data?.records === 0;
  // The map may know of the first event before the overview does.
  const first = none.current && !map?.nodes.length;
  const last = useRef<Model>(undefined);
  const model = useMemo(
    () => (map ? reuse(last.current, build(map, view.options)) : undefined),
    [map, view.options],
  );
  useEffect(() => {
    last.current = model;
  }, [model]);
  const laid = useLayout(model, view.key);
  const [edge, setEdge] = useState<string | null>(null);
  const between = `${view.times.from} ${view.times.to}`;
  const [closed, setClosed] = useState("");
  const asked = useRef(0);
  const box = useRef<HTMLDivElement>(null);
  const nodes = useMemo(
    () => new Map<string, MapNode>((map?.nodes ?? []).map((n) => [n.id, n])),
    [map],
  );
  const inPrograms = useMemo(
    () => new Set((map?.nodes ?? []).flatMap((n) => (n.kind === "job" ? actionsOf(n) : []))),
    [map],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: the clock starts with each new address
  useEffect(() => {
    asked.current = performance.now();
    delete box.current?.dataset.drawn;
  }, [path]);
  useEffect(() => {
    if (!laid || laid.model !== model || first) return;
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        if (box.current && !box.current.dataset.drawn)
          box.current.dataset.drawn = String(Math.round(performance.now() - asked.current));
      }),
    );
  }, [laid, model, first]);

  const { set, toggle } = view;
  const actions: Actions = useMemo(
    () => ({
      unfold: (id, side) => toggle(id, side),
      column: (id) => set({ column: id, select: null, impact: null }),
      group: view.group,
      close: view.close,
    }),
    [set, toggle, view.group, view.close],
  );
  const choose = useCallback(
    (id: string | null) => {
      setEdge(null);
      set({ select: id, column: null, impact: null });
    },
    [set],
  );
  const focus = useCallback(
    (id: string) => set({ node: id, select: id, namespace: null, x: null, fold: null }, true),
    [set],
  );

  if (first) return <FirstRun />;
  const select = drawnAs(map?.nodes ?? [], view.select);
  const selected = laid?.model.boxes.find((one) => one.id === select);
  const chosen = laid?.model.columns.find((one) => one.id === edge)?.edge;
  const wire = laid?.model.wires.find((one) => one.id === edge);
  const planned = readChange(view.impact);
  const changed = planned ? nodes.get(planned.node) : undefined;
  // The bar stays, so that another moment or node can be chosen.
  const refused = map ? undefined : error;
  const empty = map && map.nodes.length === 0 && !map.groups;
  return (
    <div className="graph-page">
      <h1 className="sr">Graph</h1>
      <div className="graph-bar">
        <Toolbar
          path={path}
          focus={view.node ?? view.namespace}
          focusName={(view.node ? nodes.get(view.node)?.name : view.namespace) ?? "one node"}
          depth={view.depth}
          columns={view.options.columns}
          grouped={view.options.grouped}
          actions={view.actions}
          big={map?.groups !== undefined}
          set={(part) => set(part, true)}
          save={(format) => laid && map && void save(format, laid, map)}
        />
        <TimeBar
          times={view.times}
          first={head.data?.firstEventAt ?? null}
          set={(times) => set({ ...times })}
        />
      </div>
      <div className="graph-main">
        <div className="canvas" ref={box}>
          {empty ? <Empty icon="graph">Nothing was known at this moment.</Empty> : null}
          {refused ? (
            <Problem error={refused} retry={reload} />
          ) : laid && !empty ? (
            <Canvas
              laid={laid}
              still={view.times.at !== null || view.times.from !== null}
              anchor={view.node}
              selected={select}
              column={view.column}
              lit={changed !== undefined}
              chosen={edge}
              actions={actions}
              select={choose}
              choose={setEdge}
              focus={focus}
            />
          ) : (
            <Loading what="Drawing" />
          )}
          {map ? (
            <Note
              nodes={map.nodes.length}
              truncated={map.truncated}
              lake={map.source === "lake"}
              total={
                map.total
                  ? `${plural(map.total.jobs, "job")} and ${plural(map.total.datasets, "dataset")} by namespace`
                  : ""
              }
            />
          ) : null}
        </div>
        {refused ? null : chosen ? (
          <EdgeSide edge={chosen} close={() => setEdge(null)} />
        ) : wire && nodes.has(wire.source) && nodes.has(wire.target) ? (
          <WireSide wire={wire} nodes={nodes} close={() => setEdge(null)} />
        ) : planned && changed && laid ? (
          <ImpactSide
            key={planned.node}
            dataset={changed}
            change={planned.change}
            model={laid.model}
            ask={(change) => set({ impact: written(planned.node, change) })}
            close={() => set({ impact: null })}
          />
        ) : view.column ? (
          <ColumnSide
            id={view.column}
            at={view.times.at}
            close={() => set({ column: null })}
            pick={(id) => set({ column: id })}
            drop={(node, column) =>
              set({ impact: written(node, { kind: "drop", column, to: "" }), column: null }, true)
            }
          />
        ) : selected?.node && laid ? (
          <NodeSide
            box={selected}
            wires={laid.model.wires}
            nodes={nodes}
            close={() => choose(null)}
            focus={focus}
            fold={(id, side) => view.fold(id, side)}
            select={choose}
            impact={(id) =>
              set({ impact: written(id, { kind: "delete", column: "", to: "" }) }, true)
            }
          />
        ) : view.times.from && closed !== between ? (
          <DiffSide
            times={view.times}
            node={view.node}
            depth={view.depth}
            known={(id) => nodes.has(id) || inPrograms.has(id)}
            select={choose}
            close={() => setClosed(between)}
          />
        ) : null}
      </div>
    </div>
  );
}
