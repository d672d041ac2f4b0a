import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, test, vi } from "vitest";
import { flowKey, useFlow, useRate } from "../lib/flow";
import { answering } from "./answers";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** The sum of the minute that ended some seconds ago, or ends some seconds from now. */
function minute(run: string, ended: number) {
  return {
    run,
    dataset: { namespace: "kafka://k:9092", name: "orders" },
    direction: "output",
    time: new Date(Date.now() - (ended + 60) * 1_000).toISOString(),
    seconds: 60,
    recordsPerSecond: 4.9,
    lag: null,
    lastRecordAt: null,
  };
}

function Rate({ run }: { run: string }) {
  return <>{useRate(flowKey(run, "output", "orders"))?.records ?? "none"} </>;
}

function Rates() {
  useFlow();
  return (
    <p>
      <Rate run="now" />
      <Rate run="of-late" />
      <Rate run="old" />
    </p>
  );
}

test("a page that opens shows no rate that is older than half a minute", async () => {
  answering({
    "/api/v2/flow": { flow: [minute("now", -20), minute("of-late", 9), minute("old", 45)] },
  });
  render(<Rates />);
  await screen.findByText("4.9 4.9 none");
});
