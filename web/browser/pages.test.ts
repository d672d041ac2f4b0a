import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser, Server } from "./harness.mjs";
import { accessible, drawn, open } from "./kit";

let server: Server;
let browser: Browser;
let run = "";
const lake = `/datasets/${encodeURIComponent("s3://warehouse")}`;

beforeAll(async () => {
  [server, browser] = await Promise.all([Server.start(), openBrowser()]);
  await server.loadDemo();
  run = (await server.get("/api/v1/namespaces/shop/jobs/stats-sink/runs")).runs[0].id;
});

afterAll(async () => {
  await browser?.close();
  await server?.remove();
});

const PAGES: [string, () => string, string][] = [
  ["overview", () => "/", "permission denied for table supplier_stats"],
  ["graph", () => "/graph", "enrich_orders"],
  ["graph of columns", () => "/graph?columns=1", "customer_email"],
  [
    "dataset",
    () => `${lake}/${encodeURIComponent("lake/supplier_stats")}`,
    "What each supplier earned",
  ],
  ["job", () => "/jobs/shop/supplier_stats.by_day", "Revenue by supplier and day"],
  ["connectors", () => "/connectors", "headwater connect restart stats-sink"],
  ["run", () => `/runs/${run}`, "Stack trace"],
  ["events", () => "/events", "supplier_stats_stream"],
  ["settings", () => "/settings", "Kept for this tab only"],
  ["an unknown address", () => "/nowhere", "No such page"],
];

describe.each(PAGES)("%s", (_, path, text) => {
  test.each(["light", "dark"] as const)("opens by its address, accessible in %s", async (theme) => {
    const { page, context, faults } = await open(browser, server.url + path(), {
      colorScheme: theme,
      reducedMotion: "reduce",
    });
    await page.getByText(text).first().waitFor();
    if (path().startsWith("/graph")) await drawn(page);
    expect(await page.locator("h1").count()).toBe(1);
    await accessible(page);
    expect(faults.filter((fault) => !/404/.test(fault) || path() !== "/nowhere")).toEqual([]);
    await context.close();
  });
});

test.each([800, 1280, 3840])("nothing is cut off at %i pixels", async (width) => {
  const { page, context } = await open(browser, server.url, { viewport: { width, height: 900 } });
  for (const [, path] of PAGES) {
    await page.goto(server.url + path());
    await page.locator("h1").first().waitFor({ state: "attached" });
    await page.waitForTimeout(150);
    const over = await page.evaluate(
      () => document.documentElement.scrollWidth - window.innerWidth,
    );
    expect(over, path()).toBeLessThanOrEqual(0);
  }
  await context.close();
});

test("back and forward go through the pages, and an address can be shared", async () => {
  const { page, context } = await open(browser, `${server.url}/`);
  await page.getByRole("link", { name: "stats-sink" }).first().click();
  await page.waitForURL("**/jobs/shop/stats-sink");
  await page.getByRole("link", { name: "bi.public.supplier_stats" }).first().click();
  await page.getByRole("heading", { name: "bi.public.supplier_stats" }).waitFor();
  const shared = page.url();
  await page.goBack();
  await page.getByRole("heading", { name: "stats-sink", level: 1 }).waitFor();
  await page.goBack();
  await page.getByText("What needs a look").waitFor();
  await page.goto(shared);
  await page.getByRole("heading", { name: "bi.public.supplier_stats" }).waitFor();
  await context.close();
});

test("every panel links to the JSON it was drawn from", async () => {
  const { page, context } = await open(browser, `${server.url}/jobs/shop/supplier_stats.by_day`);
  await page.getByText("Latest runs").waitFor();
  const links = await page
    .locator(".panel a.json-link")
    .evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).href));
  expect(links.length).toBeGreaterThanOrEqual(await page.locator(".panel").count());
  for (const href of new Set(links)) {
    const answer = await page.request.get(href);
    expect(answer.status(), href).toBe(200);
    expect(answer.headers()["content-type"]).toContain("json");
  }
  await context.close();
});

test("the keyboard alone is enough", async () => {
  const { page, context } = await open(browser, `${server.url}/`);
  await page.getByText("What needs a look").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.waitForURL("**/connectors");
  await page.keyboard.press("/");
  await page.keyboard.type("supstatstr");
  await page.getByRole("option", { name: /supplier_stats_stream/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/jobs/shop/supplier_stats_stream");
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Search" }).waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.getByText("What needs a look").waitFor();
  const list = page.getByRole("list", { name: "Jobs in trouble" });
  await list.getByRole("link", { name: "stats-sink" }).focus();
  await page.keyboard.press("ArrowDown");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("nightly_export");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/jobs/shop/nightly_export");
  await context.close();
});

test("search finds a column and lights up its path in the graph", async () => {
  const { page, context } = await open(browser, `${server.url}/`);
  await page.getByText("What needs a look").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("customer_email");
  await page
    .getByRole("option", { name: /customer_email in shop.orders/ })
    .first()
    .waitFor();
  await page.keyboard.press("Shift+Enter");
  await page.waitForURL("**/graph?**");
  await page.locator(".col.self").first().waitFor();
  await context.close();
});

test("the events follow the log, filter and show raw JSON", async () => {
  const { page, context } = await open(browser, `${server.url}/events`);
  await page.getByRole("list", { name: /Events/ }).waitFor();
  await page.getByLabel("Filter by type").selectOption("FAIL");
  await page.getByLabel("Filter by any text").fill("stats-sink");
  await expect.poll(() => page.locator(".event").count()).toBe(1);
  expect(page.url()).toContain("type=FAIL");
  await page.getByRole("button", { name: /raw JSON/ }).click();
  await page.getByText('"eventType": "FAIL"').waitFor();
  await context.close();
});

test("a schema's history shows what changed between two versions", async () => {
  const path = `${lake}/${encodeURIComponent("lake/orders")}`;
  const { page, context } = await open(browser, server.url + path);
  await page.getByText("2 of 6 columns differ").waitFor();
  expect(await page.locator(".diff .added").textContent()).toContain("customer");
  expect(await page.locator(".diff .changed").textContent()).toContain("timestamptz");
  await context.close();
});

test("a stuck run is aborted only after it was confirmed", async () => {
  const id = crypto.randomUUID();
  await server.post("/api/v1/lineage", {
    eventType: "START",
    eventTime: new Date().toISOString(),
    run: { runId: id },
    job: { namespace: "shop", name: "stuck" },
  });
  const { page, context } = await open(browser, `${server.url}/jobs/shop/stuck`);
  await page.getByRole("button", { name: "Abort run" }).click();
  await page.getByRole("dialog", { name: "Abort this run?" }).waitFor();
  await page.getByRole("button", { name: "Leave it" }).click();
  expect((await server.get(`/api/v1/jobs/runs/${id}`)).state).toBe("RUNNING");
  await page.getByRole("button", { name: "Abort run" }).click();
  await page.getByRole("button", { name: `Abort run ${id.slice(0, 8)}` }).click();
  await page.locator(".badge.state-aborted").first().waitFor();
  await context.close();
});
