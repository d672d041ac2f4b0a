import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, Server } from "./harness.mjs";
import { drawn, open, runEvent, settled } from "./kit";

let server: Server;
let browser: Browser;
const lake = `/datasets/${encodeURIComponent("s3://warehouse")}`;

beforeAll(async () => {
  [server, browser] = await Promise.all([Server.start(), openBrowser()]);
  await server.loadDemo();
});

afterAll(async () => {
  await browser?.close();
  await server?.remove();
});

const region = (page: Page, name: string) => page.getByRole("region", { name, exact: true });

/** Wait until a part of the page says each of these. */
async function says(page: Page, name: string, ...words: string[]): Promise<void> {
  for (const word of words)
    await expect.poll(() => region(page, name).textContent(), { message: name }).toContain(word);
}

test("the overview tells what fails and what is late, since when and what it reaches", async () => {
  // Once a minute for ten minutes, and then not for half an hour.
  for (let minute = 40; minute > 30; minute--) {
    const run = crypto.randomUUID();
    for (const state of ["START", "COMPLETE"])
      await server.post("/api/v1/lineage", {
        ...runEvent(state, "punctual", run),
        eventTime: new Date(Date.now() - minute * 60_000).toISOString(),
      });
  }
  const { page } = await open(browser, `${server.url}/`);
  const troubles = page.getByRole("list", { name: "Jobs in trouble" });
  await troubles.getByRole("link", { name: "punctual" }).waitFor();
  const rows = await troubles.locator("li.row").allTextContents();
  expect(rows[0]).toMatch(/stats-sink.*permission denied.*1 dataset downstream.*Failed.*ago/s);
  expect(rows.at(-1)).toMatch(/punctual.*Late: usually runs every 1 min.*nothing downstream/s);
  for (const [state, figure] of [
    ["failed", "1"],
    ["aborted", "1"],
    ["running", "4"],
  ])
    expect(await page.locator(`.count.state-${state} .count-figure`).textContent()).toBe(figure);
  await region(page, "Events a minute").getByRole("img").waitFor();
  await says(page, "Newest changes", "supplier_stats.by_day", "reads", "+ customer");
});

test("a dataset's page tells all that is known of it", async () => {
  const path = `${lake}/${encodeURIComponent("lake/supplier_stats")}`;
  const { page } = await open(browser, server.url + path);
  await says(page, "Now", "Fresh", "team:finance", "lake.supplier_stats");
  await says(page, "Columns", "lake/orders.amount", "aggregation", "sum(amount)");
  await says(page, "Written by", "supplier_stats.by_day");
  await says(page, "Read by", "nightly_export");
  await region(page, "Rows written").getByRole("img").waitFor();
  await region(page, "Bytes written").getByRole("img").waitFor();
  await says(page, "Quality", "not_null supplier_id");
  await region(page, "Raw facets").getByText("symlinks", { exact: true }).click();
  await says(page, "Raw facets", "iceberg://catalog:8181");
});

test("a dataset's tags are shown, those of its columns too", async () => {
  const path = `/datasets/${encodeURIComponent("kafka://broker:9092")}/shop.orders`;
  const { page } = await open(browser, server.url + path);
  await says(page, "Now", "domain=orders");
  await says(page, "Columns", "customer_email", "pii");
});

test("a tag that came along the data is told apart from one that was set", async () => {
  const source = `/api/v1/namespaces/${encodeURIComponent("postgres://shop-db:5432")}`;
  await server.post(`${source}/datasets/shop.public.order_items/fields/price/tags/money`, {});
  const { page } = await open(
    browser,
    `${server.url}${lake}/${encodeURIComponent("lake/supplier_stats")}`,
  );
  const came = region(page, "Columns").locator(".tag.propagated");
  await expect.poll(() => came.allTextContents()).toEqual(["moneyfrom shop.public.order_items"]);
  expect(await came.getAttribute("title")).toContain("orders-enriched.amount → lake/orders.amount");
});

test("an audit's period may be how long ago, and one that is refused leaves another to choose", async () => {
  const path = `${server.url}${lake}/${encodeURIComponent("lake/supplier_stats")}/audit`;
  const { page } = await open(browser, `${path}?from=30d`);
  const paper = page.locator(".audit-paper");
  await paper.getByText("supplier_stats.by_day").first().waitFor();
  await page.goto(`${path}?from=yesterday`);
  await page.getByText("how long ago (90m, 2d), or now").waitFor();
  await page.getByRole("link", { name: "Open the report" }).click();
  await paper.waitFor();
});

test("the audit of a dataset has an address of its own and can be printed", async () => {
  const path = `${lake}/${encodeURIComponent("lake/supplier_stats")}`;
  const { page, faults } = await open(browser, server.url + path);
  await region(page, "Audit").getByRole("link", { name: "Open the report" }).click();
  await page.getByRole("heading", { name: "Provenance of" }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`${path}/audit`);
  expect(new URL(page.url()).searchParams.get("from")).toBeTruthy();
  const paper = page.locator(".audit-paper");
  for (const word of ["supplier_stats.by_day", "orders-source", "PostgresConnector", "team:bi"])
    await expect.poll(() => paper.getByText(word).count(), { message: word }).toBeGreaterThan(0);
  await page.evaluate(() => {
    window.print = () => document.body.setAttribute("data-printed", "1");
  });
  await page.getByRole("button", { name: "Print" }).click();
  expect(await page.locator("body[data-printed]").count()).toBe(1);
  await page.emulateMedia({ media: "print" });
  expect(await page.locator("header.top").isVisible()).toBe(false);
  expect(await page.getByRole("heading", { name: "Provenance of" }).isVisible()).toBe(true);
  // The report's own address, without the page: one file, nothing else is asked for.
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(`${server.url}/api/v2${path}/audit/report`);
  await page.getByRole("heading", { name: "Who had it downstream" }).waitFor();
  expect(asked).toHaveLength(1);
  expect(faults).toEqual([]);
});

test("a job's page tells all that is known of it, of all runs or of one", async () => {
  const { page } = await open(browser, `${server.url}/jobs/shop/supplier_stats.by_day`);
  await says(page, "Now", "Completed", "team:finance", "2 datasets, 1 job");
  await says(page, "Reads", "of all live runs and the last", "shop.suppliers");
  await region(page, "Duration of runs").getByRole("img").waitFor();
  await region(page, "Rows written").getByRole("img").waitFor();
  expect(await region(page, "SQL").locator(".sql-keyword").count()).toBeGreaterThan(3);
  const runs = region(page, "Runs over time").getByRole("button");
  expect(await runs.count()).toBe(18);
  await runs.nth(17).click();
  await page.waitForURL(/run=/);
  await says(page, "Writes", "of run", "rows");
  await page.goto(`${server.url}/jobs/shop/supplier_stats`);
  await says(page, "Children", "supplier_stats.by_day");
  await page.goto(`${server.url}/jobs/shop/enrich_orders`);
  const source = region(page, "Now").getByRole("link", { name: /git.example.com/ });
  expect(await source.getAttribute("rel")).toContain("noopener");
});

test("a failed run shows its error, the stack trace folded", async () => {
  const { page } = await open(browser, `${server.url}/jobs/shop/stats-sink`);
  const now = region(page, "Now");
  await now.locator(".trace-message", { hasText: "permission denied" }).waitFor();
  const frame = now.locator("pre", { hasText: "at org.apache.kafka.connect" });
  expect(await frame.isVisible()).toBe(false);
  await now.getByText("Stack trace").click();
  await expect.poll(() => frame.isVisible()).toBe(true);
});

test("the theme is kept, the refresh can be stopped", async () => {
  const { page } = await open(browser, `${server.url}/settings`, { colorScheme: "light" });
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  await page.getByRole("radio", { name: "Dark" }).check({ force: true });
  await expect.poll(theme).toBe("dark");
  await page.getByRole("radio", { name: "Off" }).check({ force: true });
  await page.goto(`${server.url}/`);
  expect(await theme()).toBe("dark");
  await page.locator(".live-mark.live").waitFor();
  const total = page.locator(".count", { hasText: "Jobs" }).locator(".count-figure");
  const before = await total.textContent();
  await server.post("/api/v1/lineage", runEvent("START", "unseen", crypto.randomUUID()));
  // The stream still tells; the figures stay as they were.
  await says(page, "Live", "unseen");
  expect(await total.textContent()).toBe(before);
});

test("hovering lights up a node's way, and the map and the controls are there", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  const node = (name: string) => page.locator(".react-flow__node").filter({ hasText: name });
  await node("enrich_orders").hover();
  await expect
    .poll(() => node("audit-sink").locator(".box").getAttribute("class"))
    .toContain("dim");
  expect(await node("stats-sink").locator(".box").getAttribute("class")).toContain("down");
  await page.getByRole("button", { name: "Zoom In" }).hover();
  await expect
    .poll(() => node("audit-sink").locator(".box").getAttribute("class"))
    .not.toContain("dim");
  const zoom = () => page.locator(".react-flow__viewport").getAttribute("style");
  const fitted = await zoom();
  await page.getByRole("button", { name: "Zoom In" }).click();
  await expect.poll(zoom).not.toBe(fitted);
  await page.getByRole("button", { name: "Fit View" }).click();
  await expect.poll(zoom).toBe(fitted);
  await page.getByLabel("Map of the graph").waitFor();
});

test("kind and state of a node are told by icon and word, to a screen reader too", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  for (const name of [
    /^Source connector orders-source, Running for /,
    /^Sink connector stats-sink, Failed for /,
    /^Spark stream enrich_orders, Running for /,
    /^Kafka topic shop.orders$/,
    /^Iceberg table lake\/orders$/,
    /^PostgreSQL bi.public.supplier_stats$/,
    /^S3 orders\/$/,
  ]) {
    const node = page.getByRole("group", { name });
    expect(await node.count(), String(name)).toBe(1);
    expect(await node.locator(".box-kind svg").count()).toBe(1);
    if (/ for /.test(String(name))) expect(await node.locator(".box-state svg").count()).toBe(1);
  }
});

test.each([
  "/",
  `${lake}/${encodeURIComponent("lake/supplier_stats")}`,
  "/jobs/shop/supplier_stats.by_day",
  "/connectors",
  "/doctor",
])("every panel of %s links to the JSON it was drawn from", async (path) => {
  const { page } = await open(browser, server.url + path);
  await expect.poll(() => page.locator(".panel").count()).toBeGreaterThan(0);
  await settled(page);
  for (const panel of await page.locator(".panel").all()) {
    const name = (await panel.getAttribute("aria-label")) ?? "";
    if ((await panel.locator("form textarea").count()) > 0) continue; // it asks, and shows nothing yet
    const href = await panel.locator("a.json-link").first().getAttribute("href");
    expect(href, name).toMatch(/^\/api\//);
    // The live stream has no end to wait for.
    if (name === "Live") continue;
    const answer = await page.request.get(server.url + href);
    expect(answer.headers()["content-type"], name).toContain("json");
    expect(answer.status(), name).toBe(200);
  }
});
