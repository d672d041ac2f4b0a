// @ts-check
/** Screenshots of every page from the running program: `npm run pictures [-- DIRECTORY [WIDTH]]`. */

import { mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser, Server } from "./harness.mjs";

const [directory = "docs/pictures", wide = "1440"] = process.argv.slice(2);
const target = resolve(dirname(fileURLToPath(import.meta.url)), "../..", directory);
const lake = encodeURIComponent("s3://warehouse");
const orders = "dataset:s3://warehouse:lake/orders";

/** @type {Record<string, string>} */
const PAGES = {
  overview: "/",
  graph: "/graph",
  "graph-selected": `/graph?select=${encodeURIComponent("job:shop:enrich_orders")}`,
  "graph-columns": `/graph?${new URLSearchParams({ columns: "1", node: orders, depth: "4", column: "amount" })}`,
  "graph-groups": "/graph?group=1",
  "graph-difference": `/graph?from=${new Date(Date.now() - 5 * 86_400_000).toISOString()}`,
  dataset: `/datasets/${lake}/${encodeURIComponent("lake/supplier_stats")}`,
  "dataset-history": `/datasets/${lake}/${encodeURIComponent("lake/orders")}`,
  job: "/jobs/shop/supplier_stats.by_day",
  "job-failed": "/jobs/shop/stats-sink",
  connectors: "/connectors",
  events: "/events",
  settings: "/settings",
};

mkdirSync(target, { recursive: true });
const server = await Server.start();
const browser = await openBrowser();
const width = Number(wide);
const suffix = width === 1440 ? "" : `-${width}`;
try {
  const first = await browser.newPage({ viewport: { width, height: 900 } });
  await first.goto(server.url);
  await first.getByText("Waiting for the first event").waitFor();
  await first.screenshot({ path: join(target, `first-run${suffix}.png`) });
  await first.close();
  await server.loadDemo();
  const runs = await server.get("/api/v1/namespaces/shop/jobs/stats-sink/runs");
  const pages = { ...PAGES, run: `/runs/${runs.runs[0].id}` };
  for (const theme of /** @type {const} */ (["light", "dark"])) {
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: theme,
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(server.url + path);
      await page.locator(".live-mark.live").waitFor();
      await server.flow();
      if (path.startsWith("/graph")) await page.locator(".canvas[data-drawn]").waitFor();
      await page.waitForTimeout(700);
      if (name === "overview") await server.post("/api/v1/lineage", beat());
      if (name === "overview") await page.waitForTimeout(1_800);
      const full = !path.startsWith("/graph") && name !== "events";
      await page.screenshot({
        path: join(target, `${name}-${theme}${suffix}.png`),
        fullPage: full,
      });
    }
    await page.goto(`${server.url}/graph`);
    await page.locator(".canvas[data-drawn]").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("supst");
    await page.locator(".palette-row").first().waitFor();
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(target, `search-${theme}${suffix}.png`) });
    await context.close();
  }
} finally {
  await browser.close();
  await server.remove();
}
console.log(`pictures in ${directory}`);

function beat() {
  return {
    eventType: "START",
    eventTime: new Date().toISOString(),
    producer: "https://example.com/recorded",
    run: { runId: crypto.randomUUID() },
    job: { namespace: "shop", name: "supplier_stats.by_day" },
  };
}
