import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { ColumnInputs, ColumnSide } from "../graph/edgeside";
import type { Box } from "../graph/model";
import { describe } from "../graph/nodes";
import { NodeSide } from "../graph/side";
import type { JobNode, MapNode } from "../lib/types";
import { answering } from "./answers";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const JOB: JobNode = {
  id: "job:shop:mix",
  kind: "job",
  namespace: "shop",
  name: "mix",
  integration: "spark",
  type: "",
  processing: "streaming",
  updatedAt: "",
  state: "RUNNING",
  planned: null,
  inferred: false,
  run: null,
  since: "2026-01-08T11:26:00Z",
  error: null,
  distance: 0,
  more: { upstream: 0, downstream: 0 },
};

const TABLE: MapNode = {
  id: "dataset:s3://lake:stats",
  kind: "dataset",
  namespace: "s3://lake",
  name: "stats",
  store: "s3",
  type: "file",
  updatedAt: "",
  distance: 0,
  more: { upstream: 0, downstream: 0 },
};

function box(node: MapNode): Box {
  return { id: node.id, node } as Box;
}

function open(node: MapNode) {
  const nothing = () => {};
  render(
    <NodeSide
      box={box(node)}
      wires={[]}
      nodes={new Map()}
      close={nothing}
      focus={nothing}
      fold={nothing}
      select={nothing}
      impact={nothing}
    />,
  );
}

const ASSUMED = /does not report which input feeds which output: every input is taken to feed all/;

test("a job whose inputs are taken to feed all of its outputs says so, and no other does", () => {
  open({ ...JOB, assumed: true });
  expect(screen.getByText(ASSUMED).className).toBe("muted");
  cleanup();
  open({ ...JOB, assumed: false });
  expect(screen.queryByText(ASSUMED)).toBeNull();
});

test("a job that somebody stopped is stopped in its box and beside the graph", () => {
  const stopped: JobNode = { ...JOB, state: "ABORTED", planned: "stopped" };
  open({ ...JOB, actions: [stopped, { ...JOB, id: "job:shop:other", state: "ABORTED" }] });
  const badges = [...document.querySelectorAll(".badge")].map((one) => one.textContent);
  expect(badges).toEqual(["Running", "Stopped", "Aborted"]);
  expect(describe(box(stopped))).toMatch(/mix, Stopped for /);
});

const REVENUE = "datasetField:s3://lake:stats:revenue";
const PRICE = { namespace: "postgres://db", name: "items", field: "price" };
const TARGET = { namespace: "s3://lake", name: "stats", field: "revenue" };
const EDGE = {
  origin: "datasetField:postgres://db:items:price",
  destination: REVENUE,
  source: PRICE,
  target: TARGET,
  jobs: [],
  how: [],
  evidence: [],
};

function openColumn(name: string, at: string | null) {
  const pick = vi.fn();
  const target = { ...TARGET, name };
  const asked = answering({
    "/api/v2/columns": {
      columns: [{ id: REVENUE, dataset: "dataset:s3://lake:stats", field: "revenue", distance: 0 }],
      edges: [{ ...EDGE, target }],
      truncated: false,
    },
    [`/api/v2/datasets/s3%3A%2F%2Flake/${name}/why`]: {
      inputs: [
        {
          ...PRICE,
          node: EDGE.origin,
          changedAt: "2026-01-08T11:00:00Z",
          change: "price changed from int to long",
          lastWrittenAt: null,
        },
        { ...PRICE, field: "n", node: "n", changedAt: null, change: null, lastWrittenAt: null },
      ],
    },
  });
  render(<ColumnSide id={REVENUE} at={at} close={() => {}} pick={pick} drop={() => {}} />);
  return { pick, asked };
}

test("a column says which of its inputs changed last, and leads to it", async () => {
  const { pick } = openColumn("stats", null);
  const list = await screen.findByRole("region", { name: "Schema changed last" });
  const rows = within(list).getAllByRole("listitem");
  expect(rows[0]?.textContent).toMatch(/^items\.priceprice changed from int to long, .* ago$/);
  expect(rows[1]?.textContent).toBe("The schema of 1 other never changed");
  fireEvent.click(within(list).getAllByRole("button")[0] as HTMLElement);
  expect(pick).toHaveBeenCalledWith(EDGE.origin);
});

test("a column whose inputs never changed says that it means their schemas", async () => {
  for (const [count, said] of [
    [1, "The schema of its only input never changed"],
    [2, "The schema of none of its 2 inputs ever changed"],
  ] as const) {
    const input = { ...PRICE, changedAt: null, change: null, lastWrittenAt: null };
    const inputs = ["a", "b"].slice(0, count).map((field) => ({ ...input, field, node: field }));
    answering({ [`/api/v2/datasets/s3%3A%2F%2Flake/calm${count}/why`]: { inputs } });
    const column = { namespace: "s3://lake", name: `calm${count}`, field: "revenue" };
    render(<ColumnInputs column={column} pick={() => {}} />);
    await screen.findByText(said);
  }
});

test("a column names the jobs that may bring more into it and report no columns", async () => {
  const unknown = ["job:jobs:blind", "job:jobs:blind", "job:jobs:dumb"].map((job) => ({ job }));
  const input = { ...PRICE, node: "a", changedAt: null, change: null, lastWrittenAt: null };
  for (const [name, inputs, said] of [
    ["more", [input], /known which more columns it comes from: blind, dumb report no columns/],
    ["none", [], /known which columns it comes from: blind, dumb report no columns/],
  ] as const) {
    answering({ [`/api/v2/datasets/s3%3A%2F%2Flake/${name}/why`]: { inputs, unknown } });
    const column = { namespace: "s3://lake", name, field: "revenue" };
    render(<ColumnInputs column={column} pick={() => {}} />);
    await screen.findByText(said);
  }
});

test("a dataset beside the graph says when it was last reported, which is no change", () => {
  open({ ...TABLE, updatedAt: new Date(Date.now() - 24_000).toISOString() });
  expect(screen.getByRole("complementary").textContent).toMatch(/last reported \d+ s ago/);
});

test("two jobs of one name that carry a column are told apart", async () => {
  const jobs = ["job:team-a:load", "job:team-b:load", "job:team-b:copy"];
  const edges = [{ ...EDGE, jobs }];
  answering({ "/api/v2/columns": { columns: [], edges, truncated: false } });
  render(
    <ColumnSide
      id={REVENUE}
      at="2026-01-08T10:00:00Z"
      close={() => {}}
      pick={() => {}}
      drop={() => {}}
    />,
  );
  const by = await screen.findByText(/^by /);
  expect(by.textContent).toBe("by team-a:load, team-b:load, copy");
});

test("of a moment in the past it is not asked which input changed last", async () => {
  const { asked } = openColumn("past", "2026-01-08T10:00:00Z");
  await screen.findByRole("button", { name: /items/ });
  expect(asked.map((one) => one.path)).toEqual(["/api/v2/columns"]);
});
