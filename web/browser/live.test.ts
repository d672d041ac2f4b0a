import type { Browser, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser } from "./harness.mjs";
import { contention, drawn, open, runEvent, serve } from "./kit";

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
});

test("the first event turns the first page into the graph, at / and at /graph alike", async () => {
  const server = await serve();
  const opened = [
    await open(browser, `${server.url}/`),
    await open(browser, `${server.url}/graph`),
  ];
  let body = "";
  for (const { page } of opened) {
    await page.getByText("Waiting for the first event").waitFor();
    for (const [name, what] of [
      ["Kafka Connect", "headwater connect watch"],
      ["PySpark", "headwater spark run"],
      ["curl", "/api/v1/lineage"],
    ])
      expect(await page.locator(`section[aria-label="${name}"] pre`).textContent()).toContain(what);
    await page.locator(".live-mark.live").waitFor();
    const said = (await page.locator(".way").last().locator("pre").textContent()) ?? "";
    body = said.slice(said.indexOf("'") + 1, said.lastIndexOf("'"));
  }
  await server.post("/api/v1/lineage", body);
  for (const { page, faults } of opened) {
    await page.waitForURL("**/graph");
    await drawn(page);
    await page.locator(".react-flow__node").filter({ hasText: "hello" }).waitFor();
    expect(faults).toEqual([]);
  }
});

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
  // The header still fits the narrowest window that it has all its words in.
  await page.setViewportSize({ width: 800, height: 900 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide).toBe(800);
  await server.up();
  await page.locator(".live-mark.live").waitFor();
  await expect.poll(() => page.getByRole("alert").count()).toBe(0);
  await server.post("/api/v1/lineage", runEvent("START", "after_the_gap", crypto.randomUUID()));
  const feed = page.getByRole("region", { name: "Live" });
  await expect.poll(() => feed.textContent()).toContain("after_the_gap");
});
