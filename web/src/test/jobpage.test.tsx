import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Run } from "../lib/types";
import { Plots } from "../pages/history";
import { JobPage } from "../pages/job";
import { RunPage } from "../pages/run";
import { type Edited, listed, owners, requests } from "../ui/edit";
import { answering } from "./answers";

const JOB = {
  id: { namespace: "shop", name: "ingest" },
  namespace: "shop",
  name: "ingest",
  kind: "job",
  integration: "spark",
  type: "streaming_query",
  processing: "streaming",
  updatedAt: "",
  state: "RUNNING",
  planned: null,
  plannedEnds: {},
  inferred: false,
  run: "01a1",
  since: "2026-01-08T11:26:00Z",
  error: null,
  inputs: [],
  outputs: [],
  children: [],
  parent: null,
  location: null,
  description: null,
  tags: [],
  facets: {},
  affected: { jobs: 0, datasets: 1, more: false },
};
const use = (name: string, statistics: string, rowCount: number) => ({
  datasetVersionId: { namespace: "s3://w", name },
  facets: { [statistics]: { rowCount } },
});
const RUN = {
  id: "01a1",
  state: "RUNNING",
  createdAt: "2026-01-08T11:26:00Z",
  startedAt: "2026-01-08T11:26:00Z",
  durationMs: null,
  facets: {},
  inputDatasetVersions: [use("orders", "inputStatistics", 1234)],
  outputDatasetVersions: [use("table", "outputStatistics", 1200)],
};
const SAMPLE = {
  run: "01a1",
  dataset: { namespace: "s3://w", name: "table" },
  direction: "output",
  recordsPerSecond: 4.5,
  seconds: 60,
};

beforeEach(() => {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe(): void {}
      disconnect(): void {}
    },
  );
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** The page of a job, whose name is another in each test: answers are kept for a while. */
function open(name: string, job: object, more: Record<string, unknown> = {}) {
  const asked = answering({
    [`/api/v2/jobs/shop/${name}`]: { ...JOB, name, ...job },
    [`/api/v1/namespaces/shop/jobs/${name}/runs`]: { runs: [RUN] },
    "/api/v2/health": { may: ["read"] },
    "/api/v2/flow": {
      flow: [
        { ...SAMPLE, time: "2026-01-08T11:27:00Z" },
        { ...SAMPLE, time: "2026-01-08T11:28:00Z" },
      ],
    },
    ...more,
  });
  render(<JobPage job={{ namespace: "shop", name }} />);
  return asked;
}

test("a running stream says how many rows it has read and written, and how fast", async () => {
  open("ingest", {});
  await screen.findByText("1,234 read, 1,200 written");
  await screen.findByText("Writes table, records a second");
});

test("in all charts of a flow the same minute stands at the same place", async () => {
  const at = (minute: number) => `2026-01-08T11:${minute}:00Z`;
  const read = { ...SAMPLE, direction: "input", dataset: { namespace: "kafka://k", name: "in" } };
  open(
    "flow",
    { run: "01a2" },
    {
      "/api/v2/flow": {
        flow: [
          ...[20, 21, 22, 23].map((minute) => ({ ...read, time: at(minute) })),
          // It began later, said nothing of one minute, and goes on for longer.
          ...[22, 24].map((minute) => ({ ...SAMPLE, time: at(minute) })),
        ],
      },
    },
  );
  await screen.findByText("Writes table, records a second");
  const panel = screen.getByRole("region", { name: "Flow" });
  const bars = (name: RegExp) =>
    [...within(panel).getByRole("img", { name }).querySelectorAll(".plot-bar")].map((bar) =>
      Number(bar.getAttribute("x")),
    );
  const [reads, writes] = [bars(/^Reads in: 4 values/), bars(/^Writes table: 2 values/)];
  expect(reads).toHaveLength(4);
  expect(writes[0]).toBe(reads[2]);
  const slot = (reads[1] ?? 0) - (reads[0] ?? 0);
  expect((writes[1] ?? 0) - (writes[0] ?? 0)).toBeCloseTo(2 * slot);
  const axes = [...panel.querySelectorAll("svg[role=img]")].map((svg) =>
    [...svg.querySelectorAll(".plot-text")].slice(-2).map((text) => text.textContent),
  );
  expect(axes).toHaveLength(2);
  expect(axes[0]).toEqual(axes[1]);
});

test("a job that has ended has no rows so far", async () => {
  const asked = open("ended", { state: "COMPLETED" });
  await screen.findByText("Latest runs");
  expect(screen.queryByText("Rows so far")).toBeNull();
  expect(asked.map((one) => one.path)).not.toContain("/api/v2/flow");
});

test("a job that somebody stopped says so, and of each of its runs how it ended", async () => {
  const ended = { state: "ABORTED", endedAt: "2026-01-08T11:40:00Z", durationMs: 840_000 };
  const runs = [
    { ...RUN, ...ended },
    { ...RUN, ...ended, id: "01a0", state: "COMPLETED" },
    { ...RUN, ...ended, id: "019f" },
  ];
  open(
    "stopped",
    { state: "ABORTED", planned: "stopped", plannedEnds: { "01a1": "stopped", "01a0": "paused" } },
    { "/api/v1/namespaces/shop/jobs/stopped/runs": { runs } },
  );
  await screen.findByText("Latest runs");
  const badges = () => [...document.querySelectorAll(".badge")].map((one) => one.textContent);
  await waitFor(() => expect(badges()).toEqual(["Stopped", "Stopped", "Paused", "Aborted"]));
  const line = [...document.querySelectorAll(".timeline .span")].map((one) => one.className);
  expect(line).toEqual(["span state-aborted", "span state-paused", "span state-stopped"]);
});

test("an application shows what its actions read and write, and their rows", async () => {
  const bare = { ...RUN, inputDatasetVersions: [], outputDatasetVersions: [] };
  const ended = { ...bare, state: "COMPLETED", durationMs: 1 };
  open(
    "application",
    {
      state: "COMPLETED",
      inputs: [{ namespace: "s3://w", name: "orders" }],
      outputs: [{ namespace: "s3://w", name: "stats" }],
      actions: { jobs: 2, rows: { "01a1": { read: 9, written: 4321 } } },
    },
    { "/api/v1/namespaces/shop/jobs/application/runs": { runs: [ended] } },
  );
  await screen.findByText("4,321");
  expect(screen.getAllByText("by its 2 children")).toHaveLength(2);
  expect(screen.queryByText("None known.")).toBeNull();
});

test("what a program reads and writes is counted by the children that are listed", async () => {
  const child = (name: string) => ({ ...JOB, id: `job:shop:${name}`, name });
  const children = ["mix.create.t", "mix.count.t", "mix.append.t"].map(child);
  for (const [jobs, listed, said] of [
    [1, 3, "by 1 of its 3 children"],
    [3, 3, "by its 3 children"],
    [1, 1, "by its child"],
  ] as const) {
    open(`program-${jobs}-of-${listed}`, {
      state: "COMPLETED",
      children: children.slice(0, listed),
      actions: { jobs, rows: {} },
    });
    await waitFor(() => expect(screen.getAllByText(said)).toHaveLength(2));
    const list = screen.getByRole("region", { name: "Children" });
    expect(list.textContent).toContain(listed === 1 ? "1 job" : `${listed} jobs`);
    cleanup();
  }
});

test("a job that is deleted where it ran says so, whatever its last run was", async () => {
  open("deleted", { state: "COMPLETED", planned: "paused", deleted: "2026-01-08T11:45:00Z" });
  await screen.findByText("Latest runs");
  expect(document.querySelector(".badge")?.textContent).toBe("Deleted");
});

test("a run that somebody paused says so on its own page, and who it was", async () => {
  const by = { reason: "paused", inferred: false, by: "ann" };
  const facets = { headwater_connect: { state: "PAUSED" }, headwater_end: by };
  const jobVersion = { namespace: "shop", name: "paused", version: null };
  const end = { state: "COMPLETED", endedAt: "2026-01-08T11:40:00Z", durationMs: 840_000 };
  answering({
    "/api/v1/jobs/runs/01a1": { ...RUN, ...end, facets, jobVersion },
    "/api/v2/jobs/shop/paused": { ...JOB, name: "paused", plannedEnds: { "01a1": "paused" } },
  });
  render(<RunPage id="01a1" />);
  await screen.findByText("Paused");
  expect(screen.queryByText("Completed")).toBeNull();
  expect(screen.getByText("Ended by").nextSibling?.textContent).toBe("ann");
});

test("who may only read sees nothing to edit", async () => {
  open("read-only", { state: "COMPLETED" });
  await screen.findByText("Latest runs");
  expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
});

const REPORTED: Edited = {
  namespace: "shop",
  name: "a/b",
  description: "as reported",
  tags: ["pii", "a, b"],
  facets: { ownership: { owners: [{ name: "team:etl" }] } },
};

test("what is not touched stays the producer's to say", () => {
  const same = { description: "as reported", owners: ["team:etl"], tags: ["pii", "a, b"] };
  expect(requests("job", REPORTED, same)).toEqual([]);
  expect(requests("job", REPORTED, { ...same, description: "Loads b. " })).toEqual([
    ["PUT", "/api/v2/jobs/shop/a%2Fb/about", { description: "Loads b.", owners: [] }],
  ]);
  const said = { headwater_about: { description: "Loads b.", owners: [{ name: "ann" }] } };
  const edited = { ...REPORTED, description: "Loads b.", facets: { ...REPORTED.facets, ...said } };
  expect(owners(edited.facets)).toEqual(["ann"]);
  expect(
    requests("dataset", edited, { ...same, description: "Loads b.", owners: [], tags: ["gold"] }),
  ).toEqual([
    ["PUT", "/api/v2/datasets/shop/a%2Fb/about", { description: "Loads b.", owners: [] }],
    ["POST", "/api/v1/namespaces/shop/datasets/a%2Fb/tags/gold"],
    ["DELETE", "/api/v1/namespaces/shop/datasets/a%2Fb/tags/pii"],
    ["DELETE", "/api/v1/namespaces/shop/datasets/a%2Fb/tags/a%2C%20b"],
  ]);
  expect(listed(" ann \n\nDoe, Ben\nann")).toEqual(["ann", "Doe, Ben"]);
});

test("who may write edits what a job is for, and a refusal is shown", async () => {
  HTMLDialogElement.prototype.showModal = function showModal() {
    this.open = true;
  };
  const about = "PUT /api/v2/jobs/shop/edited/about";
  const answers: Record<string, unknown> = { "/api/v2/health": { may: ["read", "write"] } };
  const asked = open("edited", { state: "COMPLETED" }, answers);
  fireEvent.click(await screen.findByRole("button", { name: "Edit" }));
  fireEvent.change(screen.getByLabelText("Description"), { target: { value: "Loads b." } });
  fireEvent.change(screen.getByLabelText("Owners, one a line"), { target: { value: "ann" } });
  fireEvent.click(screen.getByRole("button", { name: "Save" }));
  await screen.findByText("Not found.");
  const sent = asked.filter((one) => one.method === "PUT");
  expect(sent).toEqual([
    {
      method: "PUT",
      path: about.slice(4),
      body: { description: "Loads b.", owners: ["ann"] },
    },
  ]);
  const again = answering({ [about]: {}, "/api/v2/jobs/shop/edited": { ...JOB, name: "edited" } });
  fireEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(screen.queryByLabelText("Description")).toBeNull());
  expect(again.map((one) => one.path)).toContain("/api/v2/jobs/shop/edited");
});

test("the engine of a run is linked while it runs, its history for good, and only to the web", async () => {
  const pages = { ui: "http://127.0.0.1:4040", history: "http://127.0.0.1:18080/history/app-1/" };
  const run = { ...RUN, facets: { headwater_spark: pages } };
  const runs = (name: string, one: object) => ({
    [`/api/v1/namespaces/shop/jobs/${name}/runs`]: { runs: [one] },
  });
  open("watched", {}, runs("watched", run));
  const link = await screen.findByRole("link", { name: "127.0.0.1:4040" });
  expect(link.getAttribute("href")).toBe(pages.ui);
  expect(link.getAttribute("rel")).toBe("noreferrer noopener");
  screen.getByRole("link", { name: "127.0.0.1:18080/history/app-1/" });
  cleanup();
  open("over", { state: "COMPLETED" }, runs("over", { ...run, state: "COMPLETED" }));
  await screen.findByRole("link", { name: /history/ });
  expect(screen.queryByText("Spark UI")).toBeNull();
  cleanup();
  const evil = { spark_applicationDetails: { uiWebUrl: "javascript:alert(1)" } };
  open("evil", {}, runs("evil", { ...RUN, facets: evil }));
  expect((await screen.findByText("javascript:alert(1)")).closest("a")).toBeNull();
});

test("a run says who ended it, as long as that is how it ended", async () => {
  const facets = { headwater_end: { reason: "aborted by hand", inferred: false, by: "ann" } };
  for (const [id, state, shown] of [
    ["01b1", "ABORTED", true],
    ["01b2", "COMPLETED", false],
  ] as const) {
    const run = { ...RUN, id, state, facets, endedAt: RUN.createdAt };
    answering({ [`/api/v1/jobs/runs/${id}`]: run });
    render(<RunPage id={id} />);
    await screen.findByText("Ended");
    expect(screen.queryByText("Ended by")?.nextSibling?.textContent).toBe(
      shown ? "ann" : undefined,
    );
    cleanup();
  }
});

test("the bar of an aborted run has the colour of its state, not that of a failed one", () => {
  const runs = ["FAILED", "ABORTED", "ABORTED", "COMPLETED"].map((state, i) => ({
    ...RUN,
    id: String(i),
    state,
    durationMs: 1_000,
    outputDatasetVersions: [],
  }));
  const ends = { "2": "stopped" } as const;
  render(<Plots runs={runs as unknown as Run[]} ends={ends} path="" />);
  const bars = [...document.querySelectorAll(".plot-bar")].map(
    (bar) => bar.getAttribute("class") ?? "",
  );
  expect(bars.map((one) => one.trim())).toEqual([
    "plot-bar",
    "plot-bar",
    "plot-bar aborted",
    "plot-bar bad",
  ]);
});
