import { cleanup, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { feed } from "../lib/live";
import type { JobFacts, Overview } from "../lib/types";
import { OverviewPage } from "../pages/overview";
import { answering } from "./answers";

const JOB: JobFacts = {
  id: "job:shop:sink",
  kind: "job",
  namespace: "shop",
  name: "sink",
  integration: "kafka-connect",
  type: "connector",
  processing: "streaming",
  updatedAt: "",
  state: "RUNNING",
  planned: null,
  inferred: false,
  run: "01a1",
  since: "2026-01-08T11:26:00Z",
  error: null,
};
const OVERVIEW: Overview = {
  now: "2026-01-08T12:00:00Z",
  records: 3,
  firstEventAt: "2026-01-08T11:26:00Z",
  jobs: {
    NEW: 0,
    RUNNING: 1,
    COMPLETED: 0,
    FAILED: 0,
    ABORTED: 0,
    PAUSED: 0,
    STOPPED: 0,
    total: 1,
  },
  datasets: 2,
  troubles: { jobs: [], truncated: false },
  stale: [],
  lagging: [
    {
      ...JOB,
      affected: { jobs: 0, datasets: 1, more: false },
      dataset: { namespace: "kafka://k:9092", name: "orders" },
      lag: 62_500,
      lagBefore: 1_500,
      since: "2026-01-08T11:55:00Z",
    },
  ],
  halted: [],
  perMinute: [{ minute: "2026-01-08T12:00:00Z", events: 3 }],
  changes: [],
  alerts: { rules: 0, open: [], truncated: false },
};

beforeEach(() => {
  // Tests of other files may have told changes.
  feed.set([]);
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

test("a running job that falls behind needs a look: in what, by how much, and what it reaches", async () => {
  answering({ "/api/v2/overview": OVERVIEW });
  render(<OverviewPage />);
  const list = await screen.findByRole("list", { name: "Jobs in trouble" });
  const rows = list.querySelectorAll("li");
  expect(rows).toHaveLength(1);
  const text = rows[0]?.textContent;
  expect(text).toMatch(/Falls behind: 62,500 records of orders to read, up from 1,500 \(.* ago\)/);
  expect(text).toContain("1 dataset downstream");
  expect(text).toContain("Running");
  const links = [...list.querySelectorAll("a")].map((link) => link.getAttribute("href"));
  expect(links.slice(0, 2)).toEqual(["/jobs/shop/sink", "/datasets/kafka%3A%2F%2Fk%3A9092/orders"]);
  expect(screen.queryByText(/^Nothing fails/)).toBeNull();
});

test("what somebody paused or stopped is counted as that, and only where there is any", async () => {
  const words = () => [...document.querySelectorAll(".count-word")].map((one) => one.textContent);
  answering({ "/api/v2/overview": OVERVIEW });
  render(<OverviewPage />);
  await screen.findByRole("list", { name: "Jobs in trouble" });
  const usual = [" Failed", " Aborted", " Running", " Completed", "Jobs", "Datasets"];
  expect(words()).toEqual(usual);
  cleanup();
  const jobs = { ...OVERVIEW.jobs, PAUSED: 2, STOPPED: 1, total: 4 };
  answering({ "/api/v2/overview": { ...OVERVIEW, jobs } });
  render(<OverviewPage />);
  await screen.findByText("Paused");
  expect(words()).toEqual([...usual.slice(0, 4), " Paused", " Stopped", "Jobs", "Datasets"]);
  expect(screen.getByText("Paused").closest(".count")?.textContent).toBe("2 Paused");
});

test.each([
  [2, 4, "2 jobs are paused and 4 stopped on purpose; what only they write gets no newer."],
  [1, 1, "1 job is paused and 1 stopped on purpose; what only they write gets no newer."],
  [1, 0, "1 job is paused on purpose; what only it writes gets no newer."],
  [0, 3, "3 jobs are stopped on purpose; what only they write gets no newer."],
  [0, 0, null],
])(
  "of %i paused and %i stopped jobs the overview says why nothing new comes",
  async (PAUSED, STOPPED, said) => {
    const jobs = { ...OVERVIEW.jobs, PAUSED, STOPPED, total: 1 + PAUSED + STOPPED };
    // Where all is well, and beside what needs a look.
    for (const lagging of [[], OVERVIEW.lagging]) {
      answering({ "/api/v2/overview": { ...OVERVIEW, jobs, lagging } });
      render(<OverviewPage />);
      // What was asked before is shown until the new answer is there.
      await waitFor(() => {
        const list = screen.queryAllByRole("list", { name: "Jobs in trouble" });
        expect(list).toHaveLength(lagging.length);
        expect(screen.queryAllByText(/^Nothing fails/)).toHaveLength(1 - lagging.length);
        const text = screen.getByRole("region", { name: "What needs a look" }).textContent;
        if (said) expect(text).toContain(said);
        else expect(text).not.toContain("on purpose");
      });
      cleanup();
    }
  },
);
