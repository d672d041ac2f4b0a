import { expect, test, vi } from "vitest";
import { build } from "../graph/boxes";
import { curve, endsOf, wordsAlong, wordsPoint } from "../graph/curves";
import { statesIn } from "../graph/estate";
import { matters, READABLE, sight, within } from "../graph/fit";
import { roomOf } from "../graph/frames";
import { layered } from "../graph/layered";
import { keyOf, type Laid, place, shapeOf } from "../graph/layout";
import { arrange } from "../graph/layout.worker";
import { columnPath, Light } from "../graph/light";
import { folded, merge, type Wire } from "../graph/model";
import { byAction, byProgram, drawnAs } from "../graph/programs";
import { reuse } from "../graph/reuse";
import { beside, startOf } from "../graph/walk";
import { wrapped } from "../graph/words";
import { boxName } from "../lib/names";
import type {
  ColumnEdge,
  DatasetNode,
  EstateMap,
  ImpactAnswer,
  JobNode,
  MapEdge,
  MapNode,
} from "../lib/types";

const more = { upstream: 0, downstream: 0 };

test("a run that does not decide about its job's state tells none", () => {
  const at = Date.parse("2026-01-01T00:00:00Z");
  const run = (id: string, state: string, decides?: boolean) => ({
    kind: "run",
    at,
    data: {
      namespace: "jobs",
      name: "load",
      run: id,
      state,
      ...(decides === undefined ? {} : { decides }),
    },
  });
  const told = statesIn([
    run("2", "RUNNING", true),
    run("1", "ABORTED", false),
    { kind: "job", at, data: { namespace: "jobs", name: "load" } },
  ]);
  expect(told.map(([id, one]) => [id, one.run, one.state])).toEqual([
    ["job:jobs:load", "2", "RUNNING"],
  ]);
  // A server of an earlier release does not say which run decides.
  expect(statesIn([run("1", "FAILED")])).toHaveLength(1);
});

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
    planned: null,
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
  const { wires, boxes } = build({ ...MAP, nodes: [...MAP.nodes, dataset("far")] }, PLAIN);
  const light = new Light();
  light.node(b.id, wires, boxes);
  expect([a.id, b.id, c.id, "far"].map(light.level)).toEqual(["up", "self", "down", "dim"]);
  expect(light.wire(wires[0]?.id ?? "")).toBe("self");
  light.off();
  expect(light.level(a.id)).toBe("");
});

test("light goes through a job along its pairs, or through all of it where none are known", () => {
  const [bids, landing, table] = [dataset("bids"), dataset("landing"), dataset("table")];
  const edges = [
    [a, one],
    [bids, one],
    [one, landing],
    [one, table],
    [landing, two],
    [two, bids],
  ].map(([from, to]) => ({ origin: from?.id ?? "", destination: to?.id ?? "" }));
  const pairs = [
    { origin: a.id, destination: landing.id },
    { origin: bids.id, destination: table.id },
  ];
  const lit = (id: string, known: typeof pairs | null) => {
    const nodes = [a, bids, landing, table, { ...one, pairs: known }, two];
    const { wires, boxes } = build({ ...MAP, nodes, edges }, PLAIN);
    const light = new Light();
    light.node(id, wires, boxes);
    const bright = nodes.filter((node) => light.level(node.id) !== "dim").map((node) => node.id);
    return {
      bright: new Set(bright),
      wires: wires.filter((wire) => light.wire(wire.id) === "self"),
    };
  };
  // Down from landing the job is met again, through bids: only the table belongs to those.
  expect(lit(landing.id, pairs).bright).toEqual(
    new Set([a.id, one.id, landing.id, two.id, bids.id, table.id]),
  );
  const up = lit(a.id, pairs);
  expect(up.bright.has(table.id)).toBe(true);
  expect(lit(table.id, pairs).wires.map((wire) => wire.source)).toContain(a.id);
  const cut = pairs.slice(1);
  expect(lit(landing.id, cut).bright.has(a.id)).toBe(false);
  expect(lit(a.id, cut).bright).toEqual(new Set([a.id, one.id]));
  expect(lit(a.id, null).bright.size).toBe(6);
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
  const laid = { model, places: arrange(shapeOf(model)), view: "" };
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
  const laid = { model, places: arrange(shapeOf(model)), view: "" };
  expect(beside("ArrowRight", a.id, laid)?.id).toBe(one.id);
  expect(beside("ArrowLeft", b.id, laid)?.id).toBe(one.id);
  expect(beside("ArrowDown", a.id, laid)).toBeUndefined();
  expect(beside("x", a.id, laid)).toBeUndefined();
  expect(beside("ArrowRight", null, laid)?.id).toBe(a.id);
});

test("arrow keys start at the focused box, then at the selected one", () => {
  const laid = { model: build(MAP, PLAIN), places: {}, view: "" };
  expect(startOf(b.id, a.id, laid)).toBe(b.id);
  expect(startOf(b.id, null, laid)).toBe(b.id);
  // A frame has the focus, or something that is no node.
  expect(startOf("frame", a.id, laid)).toBe(a.id);
  expect(startOf(undefined, a.id, laid)).toBe(a.id);
  expect(startOf(undefined, null, laid)).toBeNull();
});

test("a name is broken after a separator, and elsewhere only where it has none", () => {
  expect(wrapped("supplier_stats_by_day", 8)).toEqual(["supplier_", "stats_by_day"]);
  expect(wrapped("short", 8)).toEqual(["short"]);
  expect(wrapped("postgres://127.0.0.1:21359", 12)).toEqual(["postgres://", "127.0.0.1:21359"]);
  expect(wrapped("sales.2024/part-1.5.csv", 5)).toEqual(["sales.", "2024/", "part-1.5.", "csv"]);
  const long = wrapped("averylongwordwithoutanend", 8);
  expect(long.length).toBeGreaterThan(1);
  expect(long.join("")).toBe("averylongwordwithoutanend");
  // A cut name may be broken after its sign; the word after it begins a line.
  const cut = wrapped(`${"L".repeat(13)}…${"L".repeat(13)}`, 9.4);
  expect(cut).toEqual(["L".repeat(12), "L…", "L".repeat(12), "L"]);
});

test("boxes are as wide as the longest word needs, all alike, and as high as their names", () => {
  const boxes = (...names: string[]) =>
    build({ ...MAP, nodes: names.map((name) => job(name)), edges: [] }, PLAIN).boxes;
  const widths = (...names: string[]) => boxes(...names).map((box) => box.width);
  const [narrow] = widths("a");
  const [wide] = widths("unbreakableword");
  expect(wide).toBeGreaterThan(narrow ?? 0);
  expect(widths("a", "unbreakableword")).toEqual([wide, wide]);
  const [low, high] = boxes("short", "supplier_stats_stream_daily");
  expect(high?.height).toBeGreaterThan(low?.height ?? 0);
});

/** A line of jobs, each followed by a dataset. */
function chain(length: number, failing = -1): Laid {
  const nodes: MapNode[] = [];
  for (let i = 0; i < length; i++)
    nodes.push({ ...job(`j${i}`), state: i === failing ? "FAILED" : "RUNNING" }, dataset(`d${i}`));
  const edges = nodes.slice(1).map((node, i) => edge(nodes[i] ?? node, node));
  const model = build({ ...MAP, nodes, edges }, PLAIN);
  return { model, places: arrange(shapeOf(model)), view: "" };
}

const WINDOW = { width: 800, height: 700 };

/** Where a node stands in the window, from its left edge to its right. */
function seen(laid: Laid, id: string, view: { x: number; zoom: number }): [number, number] {
  const box = laid.model.boxes.find((one) => one.id === id);
  const left = (laid.places[id]?.x ?? Number.NaN) * view.zoom + view.x;
  return [left, left + (box?.width ?? Number.NaN) * view.zoom];
}

test("a graph is shown whole, or where it would be too small, round what matters", () => {
  const small = chain(2);
  const whole = sight(small, WINDOW, []);
  expect(whole.zoom).toBeGreaterThanOrEqual(READABLE);
  for (const { id } of small.model.boxes) {
    const [left, right] = seen(small, id, whole);
    expect(left).toBeGreaterThanOrEqual(0);
    expect(right).toBeLessThanOrEqual(WINDOW.width);
  }
  const long = chain(12, 7);
  const failing = sight(long, WINDOW, []);
  expect(failing.zoom).toBe(READABLE);
  const [left, right] = seen(long, "job:jobs:j7", failing);
  expect((left + right) / 2).toBeCloseTo(WINDOW.width / 2);
  // At an end of the graph, its end is the window's.
  const [first] = seen(long, "job:jobs:j0", sight(long, WINDOW, ["job:jobs:j0"]));
  expect(first).toBeCloseTo(16);
  const [, last] = seen(long, "dataset:s3://lake:d11", sight(long, WINDOW, ["job:jobs:j11"]));
  expect(last).toBeCloseTo(WINDOW.width - 16);
});

test("what matters is what was asked for, what changed, what fails, then the beginning", () => {
  const laid = chain(4, 2);
  expect(matters(laid, [null, "unknown", "job:jobs:j3"])?.id).toBe("job:jobs:j3");
  expect(matters(laid, [])?.id).toBe("job:jobs:j2");
  expect(matters(chain(4), [])?.id).toBe("job:jobs:j0");
  const changed = laid.model.boxes.find((box) => box.id === "job:jobs:j1");
  if (changed?.node) changed.node = { ...changed.node, change: "added" };
  expect(matters(laid, [])?.id).toBe("job:jobs:j1");
});

test("a view opens round what was aborted, unless somebody stopped it or another one failed", () => {
  const laid = chain(12);
  const put = (name: string, part: Partial<JobNode>) => {
    const box = laid.model.boxes.find((one) => one.id === `job:jobs:${name}`);
    if (box?.node?.kind === "job") box.node = { ...box.node, ...part };
  };
  put("j3", { state: "ABORTED", planned: "stopped" });
  expect(matters(laid, [])?.id).toBe("job:jobs:j0");
  put("j7", { state: "ABORTED" });
  const view = sight(laid, WINDOW, []);
  const [left, right] = seen(laid, "job:jobs:j7", view);
  expect([left >= 0, right <= WINDOW.width]).toEqual([true, true]);
  put("j9", { state: "FAILED" });
  expect(matters(laid, [])?.id).toBe("job:jobs:j9");
});

test("only the wires of a job that runs show what flows", () => {
  const flows = (state: JobNode["state"]) =>
    build({ ...MAP, nodes: [a, b, c, { ...one, state }, two] }, PLAIN).wires.map((wire) =>
      Boolean(wire.flow),
    );
  expect(flows("RUNNING")).toEqual([true, true, true, true]);
  for (const state of ["ABORTED", "FAILED", "COMPLETED"] as const)
    expect(flows(state)).toEqual([false, false, true, true]);
});

test("an opened namespace matters more than what fails", () => {
  const nodes = [{ ...one, state: "FAILED" as const }, a, b, c];
  const model = build({ ...MAP, nodes }, { ...PLAIN, grouped: true, open: ["s3://lake"] });
  const laid = { model, places: arrange(shapeOf(model)), view: "" };
  expect(matters(laid, [])?.id).toBe("s3://lake");
  expect(matters(laid, [a.id])?.id).toBe(a.id);
});

test("a box that is not in sight is brought there by the shortest way", () => {
  const laid = chain(12);
  const view = { x: 0, y: 0, zoom: 1 };
  const box = laid.model.boxes.find((one) => one.id === "job:jobs:j6");
  if (!box) throw new Error("no box");
  const moved = within(view, WINDOW, box, laid);
  expect(moved.zoom).toBe(1);
  expect(seen(laid, box.id, moved)[1]).toBeCloseTo(WINDOW.width - 16);
  expect(within(moved, WINDOW, box, laid)).toBe(moved);
});

test("what has not changed stays the same object", () => {
  const first = build(MAP, PLAIN);
  expect(reuse(first, build(MAP, PLAIN))).toBe(first);
  const nodes = MAP.nodes.map((n) =>
    n.id === one.id ? { ...one, planned: "paused" as const } : n,
  );
  const next = reuse(first, build({ ...MAP, nodes }, PLAIN));
  expect(next.boxes.filter((box, i) => box !== first.boxes[i]).map((box) => box.id)).toEqual([
    one.id,
  ]);
  expect(next.wires).toBe(first.wires);
});

test("what a change hits is lit by its effect, the worst of several, and the rest is dim", () => {
  const found = new Light();
  const wire = (source: string, target: string) => ({ id: `${source}>${target}`, source, target });
  const wires = [wire("dataset:a:t", "job:j:x"), wire("job:j:x", "dataset:a:out")] as Wire[];
  found.impact(
    {
      dataset: "dataset:a:t",
      changes: [{ column: "price", text: "", judged: true }],
      jobs: [{ id: "job:j:x", effect: "breaks" }],
      columns: [
        { dataset: "dataset:a:out", column: null, effect: "rows" },
        { dataset: "dataset:a:out", column: "total", effect: "changes" },
      ],
    } as unknown as ImpactAnswer,
    wires,
    [],
  );
  expect(found.level("dataset:a:t")).toBe("self");
  expect(found.level("job:j:x")).toBe("breaks");
  expect(found.level("dataset:a:out")).toBe("changes");
  expect(found.level("job:j:other")).toBe("dim");
  expect(found.wire("job:j:x>dataset:a:out")).toBe("self");
  expect(found.wire("elsewhere")).toBe("dim");
  expect(found.columnLevel("datasetField:a:t:price")).toBe("self");
  expect(found.columnLevel("datasetField:a:out:total")).toBe("self");
  expect(found.columnLevel("datasetField:a:out:id")).toBe("dim");
});

const application = { ...job("stats"), type: "application" };
const action = (operation: string): JobNode => ({
  ...job(`stats.${operation}`),
  parent: application.id,
});
const query: JobNode = { ...job("windows"), processing: "streaming", parent: application.id };
const [create, write, count] = [action("create_table.b"), action("overwrite.b"), action("count.a")];

/** The jobs, the datasets, and who reads and writes what: by name, in the order given. */
function drawing(found: EstateMap): string[] {
  const short = new Map(found.nodes.map((node) => [node.id, node.name]));
  const wires = found.edges.map(
    (one) => `${short.get(one.origin)} > ${short.get(one.destination)}`,
  );
  return [...found.nodes.map((node) => node.name).sort(), ...wires.sort()];
}

test("actions are drawn as their application, without those that only create or count", () => {
  const edges = [edge(create, b), edge(a, write), edge(write, b), edge(a, count), edge(c, count)];
  const nodes = [a, b, c, application, create, write, count];
  const map: EstateMap = { ...MAP, nodes, edges };
  const found = byProgram(map, null);
  expect(drawing(found)).toEqual(["a", "b", "stats", "a > stats", "stats > b"]);
  const box = found.nodes.find((node) => node.id === application.id) as JobNode;
  expect(box.actions).toEqual([write]);
  expect(drawnAs(found.nodes, write.id)).toBe(application.id);
  expect(drawnAs(found.nodes, count.id)).toBe(application.id);
  expect(drawnAs(found.nodes, a.id)).toBe(a.id);
  // Evidence of an edge is asked for as it was reported.
  const wire = build(found, PLAIN).wires.find((one) => one.target === b.id);
  expect(wire?.reported).toMatchObject({ origin: write.id, destination: b.id });
  // Around a dataset the application comes beside the nodes.
  const outside = { ...map, nodes: nodes.filter((node) => node !== application) };
  expect(drawing(byProgram({ ...outside, parents: [application] }, a.id))).toEqual(drawing(found));
  // What is taken out of a table for good is lineage, though nothing is written.
  const taken = action("to_pandas.c");
  const reader = { ...map, nodes: [...nodes, taken], edges: [...edges, edge(c, taken)] };
  expect(drawing(byProgram(reader, null))).toContain("c > stats");
  // Without an application there is nothing to draw them as.
  expect(byProgram(outside, null)).toEqual(outside);
});

test("an action that was asked for by its name stays itself", () => {
  const map: EstateMap = {
    ...MAP,
    nodes: [a, b, application, write, count],
    edges: [edge(a, write), edge(write, b), edge(a, count)],
  };
  expect(drawing(byProgram(map, count.id))).toEqual([
    "a",
    "b",
    "stats",
    "stats.count.a",
    "a > stats",
    "a > stats.count.a",
    "stats > b",
  ]);
});

test("a program that only counts stays in sight as a reader", () => {
  const map: EstateMap = { ...MAP, nodes: [a, application, count], edges: [edge(a, count)] };
  expect(drawing(byProgram(map, null))).toEqual(["a", "stats", "a > stats"]);
});

test("a query stands for its application, which is drawn where it does more", () => {
  const edges = [edge(create, b), edge(a, query), edge(query, b)];
  const map: EstateMap = { ...MAP, nodes: [a, b, application, create, query], edges };
  expect(drawing(byProgram(map, null))).toEqual([
    "a",
    "b",
    "windows",
    "a > windows",
    "windows > b",
  ]);
  const both = { ...map, nodes: [...map.nodes, c, write], edges: [...edges, edge(write, c)] };
  expect(drawing(byProgram(both, null))).toContain("stats > c");
});

test("among actions an application stands only where it has datasets or nothing that it runs", () => {
  const edges = [edge(a, write), edge(write, b)];
  const map: EstateMap = { ...MAP, nodes: [a, b, application, write], edges };
  const all = [
    "a",
    "b",
    "stats",
    "stats.overwrite.b",
    "a > stats.overwrite.b",
    "stats.overwrite.b > b",
  ];
  const without = all.filter((one) => one !== "stats");
  expect(drawing(byAction(map, null))).toEqual(without);
  expect(drawing(byAction(map, application.id))).toEqual(all);
  const reads = { ...map, edges: [...edges, edge(b, application)] };
  expect(byAction(reads, null)).toBe(reads);
  const alone = { ...map, nodes: [application], edges: [] };
  expect(byAction(alone, null)).toBe(alone);
});

test("an application pairs inputs and outputs as its actions do", () => {
  const other = action("append.c");
  const map: EstateMap = {
    ...MAP,
    nodes: [a, b, c, application, write, other],
    edges: [edge(a, write), edge(write, b), edge(b, other), edge(other, c)],
  };
  const box = byProgram(map, null).nodes.find((node) => node.id === application.id) as JobNode;
  expect(box.pairs).toEqual([edge(a, b), edge(b, c)]);
});

test("what a change does to an action is lit at its application", () => {
  const found = new Light();
  const nodes = [a, b, application, write, count];
  const edges = [edge(a, write), edge(a, count)];
  const { boxes } = build(byProgram({ ...MAP, nodes, edges }, null), PLAIN);
  const lit = (...effects: string[]) => {
    const jobs = effects.map((effect) => ({ id: write.id, effect }));
    const answer = { dataset: a.id, changes: [], jobs, columns: [] } as unknown as ImpactAnswer;
    found.impact(answer, [], boxes);
    return found.level(application.id);
  };
  expect(lit("breaks")).toBe("breaks");
  // What is unknown may break: it is worse than all but that.
  expect(lit("changes", "unknown", "rows")).toBe("unknown");
  expect(lit("unknown", "breaks")).toBe("breaks");
  // So does an action that is left out of the picture.
  const jobs = [
    { id: write.id, effect: "changes" },
    { id: count.id, effect: "unknown" },
  ];
  found.impact({ dataset: a.id, changes: [], jobs, columns: [] } as never, [], boxes);
  expect(found.level(application.id)).toBe("unknown");
});

test("a job that reads what it writes has two ways beside each other, and no knot", () => {
  const map: EstateMap = {
    ...MAP,
    nodes: [a, b, one],
    edges: [edge(a, one), edge(b, one), edge(one, b)],
  };
  const model = build(map, PLAIN);
  const shape = shapeOf(model);
  expect(shape.edges).toEqual([
    [a.id, one.id],
    [one.id, b.id],
  ]);
  const places = arrange(shape);
  const boxes = new Map(model.boxes.map((box) => [box.id, box]));
  const ways = model.wires.flatMap((wire) => endsOf(wire, boxes, places) ?? []);
  const [, back, there] = ways;
  if (!back || !there) throw new Error("not all wires have ends");
  // Between the two boxes, one below the other.
  expect([back.sx, back.tx]).toEqual([there.tx, there.sx]);
  expect(back.sy).toBeGreaterThan(there.ty);
  expect(curve(back)).toMatch(new RegExp(`^M${back.sx} `));
});

test("a table's wire leaves and enters beside its name, never at one of its columns", () => {
  const fields = ["order_id", "item", "amount"].map((name) => ({ name, type: "int" }));
  const nodes = [{ ...a, fields }, one, { ...b, fields: fields.slice(1) }];
  const map = { ...MAP, nodes, edges: [edge(a, one), edge(one, b), edge(b, one)] };
  const found = build(map, { ...PLAIN, columns: true });
  const boxes = new Map(found.boxes.map((box) => [box.id, box]));
  const places = arrange(shapeOf(found));
  const at = (id: string) => {
    const box = boxes.get(id);
    if (!box) throw new Error(`no box ${id}`);
    return { top: places[id]?.y ?? Number.NaN, box };
  };
  for (const wire of found.wires) {
    const ends = endsOf(wire, boxes, places);
    for (const [id, y] of [
      [wire.source, ends?.sy],
      [wire.target, ends?.ty],
    ] as const) {
      const { top, box } = at(id);
      expect(y, wire.id).toBeGreaterThan(top);
      // Where there are no columns, it is the middle of the whole box.
      if (box.rows.length > 0) expect(y, wire.id).toBeLessThan(top + box.head);
      else if (!wire.returns) expect(y, wire.id).toBe(top + box.height / 2);
    }
  }
  // Arrow keys go by the same ends: a tall table with its name beside the job is the nearest.
  const [tall, low] = [at(a.id).box, { ...at(b.id).box, rows: [], height: 58 }];
  const job = at(one.id).box;
  const wires = [low, tall].map((box) => ({ source: box.id, target: job.id }) as Wire);
  const laid = {
    model: { ...found, boxes: [low, tall, job], wires },
    places: { [tall.id]: { x: 0, y: 0 }, [low.id]: { x: 0, y: -70 }, [job.id]: { x: 400, y: -10 } },
    view: "",
  };
  expect(beside("ArrowLeft", job.id, laid)?.id).toBe(tall.id);
});

test("words on wires that fan out from two topics do not cover one another", () => {
  const topics = [dataset("orders"), dataset("bids")];
  const readers = ["ingestion", "archive", "landing", "stats"].map((name) => ({
    ...job(name),
    run: name,
    processing: "streaming",
  }));
  const edges = readers.flatMap((reader, i) =>
    topics.slice(0, i < 3 ? 2 : 1).map((topic) => edge(topic, reader)),
  );
  const model = build({ ...MAP, nodes: [...topics, ...readers], edges }, PLAIN);
  const places = arrange(shapeOf(model));
  const boxes = new Map(model.boxes.map((box) => [box.id, box]));
  const along = wordsAlong(model.wires, model.boxes, places);
  const spots = model.wires.map((wire) => {
    const ends = endsOf(wire, boxes, places);
    if (!ends) throw new Error(wire.id);
    return wordsPoint(ends, along.get(wire.id) ?? 0.5);
  });
  // Each stands nearer to its own reader than to any other.
  const middle = ({ id }: { id: string }) =>
    (places[id]?.y ?? Number.NaN) + (boxes.get(id)?.height ?? Number.NaN) / 2;
  for (const [i, wire] of model.wires.entries()) {
    const away = (reader: JobNode) => Math.abs(middle(reader) - (spots[i]?.y ?? Number.NaN));
    const [nearest] = readers.toSorted((one, other) => away(one) - away(other));
    expect(nearest?.id, wire.id).toBe(wire.target);
  }
  const near = spots.flatMap((spot, i) =>
    spots
      .slice(i + 1)
      .filter((other) => Math.abs(other.y - spot.y) < 28 && Math.abs(other.x - spot.x) < 36),
  );
  expect(spots).toHaveLength(7);
  expect(near).toEqual([]);
});

test("words stay in the middle where the boxes leave no more room than they take", () => {
  for (const gap of [30, 49, 51])
    for (const part of [0.05, 0.5, 0.95]) {
      const { x } = wordsPoint({ sx: 100, sy: 0, tx: 100 + gap, ty: 200 }, part);
      expect(x, `${gap} ${part}`).toBeCloseTo(100 + gap / 2);
    }
  expect(wordsPoint({ sx: 100, sy: 0, tx: 188, ty: 200 }, 0.95).x).toBeCloseTo(188 - 25.5);
});

test("actions of one program on one table are told apart in their boxes", () => {
  const program = "iceberg_ingestion_stream";
  const named = (operation: string) =>
    boxName({ ...job(`${program}.${operation}.default_orders`), parent: `job:jobs:${program}` });
  expect(named("create_table")).toBe("…create_table.default_orders");
  expect(named("overwrite_by_expression")).toBe("…overwrite_by_expression.default_orders");
  const long = named("overwrite_by_expression.default_supplier_stats");
  expect(long.startsWith("…overwrite_by_expression.")).toBe(true);
  expect(boxName({ ...action("count.a"), parent: application.id })).toBe("stats.count.a");
});
