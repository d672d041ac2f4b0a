import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser } from "./harness.mjs";
import { accessible, drawn, open, serve, settled } from "./kit";

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
  await side.getByText("6 jobs looked at, the columns of 6 are known").waitFor();
  const named = async (effect: string) =>
    (
      await side
        .getByRole("region", { name: effect, exact: true })
        .getByRole("link")
        .allTextContents()
    ).sort();
  expect(await named("breaks")).toEqual(["iceberg-ingestion", "supplier-stats"]);
  expect(await named("changes")).toEqual([BATCH]);
  expect(await named("carries")).toEqual([
    "orders-iceberg-sink",
    "orders-s3-sink",
    "orders-source",
  ]);
  for (const effect of ["rows", "unknown"])
    expect(await side.getByRole("region", { name: effect, exact: true }).count(), effect).toBe(0);
  const columns = await side
    .getByRole("region", { name: "Columns hit" })
    .locator("li")
    .allTextContents();
  const sorted = (text: string) => {
    const [effect = "", ...names] = text.replaceAll(",", "").split(" ");
    return [effect, ...names.sort()].join(" ");
  };
  expect(columns.map(sorted)).toEqual([
    "changes default/orders.price default/supplier_stats.total_price orders-dead-letter.key.reason supplier-stats.total_price",
    "rows default/orders default/supplier_stats orders-dead-letter supplier-stats",
    "carries archive.price default/orders_landing.price orders-dead-letter.price orders.price",
  ]);
  await expect
    .poll(() => lit(page))
    .toEqual({
      breaks: ["job iceberg-ingestion", "job supplier-stats"],
      changes: [
        "dataset default/orders",
        "dataset default/supplier_stats",
        "dataset orders-dead-letter",
        "dataset supplier-stats",
        `job ${BATCH}`,
      ],
      carries: [
        "dataset archive",
        "dataset default/orders_landing",
        "dataset orders",
        "job orders-iceberg-sink",
        "job orders-s3-sink",
        "job orders-source",
      ],
    });
  // The address holds the question, so that it can be shared.
  await page.reload();
  await page.getByRole("complementary", { name: "Impact" }).getByText("6 jobs looked at").waitFor();
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
