import type { Browser } from "playwright-core";

/** What one page's main thread did while it was watched, from the browser's own trace. */
export interface Tasks {
  /** What the browser calls the page. */
  title: string;
  /** The longest by the time that they took of the CPU, in ms, longest first. */
  spent: number[];
  /** The longest by the clock: other programs on the same cores make these longer. */
  lasted: number[];
}

interface Traced {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  dur?: number;
  tdur?: number;
  args?: { name?: string; labels?: string };
}

const MAIN = "CrRendererMain";
const TASK = "ThreadControllerImpl::RunTask";

function longest(tasks: Traced[], read: (one: Traced) => number | undefined): number[] {
  return tasks
    .map((one) => (read(one) ?? 0) / 1_000)
    .sort((a, b) => b - a)
    .slice(0, 8)
    .map((ms) => Math.round(ms * 10) / 10);
}

/** Watch the main threads of all pages of a browser while something happens. */
export async function tasksDuring(browser: Browser, work: () => Promise<void>): Promise<Tasks[]> {
  await browser.startTracing(undefined, { categories: ["toplevel"], screenshots: false });
  let trace: Buffer;
  try {
    await work();
  } finally {
    trace = await browser.stopTracing();
  }
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: Traced[] };
  const titles = new Map(
    traceEvents
      .filter((one) => one.name === "process_labels")
      .map((one) => [one.pid, one.args?.labels ?? ""]),
  );
  return traceEvents
    .filter((one) => one.name === "thread_name" && one.args?.name === MAIN)
    .map(({ pid, tid }) => {
      const mine = traceEvents.filter(
        (one) => one.ph === "X" && one.name === TASK && one.pid === pid && one.tid === tid,
      );
      return {
        title: titles.get(pid) ?? `process ${pid}`,
        spent: longest(mine, (one) => one.tdur),
        lasted: longest(mine, (one) => one.dur),
      };
    })
    .filter((one) => one.spent.length > 0);
}
