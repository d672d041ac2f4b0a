import type { Browser, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser } from "./harness.mjs";
import { contention, drawn, open, runEvent, serve, settled } from "./kit";
import { tasksDuring } from "./tasks";

const FULL = Boolean(process.env.HEADWATER_FULL);
let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
});

test.each(["/", "/graph"])(
  "the first event turns the first page at %s into the graph",
  async (path) => {
    const server = await serve();
    const { page, faults } = await open(browser, server.url + path);
    await page.getByText("Waiting for the first event").waitFor();
    for (const [name, what] of [
      ["Kafka Connect", "headwater connect watch"],
      ["PySpark", "headwater spark run"],
      ["curl", "/api/v1/lineage"],
    ])
      expect(await page.locator(`section[aria-label="${name}"] pre`).textContent()).toContain(what);
    await page.locator(".live-mark.live").waitFor();
    const said = (await page.locator(".way").last().locator("pre").textContent()) ?? "";
    const body = said.slice(said.indexOf("'") + 1, said.lastIndexOf("'"));
    await server.post("/api/v1/lineage", body);
    await page.waitForURL("**/graph");
    await drawn(page);
    await page.locator(".react-flow__node").filter({ hasText: "hello" }).waitFor();
    expect(faults).toEqual([]);
  },
);

test("what fails once is asked for again, answers and scripts alike", async () => {
  const server = await serve();
  await server.loadDemo();
  const { page, context } = await open(browser, `${server.url}/settings`);
  let failed = 0;
  const once = async (pattern: RegExp, how: (route: Route) => Promise<void>) => {
    const handle = (route: Route) => {
      failed += 1;
      return how(route);
    };
    await context.route(pattern, handle, { times: 1 });
  };
  await once(/api\/v2\/jobs\/shop/, (route) => route.abort("connectionreset"));
  await once(/api\/v1\/namespaces\/shop\/jobs/, (route) => route.fulfill({ status: 503 }));
  await page.goto(`${server.url}/jobs/shop/supplier_stats.by_day`);
  await page.getByText("It is tried again by itself").waitFor();
  await page.locator(".lead", { hasText: "Revenue by supplier and day" }).waitFor();
  await page.getByRole("region", { name: "Runs over time" }).waitFor();
  await once(/assets\/graph-.*\.js/, (route) => route.abort("connectionreset"));
  await page.goto(`${server.url}/graph`);
  await drawn(page);
  expect(failed).toBe(3);
});

test("a run that fails shows at once, without a reload", async () => {
  const server = await serve();
  await server.loadDemo();
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  await page.locator(".live-mark.live").waitFor();
  const stream = page.locator(".react-flow__node").filter({ hasText: "enrich_orders" });
  expect(await stream.textContent()).toContain("Running");
  const run = (await server.get("/api/v2/jobs/shop/enrich_orders")).run;
  await server.post("/api/v1/lineage", runEvent("FAIL", "enrich_orders", run));
  const began = Date.now();
  await expect.poll(() => stream.textContent()).toContain("Failed");
  expect(Date.now() - began).toBeLessThan(3_000 * contention());
  await server.post(
    "/api/v1/lineage",
    runEvent("START", "brand_new", crypto.randomUUID(), {
      inputs: [{ namespace: "kafka://broker:9092", name: "orders-enriched" }],
    }),
  );
  await page.locator(".react-flow__node").filter({ hasText: "brand_new" }).waitFor();
});

test("a lost server shows as such, and the page recovers by itself", async () => {
  const server = await serve();
  await server.loadDemo();
  const { page } = await open(browser, server.url);
  await page.getByText("What needs a look").waitFor();
  await page.locator(".live-mark.live").waitFor();
  await server.down();
  await page.getByRole("alert").getByText("The server does not answer").waitFor();
  await page.getByText("What needs a look").waitFor();
  await server.up();
  await page.locator(".live-mark.live").waitFor();
  await expect.poll(() => page.getByRole("alert").count()).toBe(0);
  await server.post("/api/v1/lineage", runEvent("START", "after_the_gap", crypto.randomUUID()));
  const feed = page.getByRole("region", { name: "Live" });
  await expect.poll(() => feed.textContent()).toContain("after_the_gap");
});

test.each([
  ["/graph", FULL ? 60 : 10],
  ["/", FULL ? 60 : 4],
  ["/events", FULL ? 60 : 4],
] as const)(
  "%s stays responsive under 50 events a second for %i seconds",
  async (path, seconds) => {
    const server = await serve();
    await server.loadDemo();
    const { page, faults } = await open(browser, server.url + path);
    await page.locator(".live-mark.live").waitFor();
    await settled(page);
    let sent = 0;
    const tasks = await tasksDuring(browser, page, async () => {
      const began = Date.now();
      while (Date.now() < began + seconds * 1_000) {
        const events = Array.from({ length: 10 }, () => {
          const n = sent++;
          const state = n % 2 === 0 ? "START" : "COMPLETE";
          const run = `00000000-0000-4000-8000-${String(n >> 1).padStart(12, "0")}`;
          // Twenty jobs run over and over; now and then a new one joins and the graph grows.
          const name = n % 100 < 2 ? `new-${n}` : `busy-${(n >> 1) % 20}`;
          return JSON.stringify(
            runEvent(state, name, run, {
              inputs: [{ namespace: "kafka://broker:9092", name: "orders-enriched" }],
              outputs: [{ namespace: "s3://busy", name }],
            }),
          );
        });
        await server.post("/api/v2/events", events.join("\n"));
        // Where the machine falls behind, it catches up: the page gets the events all the same.
        const due = began + (sent / 50) * 1_000;
        await new Promise((done) => setTimeout(done, Math.max(0, due - Date.now())));
      }
    });
    console.log(
      `${path}: ${sent} events; longest tasks by CPU ${tasks.spent.join(", ")} ms,` +
        ` by the clock ${tasks.lasted.join(", ")} ms`,
    );
    expect(sent).toBeGreaterThan(seconds * 25);
    expect(tasks.spent.length).toBeGreaterThan(0);
    expect(tasks.spent.filter((ms) => ms > 50)).toEqual([]);
    expect(faults).toEqual([]);
  },
);
