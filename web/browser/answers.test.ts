import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openBrowser } from "./harness.mjs";
import { accessible, drawn, open, runEvent, serve, settled } from "./kit";

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const PIPELINE = join(import.meta.dirname, "../../tests/fixtures/server/orders-pipeline.ndjson");
const ORDERS = "dataset:postgres://shop-db:5432:shop.public.orders";
const BATCH = "supplier_stats.overwrite_by_expression.default_supplier_stats";
/** What the batch job looks up before: it writes nothing, so nobody knows which columns it reads. */
const LOOK = "supplier_stats.head.default_orders";

/** The jobs and datasets on the canvas that are lit, by the effect that is written on them. */
function lit(page: Page): Promise<Record<string, string[]>> {
  return page.locator(".react-flow__node").evaluateAll((all) => {
    const found: Record<string, string[]> = {};
    for (const one of all) {
      const effect = one.querySelector(".box-effect")?.textContent;
      const id = (one as HTMLElement).dataset.id ?? "";
      if (!effect) continue;
      const names = found[effect] ?? [];
      names.push(`${id.split(":")[0]} ${id.slice(id.lastIndexOf(":") + 1)}`);
      found[effect] = names.sort();
    }
    return found;
  });
}

test("what dropping orders.price hits is named and lit in the graph", async () => {
  const server = await serve();
  await server.post("/api/v2/events", readFileSync(PIPELINE, "utf8"));
  const at = new URLSearchParams({ node: ORDERS, select: ORDERS, depth: "6" });
  const { page, faults } = await open(browser, `${server.url}/graph?${at}`);
  await drawn(page);
  await page.getByRole("button", { name: /impact/i }).click();
  const side = page.getByRole("complementary", { name: "Impact" });
  await side.getByLabel("What if I").selectOption("drop");
  await side.getByLabel(/^column/).selectOption("price");
  await side.getByRole("button", { name: "Who is hit?" }).click();
  await side.getByText("9 jobs looked at, the columns of 8 are known").waitFor();
  const named = async (effect: string) =>
    (
      await side
        .getByRole("region", { name: effect, exact: true })
        .getByRole("link")
        .allTextContents()
    ).sort();
  expect(await named("breaks")).toEqual(["iceberg-ingestion", "supplier-stats"]);
  expect(await named("changes")).toEqual([
    "supplier-stats-export",
    "supplier-stats-jdbc-sink",
    BATCH,
  ]);
  expect(await named("unknown")).toEqual([LOOK]);
  expect(await named("carries")).toEqual([
    "orders-iceberg-sink",
    "orders-s3-sink",
    "orders-source",
  ]);
  expect(await side.getByRole("region", { name: "rows", exact: true }).count()).toBe(0);
  const columns = await side
    .getByRole("region", { name: "Columns hit" })
    .locator("li")
    .allTextContents();
  const sorted = (text: string) => {
    const [effect = "", ...names] = text.replaceAll(",", "").split(" ");
    return [effect, ...names.sort()].join(" ");
  };
  expect(columns.map(sorted)).toEqual([
    "changes default/orders.price default/supplier_stats.total_price orders-dead-letter.key.reason shop.public.supplier_stats.total_price supplier-stats.total_price supplier_stats.total_price",
    "rows default/orders default/supplier_stats orders-dead-letter shop.public.supplier_stats supplier-stats supplier_stats",
    "carries default/orders_landing.price orders.price topics/orders.price",
  ]);
  await expect
    .poll(() => lit(page))
    .toEqual({
      breaks: ["job iceberg-ingestion", "job supplier-stats"],
      changes: [
        "dataset default/orders",
        "dataset default/supplier_stats",
        "dataset orders-dead-letter",
        "dataset shop.public.supplier_stats",
        "dataset supplier-stats",
        "dataset supplier_stats",
        "job supplier-stats-export",
        "job supplier-stats-jdbc-sink",
      ],
      carries: [
        "dataset default/orders_landing",
        "dataset orders",
        "dataset topics/orders",
        "job orders-iceberg-sink",
        "job orders-s3-sink",
        "job orders-source",
      ],
      // The program that runs the batch job: drawn by the worst of what it runs.
      unknown: ["job supplier_stats"],
    });
  // The address holds the question, so that it can be shared.
  await page.reload();
  await page.getByRole("complementary", { name: "Impact" }).getByText("9 jobs looked at").waitFor();
  await accessible(page);
  expect(faults).toEqual([]);
});

test("the difference is listed as the command lists it, and leads to its nodes", async () => {
  const server = await serve();
  await server.loadDemo();
  const from = new Date(Date.now() - 3 * 3_600_000).toISOString();
  const { page, faults } = await open(browser, `${server.url}/graph?from=${from}`);
  await drawn(page);
  const side = page.getByRole("complementary", { name: "Difference" });
  await expect
    .poll(() => side.getByRole("list", { name: "Changes" }).getByRole("listitem").allTextContents())
    .toEqual([
      "~changed state shop:nightly_export: OK → ABORTED",
      "~changed state shop:stats-sink: RUNNING → FAILED",
    ]);
  await side.getByText("2 changes").waitFor();
  await accessible(page);
  await side.getByRole("button", { name: /stats-sink/ }).click();
  await page.getByRole("complementary", { name: /stats-sink/ }).waitFor();
  expect(faults).toEqual([]);
});

test("an action in a difference leads to the program that it is drawn in", async () => {
  const server = await serve();
  await server.post("/api/v2/events", readFileSync(PIPELINE, "utf8"));
  const span = new URLSearchParams({ from: "2026-11-19T17:40:00Z", to: "2026-11-19T17:41:40Z" });
  const { page, faults } = await open(browser, `${server.url}/graph?${span}`);
  await drawn(page);
  const side = page.getByRole("complementary", { name: "Difference" });
  const changes = side.getByRole("list", { name: "Changes" });
  await changes
    .getByText(
      "s3://warehouse:default/orders.price → s3://warehouse:default/supplier_stats.total_price",
    )
    .waitFor();
  await changes.getByRole("button", { name: `shop:${LOOK}` }).click();
  await page.getByRole("complementary", { name: /supplier_stats/ }).waitFor();
  expect(faults).toEqual([]);
});

test("the overview says why what is written by a failed job is stale", async () => {
  const server = await serve();
  await server.loadDemo();
  const { page, faults } = await open(browser, `${server.url}/`);
  await settled(page);
  const why = page.getByRole("region", { name: "Why" });
  const row = why.getByRole("listitem").filter({ hasText: "supplier_stats" });
  await row.getByText("permission denied for table supplier_stats").waitFor();
  expect(await row.getByRole("link").allTextContents()).toContain("stats-sink");
  await accessible(page);
  await row.getByRole("link").first().click();
  await page.waitForURL(/\/datasets\/.*supplier_stats/);
  expect(faults).toEqual([]);
});

/** The address of a dataset's page. */
function pageOf(url: string, namespace: string, name: string): string {
  return `${url}/datasets/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

test("a stale dataset's page says why, and leads to the job that failed", async () => {
  const server = await serve();
  await server.loadDemo();
  const stats = pageOf(server.url, "postgres://analytics:5432", "bi.public.supplier_stats");
  const { page, faults } = await open(browser, stats);
  await settled(page);
  const why = page.getByRole("region", { name: "Why", exact: true });
  const causes = why.getByRole("list", { name: "Causes" }).getByRole("listitem");
  await causes.getByText("permission denied for table supplier_stats").waitFor();
  expect(await causes.count()).toBe(1);
  expect(await causes.textContent()).toContain("stats-sink → bi.public.supplier_stats");
  await accessible(page);
  await causes.getByRole("link", { name: "stats-sink" }).click();
  await page.waitForURL(/\/jobs\/shop\/stats-sink/);
  expect(faults).toEqual([]);
});

test("a dataset's page says who a change of it hits, and lights it in the graph", async () => {
  const server = await serve();
  await server.post("/api/v2/events", readFileSync(PIPELINE, "utf8"));
  const { page, faults } = await open(
    browser,
    pageOf(server.url, "postgres://shop-db:5432", "shop.public.orders"),
  );
  await settled(page);
  const panel = page.getByRole("region", { name: "Impact of a change" });
  expect(await panel.getByRole("link", { name: "Light it in the graph" }).count()).toBe(0);
  await panel.getByLabel("What if I").selectOption("rename");
  await panel.getByLabel(/^column/).selectOption("price");
  const ask = panel.getByRole("button", { name: "Who is hit?" });
  expect(await ask.isDisabled()).toBe(true);
  await panel.getByLabel("to", { exact: true }).fill("amount");
  await ask.click();
  const breaks = panel.getByRole("region", { name: "breaks", exact: true });
  await breaks.waitFor();
  expect((await breaks.getByRole("link").allTextContents()).sort()).toEqual([
    "iceberg-ingestion",
    "supplier-stats",
  ]);
  await accessible(page);
  await panel.getByRole("link", { name: "Light it in the graph" }).click();
  await drawn(page);
  const side = page.getByRole("complementary", { name: "Impact" });
  await side.getByText("9 jobs looked at").waitFor();
  // Of what is drawn around the dataset; the first breaks are two jobs away.
  await expect
    .poll(async () => Object.keys(await lit(page)))
    .toEqual(expect.arrayContaining(["breaks", "carries"]));
  expect((await lit(page)).breaks).toContain("job supplier-stats");
  expect(faults).toEqual([]);
});

test("doctor joins two names by Apply, and parts them again by Undo", async () => {
  const server = await serve();
  await server.loadDemo();
  await server.load("misaligned.ndjson");
  const known = async () => {
    const path = pageOf("/api/v2", "hive://metastore:9083", "lake.supplier_stats");
    return (await server.get(path)).name;
  };
  const { page, faults } = await open(browser, `${server.url}/doctor`);
  await settled(page);
  const pairs = page.getByRole("list", { name: "Pairs" }).getByRole("listitem");
  const joined = page.getByRole("list", { name: "Joined" }).getByRole("listitem");
  await expect.poll(() => pairs.count()).toBe(2);
  expect(await joined.count()).toBe(0);
  expect(await known()).toBe("lake.supplier_stats");
  const both = page.getByRole("button", { name: "Apply 2 sure pairs" });
  await both.waitFor();
  await accessible(page);

  const hive = "Apply: lake.supplier_stats in hive://metastore:9083";
  await page.getByRole("button", { name: hive }).click();
  await expect.poll(() => joined.count()).toBe(1);
  expect(await joined.textContent()).toContain("hive://metastore:9083 lake.supplier_stats");
  await expect.poll(() => pairs.count()).toBe(1);
  expect(await known()).toBe("lake/supplier_stats");
  await accessible(page);

  await page.getByRole("button", { name: "Undo all" }).click();
  await expect.poll(() => pairs.count()).toBe(2);
  await expect.poll(() => joined.count()).toBe(0);
  expect(await known()).toBe("lake.supplier_stats");

  await both.click();
  await expect.poll(() => joined.count()).toBe(2);
  await page.getByText("No two names look like one dataset.").waitFor();
  expect(faults).toEqual([]);
});

/** Where messages of alerts go: a receiver that refuses while `code` says so. */
async function receiver(): Promise<{ url: string; code: number }> {
  const made = { url: "", code: 503 };
  const http = createServer((request, response) => {
    request.resume();
    response.writeHead(made.code).end();
  });
  await new Promise<void>((done) => http.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  made.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/hook`;
  return made;
}

test("an open incident is on the overview until it is over", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headwater-alerts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const hook = await receiver();
  const rules = join(folder, "alerts.toml");
  writeFileSync(
    rules,
    `[channels.pager]\nurl = "${hook.url}"\n[rules.failed]\nwhen = "run-failed"\nto = ["pager"]\n`,
  );
  const server = await serve({}, ["--alerts", rules]);
  const out = { outputs: [{ namespace: "s3://lake", name: "sums" }] };
  const run = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
  await server.post("/api/v1/lineage", runEvent("START", "load", run(1), out));
  const { page, faults } = await open(browser, `${server.url}/`);
  const incidents = page.getByRole("region", { name: "Open incidents" });
  await incidents.getByText("None is open.").waitFor();
  await incidents.getByText("1 alert rule").waitFor();
  await server.post("/api/v1/lineage", runEvent("FAIL", "load", run(1), out));
  const row = incidents.getByRole("listitem");
  await row.getByText("1 dataset downstream").waitFor();
  await row.getByText(/^Not sent yet to pager/).waitFor();
  await accessible(page);
  expect(await row.getByRole("link").getAttribute("href")).toBe("/jobs/shop/load");

  hook.code = 200;
  await server.post("/api/v1/lineage", runEvent("START", "load", run(2), out));
  await server.post("/api/v1/lineage", runEvent("COMPLETE", "load", run(2), out));
  await incidents.getByText("None is open.").waitFor();
  expect(faults).toEqual([]);
});

test("what somebody paused or stopped is calm on every page", async () => {
  const server = await serve();
  await server.loadDemo();
  const streaming = (integration: string) => ({
    jobType: { _producer: "x", _schemaURL: "x", processingType: "STREAMING", integration },
  });
  const job = (name: string, integration: string) => ({
    job: { namespace: "shop", name, facets: streaming(integration) },
  });
  const end = (facets: object, id: string) => ({ run: { runId: id, facets } });
  const facet = { _producer: "x", _schemaURL: "x" };
  const runs = ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"];
  const io = { outputs: [{ namespace: "s3://lake", name: "clicks" }] };
  const connector = { ...job("clicks-source", "KAFKA_CONNECT"), ...io };
  const stream = { ...job("count_clicks", "SPARK"), inputs: io.outputs };
  const [one = "", two = ""] = runs;
  await server.post("/api/v1/lineage", runEvent("START", "", one, connector));
  await server.post("/api/v1/lineage", runEvent("START", "", two, stream));
  const { page, faults } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  // The graph hears it without asking anew, and then from the server.
  const paused = {
    ...end({ headwater_connect: { ...facet, state: "PAUSED" } }, one),
    ...connector,
  };
  const stopped = { ...end({ headwater_end: { ...facet, reason: "stopped" } }, two), ...stream };
  await server.post("/api/v1/lineage", runEvent("COMPLETE", "", one, paused));
  await server.post("/api/v1/lineage", runEvent("ABORT", "", two, stopped));
  const state = (name: string) => page.locator(`[data-id="job:shop:${name}"] .box-state`);
  await expect.poll(() => state("clicks-source").textContent()).toBe("Paused");
  await expect.poll(() => state("count_clicks").textContent()).toBe("Stopped");
  await page.reload();
  await drawn(page);
  await expect.poll(() => state("count_clicks").textContent()).toBe("Stopped");

  for (const [path, word] of [
    ["jobs/shop/clicks-source", "Paused"],
    ["jobs/shop/count_clicks", "Stopped"],
    [`runs/${two}`, "Stopped"],
  ] as const) {
    await page.goto(`${server.url}/${path}`);
    await settled(page);
    await page.locator(".badge", { hasText: word }).first().waitFor();
    expect(await page.locator(".badge", { hasText: /Completed|Aborted/ }).count(), path).toBe(0);
    await accessible(page);
  }
  await page.goto(`${server.url}/connectors`);
  const card = page.getByRole("article", { name: "clicks-source" });
  await card.locator(".badge", { hasText: "Paused" }).waitFor();
  await card.getByText("headwater connect resume clicks-source").waitFor();
  await page.goto(server.url);
  await settled(page);
  // One of the paused is the demo's.
  const counted = (word: string) => page.locator(".count", { hasText: word }).textContent();
  expect([await counted("Paused"), await counted("Stopped")]).toEqual(["2 Paused", "1 Stopped"]);
  const troubles = page.getByRole("list", { name: "Jobs in trouble" });
  expect(await troubles.getByText(/click/).count()).toBe(0);
  await page.getByText("2 jobs are paused and 1 stopped on purpose").waitFor();
  await page.getByRole("button", { name: "Use the dark theme" }).click();
  await accessible(page);
  expect(faults).toEqual([]);
});

test("a column beside the graph says which of its inputs changed last", async () => {
  const server = await serve();
  const base = { _producer: "x", _schemaURL: "x" };
  const schema = (...fields: [string, string][]) => ({
    schema: { ...base, fields: fields.map(([name, type]) => ({ name, type })) },
  });
  const input = (field: string) => ({ namespace: "s3://lake", name: "items", field });
  const how = { inputFields: [input("price"), input("quantity")] };
  const stats = {
    namespace: "s3://lake",
    name: "stats",
    facets: {
      ...schema(["revenue", "long"]),
      columnLineage: { ...base, fields: { revenue: how } },
    },
  };
  for (const [n, type] of ["int", "long"].entries()) {
    const facets = schema(["price", type], ["quantity", "int"]);
    const io = { inputs: [{ namespace: "s3://lake", name: "items", facets }], outputs: [stats] };
    const run = `00000000-0000-4000-8000-00000000000${n}`;
    await server.post("/api/v1/lineage", runEvent("START", "sum", run, io));
    await server.post("/api/v1/lineage", runEvent("COMPLETE", "sum", run, io));
  }
  const at = new URLSearchParams({
    node: "dataset:s3://lake:stats",
    columns: "1",
    column: "datasetField:s3://lake:stats:revenue",
  });
  const { page, faults } = await open(browser, `${server.url}/graph?${at}`);
  await drawn(page);
  const side = page.getByRole("complementary", { name: "Column" });
  const list = side.getByRole("region", { name: "Schema changed last" }).getByRole("listitem");
  await expect.poll(() => list.count()).toBe(2);
  expect(await list.first().textContent()).toMatch(/^items\.price.*int.*long/);
  expect(await list.last().textContent()).toBe("The schema of 1 other never changed");
  await accessible(page);
  await list.getByRole("button", { name: "items.price" }).click();
  await side.getByRole("heading", { name: "price" }).waitFor();
  expect(faults).toEqual([]);
});
