import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { JobPage } from "../pages/job";
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

test("a job that has ended has no rows so far", async () => {
  const asked = open("ended", { state: "COMPLETED" });
  await screen.findByText("Latest runs");
  expect(screen.queryByText("Rows so far")).toBeNull();
  expect(asked.map((one) => one.path)).not.toContain("/api/v2/flow");
});
