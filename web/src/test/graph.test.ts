import { expect, test, vi } from "vitest";
import { build } from "../graph/boxes";
import { broken } from "../graph/export";
import { roomOf } from "../graph/frames";
import { layered } from "../graph/layered";
import { keyOf, place, shapeOf } from "../graph/layout";
import { arrange } from "../graph/layout.worker";
import { columnPath, Light } from "../graph/light";
import { folded, merge } from "../graph/model";
import { reuse } from "../graph/reuse";
import { beside } from "../graph/walk";
import type { ColumnEdge, DatasetNode, EstateMap, JobNode, MapEdge } from "../lib/types";

const more = { upstream: 0, downstream: 0 };

function dataset(name: string, namespace = "s3://lake"): DatasetNode {
  return {
    id: `dataset:${namespace}:${name}`,
    kind: "dataset",
    namespace,
    name,
    store: "s3",
    type: "file",
    updatedAt: "2026-01-01T00:00:00Z",
    distance: 0,
    more,
    fields: [{ name: "id", type: "int" }],
  };
}

function job(name: string): JobNode {
  return {
    id: `job:jobs:${name}`,
    kind: "job",
    namespace: "jobs",
    name,
    integration: "spark",
    type: "",
    processing: "batch",
    updatedAt: "",
    state: "RUNNING",
    inferred: false,
    run: "r1",
    since: null,
    error: null,
    distance: 0,
    more,
  };
}

const [a, b, c, one, two] = [dataset("a"), dataset("b"), dataset("c"), job("one"), job("two")];
const edge = (origin: { id: string }, destination: { id: string }): MapEdge => ({
  origin: origin.id,
  destination: destination.id,
});
const EDGES = [edge(a, one), edge(one, b), edge(b, two), edge(two, c)];
const MAP: EstateMap = { at: null, nodes: [a, b, c, one, two], edges: EDGES, truncated: false };
const PLAIN = { columns: false, grouped: false, open: [], folds: [] };

test("an answer and the neighbours opened since are one graph, within the bound", () => {
  const first: EstateMap = {
    ...MAP,
    nodes: [a, one, { ...b, more: { upstream: 0, downstream: 3 } }],
  };
  const found = merge([first, { ...MAP, nodes: [b, two, c] }], 300);
  expect(found?.nodes.map((node) => node.name)).toEqual(["a", "one", "b", "two", "c"]);
  expect(found?.nodes[2]?.more.downstream).toBe(0);
  expect(found?.edges).toHaveLength(4);
  const tight = merge([first, { ...MAP, nodes: [b, two, c] }], 4);
  expect(tight?.nodes).toHaveLength(4);
  expect(tight?.truncated).toBe(true);
});

test("folding hides what is reached through the node alone", () => {
  expect(folded(MAP.nodes, EDGES, [`down|${b.id}`])).toEqual(new Set([two.id, c.id]));
  expect(folded(MAP.nodes, EDGES, [`up|${b.id}`])).toEqual(new Set([a.id, one.id]));
  const around = [...EDGES, edge(a, two)];
  expect(folded(MAP.nodes, around, [`down|${b.id}`])).toEqual(new Set());
  expect(folded(MAP.nodes, EDGES, ["down|unknown"])).toEqual(new Set());
});

test("what was folded is counted where it hangs", () => {
  const model = build(MAP, { ...PLAIN, folds: [`down|${b.id}`] });
  expect(model.boxes.find((box) => box.id === b.id)?.down).toBe(1);
  expect(model.boxes).toHaveLength(3);
});

test("namespaces collapse with counts; wires both ways are one", () => {
  const model = build(MAP, { ...PLAIN, grouped: true });
  const counts = model.boxes.map((box) => [
    box.group?.namespace,
    box.group?.jobs,
    box.group?.datasets,
  ]);
  expect(counts).toEqual([
    ["s3://lake", 0, 3],
    ["jobs", 2, 0],
  ]);
  expect(model.wires).toHaveLength(1);
  expect([model.wires[0]?.count, model.wires[0]?.back]).toEqual([2, 2]);
  const opened = build(MAP, { ...PLAIN, grouped: true, open: ["jobs"] });
  expect(opened.boxes.map((box) => box.kind).sort()).toEqual(["group", "job", "job"]);
});

test("datasets open to their columns, those with lineage first when room is short", () => {
  const fields = Array.from({ length: 30 }, (_, i) => ({ name: `f${i}`, type: "int" }));
  const columns = { edges: [columnEdge(a, "f29", b, "id")], truncated: false };
  const nodes = [{ ...a, fields }, b, one];
  const model = build({ ...MAP, nodes, columns }, { ...PLAIN, columns: true });
  const box = model.boxes.find((item) => item.id === a.id);
  expect(box?.rows[0]?.name).toBe("f29");
  expect(box?.hiddenRows).toBe(16);
  expect(model.columns).toHaveLength(1);
});

function columnEdge(from: DatasetNode, field: string, to: DatasetNode, out: string): ColumnEdge {
  const id = (node: DatasetNode, name: string) => `datasetField:${node.id.slice(8)}:${name}`;
  return {
    origin: id(from, field),
    destination: id(to, out),
    from: from.id,
    to: to.id,
    source: { namespace: from.namespace, name: from.name, field },
    target: { namespace: to.namespace, name: to.name, field: out },
    jobs: [one.id],
    how: [],
    evidence: [],
  };
}

test("a column's path goes both ways and no further", () => {
  const edges = [
    columnEdge(a, "x", b, "y"),
    columnEdge(b, "y", c, "z"),
    columnEdge(a, "q", b, "r"),
  ];
  const wires = edges.map((item) => ({ id: `${item.origin}>${item.destination}`, edge: item }));
  const path = columnPath(edges[0]?.destination ?? "", wires);
  expect(path.wires.size).toBe(2);
  expect([...path.columns].some((id) => id.endsWith(":q") || id.endsWith(":r"))).toBe(false);
});

test("light tells upstream from downstream and dims the rest", () => {
  const { wires } = build({ ...MAP, nodes: [...MAP.nodes, dataset("far")] }, PLAIN);
  const light = new Light();
  light.node(b.id, wires);
  expect([a.id, b.id, c.id, "far"].map(light.level)).toEqual(["up", "self", "down", "dim"]);
  expect(light.wire(wires[0]?.id ?? "")).toBe("self");
  light.off();
  expect(light.level(a.id)).toBe("");
});

test("layouts go from left to right and never overlap", () => {
  const shape = shapeOf(build(MAP, PLAIN));
  for (const places of [arrange(shape), layered(shape)]) {
    const x = [a, one, b, two, c].map((node) => places[node.id]?.x ?? 0);
    expect(x).toEqual(x.toSorted((m, n) => m - n));
  }
});

test("the plain layout ends even in a circle, and at once with 4,000 nodes", () => {
  const shape = {
    nodes: ["a", "b"].map((id) => ({ id, width: 10, height: 10 })),
    edges: [
      ["a", "b"],
      ["b", "a"],
    ] as [string, string][],
    frames: [],
    wordy: false,
  };
  expect(Object.keys(layered(shape))).toEqual(["a", "b"]);
  const ids = Array.from({ length: 4_000 }, (_, i) => String(i));
  const began = performance.now();
  layered({
    nodes: ids.map((id) => ({ id, width: 10, height: 10 })),
    edges: ids.slice(1).map((id): [string, string] => [String(Number(id) >> 1), id]),
    frames: [],
    wordy: false,
  });
  // It takes some ten milliseconds; minutes, were it not linear.
  expect(performance.now() - began).toBeLessThan(5_000);
});

test("a layout that does not come in time is replaced by the plain one", async () => {
  const shape = shapeOf(build(MAP, PLAIN));
  class Silent extends EventTarget {
    ended = false;
    postMessage(): void {}
    terminate(): void {
      this.ended = true;
    }
  }
  const made: Silent[] = [];
  vi.stubGlobal(
    "Worker",
    class extends Silent {
      constructor() {
        super();
        made.push(this);
      }
    },
  );
  expect(await place(shape, 20)).toEqual(layered(shape));
  expect(made.map((one) => one.ended)).toEqual([true]);
  vi.unstubAllGlobals();
});

test("an opened namespace is a frame that holds its nodes and no others", () => {
  const model = build(MAP, { ...PLAIN, grouped: true, open: ["s3://lake"] });
  const [frame] = model.frames;
  expect(frame?.namespace).toBe("s3://lake");
  expect(frame?.members.toSorted()).toEqual([a.id, b.id, c.id].toSorted());
  const laid = { model, places: arrange(shapeOf(model)), key: "" };
  const room = frame ? roomOf(frame, laid) : undefined;
  if (!room) throw new Error("the frame has no room");
  for (const box of model.boxes) {
    const { x, y } = laid.places[box.id] ?? { x: Number.NaN, y: 0 };
    const inside =
      x >= room.x &&
      y >= room.y &&
      x + box.width <= room.x + room.width &&
      y + box.height <= room.y + room.height;
    expect(inside, box.id).toBe(frame?.members.includes(box.id));
  }
});

test("the key of a layout is of its shape alone", () => {
  const key = keyOf(shapeOf(build(MAP, PLAIN)));
  const failed = {
    ...MAP,
    nodes: MAP.nodes.map((n) => (n.kind === "job" ? { ...n, state: "FAILED" as const } : n)),
  };
  expect(keyOf(shapeOf(build(failed, PLAIN)))).toBe(key);
  expect(keyOf(shapeOf(build({ ...MAP, edges: EDGES.slice(1) }, PLAIN)))).not.toBe(key);
});

test("arrow keys lead along the wires", () => {
  const model = build(MAP, PLAIN);
  const laid = { model, places: arrange(shapeOf(model)), key: "" };
  expect(beside("ArrowRight", a.id, laid)?.id).toBe(one.id);
  expect(beside("ArrowLeft", b.id, laid)?.id).toBe(one.id);
  expect(beside("ArrowDown", a.id, laid)).toBeUndefined();
  expect(beside("x", a.id, laid)).toBeUndefined();
  expect(beside("ArrowRight", null, laid)?.id).toBe(a.id);
});

test("a name is broken after a separator", () => {
  expect(broken("supplier_stats_by_day", 18)).toEqual(["supplier_stats_by_", "day"]);
  expect(broken("short", 18)).toEqual(["short"]);
});

test("what has not changed stays the same object", () => {
  const first = build(MAP, PLAIN);
  expect(reuse(first, build(MAP, PLAIN))).toBe(first);
  const nodes = MAP.nodes.map((n) => (n.id === one.id ? { ...one, state: "FAILED" as const } : n));
  const next = reuse(first, build({ ...MAP, nodes }, PLAIN));
  expect(next.boxes.filter((box, i) => box !== first.boxes[i]).map((box) => box.id)).toEqual([
    one.id,
  ]);
  expect(next.wires).toBe(first.wires);
});
