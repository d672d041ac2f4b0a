import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { Server } from "./harness.mjs";

/** How long anything may take: only a page that is stuck needs it, however busy the machine is. */
export const PATIENCE = 60_000;

export interface Watched {
  page: Page;
  context: BrowserContext;
  /** What the page should never do: log errors, break the policy, ask strangers. */
  faults: string[];
}

interface Asked {
  began: number;
  took?: number;
  end?: string;
}

/** What was asked of the server, how it ended, and what still waits for an answer. */
class Requests {
  private readonly all = new Map<Request, Asked>();

  constructor(page: Page) {
    page.on("request", (request) => this.all.set(request, { began: Date.now() }));
    page.on("response", (response) =>
      this.end(response.request(), `${response.status()}, still being read`),
    );
    page.on("requestfinished", async (request) => {
      const response = await request.response().catch(() => null);
      this.end(request, String(response?.status() ?? "gone"));
    });
    page.on("requestfailed", (request) =>
      this.end(request, `FAILED: ${request.failure()?.errorText}`),
    );
  }

  private end(request: Request, end: string): void {
    const asked = this.all.get(request);
    if (asked) Object.assign(asked, { end, took: Date.now() - asked.began });
  }

  lines(): string[] {
    return [...this.all].slice(-40).map(([request, { began, took, end }]) => {
      const so = end ? `${end} after ${took} ms` : `IN FLIGHT for ${Date.now() - began} ms`;
      return `  ${request.method()} ${request.url()}: ${so}`;
    });
  }
}

/** Everything that a failure needs to explain itself: the page, its picture and its requests. */
async function story(page: Page, requests: Requests, faults: string[]): Promise<string> {
  const soon = <T>(work: Promise<T>) =>
    Promise.race([
      work.catch((error) => `(${error})`),
      new Promise<string>((done) => setTimeout(done, 5_000, "(the page does not answer)")),
    ]);
  const picture = join(mkdtempSync(join(tmpdir(), "headwater-failure-")), "page.png");
  const shot = await soon(page.screenshot({ path: picture }).then(() => picture));
  const html = await soon(
    page.evaluate(() => document.querySelector("main")?.outerHTML ?? document.body.outerHTML),
  );
  return [
    `\n\nThe page was ${page.url()}; its picture: ${shot}`,
    "Requests:",
    ...requests.lines(),
    `Faults: ${faults.length ? faults.join("\n  ") : "none"}`,
    `HTML: ${html.replace(/<path [^>]*>(<\/path>)?/g, "").slice(0, 6_000)}`,
  ].join("\n");
}

/** A server of one test's own, gone when the test ends. */
export async function serve(
  environment: Record<string, string> = {},
  options: string[] = [],
): Promise<Server> {
  const server = await Server.start(environment, options);
  onTestFinished(() => server.remove());
  return server;
}

/** Open an address in a context of its own, which is closed when the test ends. */
export async function open(
  browser: Browser,
  url: string,
  options: Parameters<Browser["newContext"]>[0] = {},
): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const requests = new Requests(page);
  const faults: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => {
    if (/^https?:/.test(request.url()) && !request.url().startsWith(new URL(url).origin))
      faults.push(`asked a stranger: ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  onTestFinished(async ({ task }) => {
    const [error] = task.result?.state === "fail" ? (task.result.errors ?? []) : [];
    if (error && !page.isClosed()) {
      const said = await story(page, requests, faults);
      error.message += said;
      error.stack = `${error.stack ?? ""}${said}`;
    }
    await context.close();
  });
  await page.goto(url);
  return { page, context, faults };
}

export async function drawn(page: Page): Promise<number> {
  const canvas = page.locator(".canvas[data-drawn]");
  await canvas.waitFor();
  return Number(await canvas.getAttribute("data-drawn"));
}

/** Wait until nothing is being loaded and the page has stood still for two frames. */
export async function settled(page: Page): Promise<void> {
  await page.locator("h1").waitFor({ state: "attached" });
  await expect.poll(() => page.locator("main .loading").count()).toBe(0);
  if (new URL(page.url()).pathname === "/graph") await drawn(page);
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

/** Accessibility by axe: WCAG 2 A and AA. */
export async function accessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const engine = (window as unknown as { axe: typeof import("axe-core") }).axe;
    const { violations } = await engine.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    });
    return violations.map(
      (one) =>
        `${one.id}: ${one.nodes
          .slice(0, 3)
          .map((node) => node.html.slice(0, 160))
          .join(" | ")}`,
    );
  });
  expect(found).toEqual([]);
}

export function runEvent(
  state: string,
  job: string,
  run: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    eventType: state,
    eventTime: new Date().toISOString(),
    producer: "https://example.com/test",
    run: { runId: run },
    job: { namespace: "shop", name: job },
    ...more,
  };
}

/** How many times longer than on a free machine a busy program takes now: wall by CPU time. */
export function contention(): number {
  const began = performance.now();
  const before = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(before);
    const spent = (user + system) / 1_000;
    if (spent > 120) return Math.max(1, (performance.now() - began) / spent);
  }
}

/**
 * Hold an attempt to a time: the best of a few counts, and where other programs take the machine,
 * as much more as they take.
 */
export async function within(limit: number, attempt: () => Promise<number>): Promise<number> {
  const seen: string[] = [];
  for (let i = 0; i < 5; i++) {
    const took = await attempt();
    const busy = contention();
    if (took < limit * busy) return took;
    seen.push(`${Math.round(took)} ms while the machine was busy ${busy.toFixed(1)} times`);
  }
  throw new Error(`not once within ${limit} ms: ${seen.join("; ")}`);
}
