import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, Server } from "./harness.mjs";
import { accessible, open, settled } from "./kit";

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

/** A page, its address, and the one thing on it that shows that its data is there. */
const PAGES: [string, () => string, (page: Page) => Locator][] = [
  [
    "overview",
    () => "/",
    (page) =>
      page
        .getByRole("list", { name: "Jobs in trouble" })
        .locator(".row-error", { hasText: "permission denied for table supplier_stats" }),
  ],
  ["graph", () => "/graph", (page) => page.getByRole("group", { name: /stream enrich_orders/ })],
  [
    "graph of columns",
    () => "/graph?columns=1",
    (page) =>
      page
        .getByRole("group", { name: "Kafka topic shop.orders" })
        .getByRole("button", { name: "customer_email" }),
  ],
  [
    "dataset",
    () => `${lake}/${encodeURIComponent("lake/supplier_stats")}`,
    (page) => page.locator(".lead", { hasText: "What each supplier earned" }),
  ],
  [
    "job",
    () => "/jobs/shop/supplier_stats.by_day",
    (page) => page.locator(".lead", { hasText: "Revenue by supplier and day" }),
  ],
  [
    "connectors",
    () => "/connectors",
    (page) =>
      page
        .getByRole("article", { name: "stats-sink" })
        .getByText("headwater connect restart stats-sink"),
  ],
  [
    "run",
    () => `/runs/${run}`,
    (page) => page.getByRole("region", { name: "Life" }).getByText("Stack trace"),
  ],
  [
    "events",
    () => "/events",
    (page) => page.locator(".event", { hasText: "FAIL" }).getByRole("link", { name: "stats-sink" }),
  ],
  [
    "doctor",
    () => "/doctor",
    (page) => page.getByRole("heading", { name: "One dataset under two names" }),
  ],
  [
    "the analysis of an estate without a lake",
    () => "/analysis",
    (page) => page.getByText("The estate was not analysed yet"),
  ],
  ["settings", () => "/settings", (page) => page.getByText("Kept for this tab only")],
  ["an unknown address", () => "/nowhere", (page) => page.getByText("No such page")],
];

/** Pages that are looked at in the dark too; with HEADWATER_FULL all of them. */
const DARK = process.env.HEADWATER_FULL ? PAGES.map(([name]) => name) : ["overview", "graph"];

test.each(PAGES)(
  "%s opens by its address, accessible in light and dark, whole from 800 px to 4K",
  async (name, path, sign) => {
    const { page, faults } = await open(browser, server.url + path(), {
      colorScheme: "light",
      reducedMotion: "reduce",
    });
    await sign(page).waitFor();
    await settled(page);
    expect(await page.locator("h1").count()).toBe(1);
    await accessible(page);
    for (const width of [800, 1280, 3840]) {
      await page.setViewportSize({ width, height: 900 });
      await expect
        .poll(() => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth))
        .toBeLessThanOrEqual(0);
    }
    if (DARK.includes(name)) {
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
      await page.locator('html[data-theme="dark"]').waitFor();
      await accessible(page);
    }
    expect(faults.filter((fault) => !/404/.test(fault) || path() !== "/nowhere")).toEqual([]);
  },
);

test("back and forward go through the pages, and an address can be shared", async () => {
  const { page } = await open(browser, `${server.url}/`);
  const troubles = page.getByRole("list", { name: "Jobs in trouble" });
  await troubles.getByRole("link", { name: "stats-sink", exact: true }).click();
  await page.waitForURL("**/jobs/shop/stats-sink");
  const writes = page.getByRole("region", { name: "Writes" });
  await writes.getByRole("link", { name: "bi.public.supplier_stats" }).click();
  await page.getByRole("heading", { name: "bi.public.supplier_stats" }).waitFor();
  const shared = page.url();
  await page.goBack();
  await page.getByRole("heading", { name: "stats-sink", level: 1 }).waitFor();
  await page.goBack();
  await page.getByText("What needs a look").waitFor();
  await page.goto(shared);
  await page.getByRole("heading", { name: "bi.public.supplier_stats" }).waitFor();
});

test("the keyboard alone is enough", async () => {
  const { page } = await open(browser, `${server.url}/`);
  await page.getByText("What needs a look").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.waitForURL("**/connectors");
  await page.keyboard.press("/");
  await page.keyboard.type("supstatstr");
  // Enter takes what is selected, and answers to the first letters may list it further down.
  const chosen = { name: /supplier_stats_stream/, selected: true };
  await page.getByRole("option", chosen).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/jobs/shop/supplier_stats_stream");
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Search" }).waitFor();
  await page.keyboard.type("orders");
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
});

test("search finds a column and lights up its path in the graph", async () => {
  const { page } = await open(browser, `${server.url}/`);
  await page.getByText("What needs a look").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("customer_email");
  await expect
    .poll(() => page.getByRole("option", { name: /customer_email in shop.orders/ }).count())
    .toBeGreaterThan(0);
  await page.keyboard.press("Shift+Enter");
  await page.waitForURL("**/graph?**");
  await expect.poll(() => page.locator(".col.self").count()).toBeGreaterThan(0);
});

test("the events follow the log, filter and show raw JSON", async () => {
  const { page } = await open(browser, `${server.url}/events`);
  await page.getByRole("list", { name: /Events/ }).waitFor();
  await page.getByLabel("Filter by type").selectOption("FAIL");
  await page.getByLabel("Filter by any text").fill("stats-sink");
  await expect.poll(() => page.locator(".event").count()).toBe(1);
  expect(page.url()).toContain("type=FAIL");
  await page.getByRole("button", { name: /raw JSON/ }).click();
  await page.getByText('"eventType": "FAIL"').waitFor();
});

test("a schema's history shows what changed between two versions", async () => {
  const path = `${lake}/${encodeURIComponent("lake/orders")}`;
  const { page } = await open(browser, server.url + path);
  await page.getByText("2 of 6 columns differ").waitFor();
  expect(await page.locator(".diff .added").textContent()).toContain("customer");
  expect(await page.locator(".diff .changed").textContent()).toContain("timestamptz");
});

test("connectors stand in the cluster they run on, those in trouble first", async () => {
  const { page } = await open(browser, `${server.url}/connectors`);
  const cluster = page.getByRole("region", { name: "Cluster shop-connect" });
  await cluster.getByText("3 connectors, 4 tasks, 1 failed").waitFor();
  expect(await cluster.getByRole("article").first().getAttribute("aria-label")).toBe("stats-sink");
  const failed = cluster.getByRole("article", { name: "stats-sink" });
  await failed.getByText("Task 0").waitFor();
  await failed.getByText("Stack trace").click();
  for (const action of ["apply", "pause", "resume", "stop", "restart", "delete"]) {
    await failed.getByLabel("Action on stats-sink").selectOption(action);
    await failed.getByText(`headwater connect ${action} stats-sink`).waitFor();
  }
  // The whole command can be read in a narrow window too.
  await page.setViewportSize({ width: 800, height: 900 });
  const hidden = () =>
    page
      .locator(".command-line")
      .evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length);
  await expect.poll(hidden).toBe(0);
});

test("a pasted configuration shows the lineage it would have and how to deploy it", async () => {
  const { page } = await open(browser, `${server.url}/connectors`);
  const before = await server.get("/api/v2/connectors");
  const panel = page.getByRole("region", { name: "Before you deploy" });
  await panel.getByLabel(/configuration: JSON/).fill(
    JSON.stringify({
      name: "archive",
      config: {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        topics: "shop.orders",
        "s3.bucket.name": "raw",
      },
    }),
  );
  await panel.getByRole("button", { name: "Show its lineage" }).click();
  const edge = panel.getByRole("list", { name: "Edges" }).getByRole("listitem");
  await edge.getByText("topics/shop.orders").waitFor();
  expect(await edge.textContent()).toMatch(/^shop.orders → topics\/shop.orders, \d+ columns: /);
  await panel.getByText("nothing was sent to Connect").waitFor();
  await panel.getByText("headwater connect apply archive.json").waitFor();
  expect((await server.get("/api/v2/connectors")).connectors).toEqual(before.connectors);
  await panel.getByLabel(/configuration: JSON/).fill("{");
  await panel.getByRole("button", { name: "Show its lineage" }).click();
  await panel.locator(".problem").waitFor();
});

test("a stuck run is aborted only after it was confirmed", async () => {
  const id = crypto.randomUUID();
  await server.post("/api/v1/lineage", {
    eventType: "START",
    eventTime: new Date().toISOString(),
    run: { runId: id },
    job: { namespace: "shop", name: "stuck" },
  });
  const { page } = await open(browser, `${server.url}/jobs/shop/stuck`);
  await page.getByRole("button", { name: "Abort run" }).click();
  await page.getByRole("dialog", { name: "Abort this run?" }).waitFor();
  await page.getByRole("button", { name: "Leave it" }).click();
  expect((await server.get(`/api/v1/jobs/runs/${id}`)).state).toBe("RUNNING");
  await page.getByRole("button", { name: "Abort run" }).click();
  await page.getByRole("button", { name: `Abort run …${id.slice(-8)}` }).click();
  await page.getByRole("region", { name: "Now" }).locator(".badge.state-aborted").waitFor();
});
