import type { Browser, Page } from "playwright-core";

/** What the page's main thread did while it was watched, from the browser's own trace. */
export interface Tasks {
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
  args?: { name?: string };
}

const MAIN = "CrRendererMain";
const TASK = "ThreadControllerImpl::RunTask";

/** Watch the tasks of a page's main thread while something happens. */
export async function tasksDuring(
  browser: Browser,
  page: Page,
  work: () => Promise<void>,
): Promise<Tasks> {
  await browser.startTracing(page, { categories: ["toplevel"], screenshots: false });
  let trace: Buffer;
  try {
    await work();
  } finally {
    trace = await browser.stopTracing();
  }
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: Traced[] };
  const main = new Set(
    traceEvents
      .filter((one) => one.name === "thread_name" && one.args?.name === MAIN)
      .map((one) => `${one.pid} ${one.tid}`),
  );
  const mine = traceEvents.filter(
    (one) => one.ph === "X" && one.name === TASK && main.has(`${one.pid} ${one.tid}`),
  );
  const longest = (read: (one: Traced) => number | undefined) =>
    mine
      .map((one) => (read(one) ?? 0) / 1_000)
      .sort((a, b) => b - a)
      .slice(0, 8)
      .map((ms) => Math.round(ms * 10) / 10);
  return { spent: longest((one) => one.tdur), lasted: longest((one) => one.dur) };
}
