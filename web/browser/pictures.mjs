// @ts-check
/**
 * Screenshots of every page from the running program, light and dark, wide and narrow:
 * `npm run pictures [-- DIRECTORY]`. Those that README.md and docs mention are renewed in docs.
 */

import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser, Server } from "./harness.mjs";

/** @typedef {import("playwright-core").Page} Page */

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const [directory = "build/pictures"] = process.argv.slice(2);
const target = resolve(ROOT, directory);
const lake = encodeURIComponent("s3://warehouse");
const orders = "dataset:s3://warehouse:lake/orders";
const TOKEN = "hw_of-the-pictures";

/** @type {Record<string, string>} */
const PAGES = {
  overview: "/",
  graph: "/graph",
  "graph-selected": `/graph?select=${encodeURIComponent("job:shop:enrich_orders")}`,
  "graph-columns": `/graph?${new URLSearchParams({ columns: "1", node: orders, depth: "4", column: "amount" })}`,
  "graph-groups": "/graph?group=1",
  "graph-opened": `/graph?group=1&open=${encodeURIComponent("kafka://broker:9092")}`,
  "graph-past": `/graph?at=${new Date(Date.now() - 5 * 86_400_000).toISOString()}`,
  "graph-difference": `/graph?from=${new Date(Date.now() - 5 * 86_400_000).toISOString()}`,
  dataset: `/datasets/${lake}/${encodeURIComponent("lake/supplier_stats")}`,
  audit: `/datasets/${lake}/${encodeURIComponent("lake/supplier_stats")}/audit?from=${new Date(Date.now() - 2 * 3_600_000).toISOString()}`,
  "dataset-history": `/datasets/${lake}/${encodeURIComponent("lake/orders")}`,
  job: "/jobs/shop/supplier_stats.by_day",
  "job-failed": "/jobs/shop/stats-sink",
  connectors: "/connectors",
  events: "/events",
  settings: "/settings",
  "unknown-job": "/jobs/shop/nobody",
  "unknown-page": "/nowhere",
};

/** Wait until nothing is loading and the picture no longer changes. @param {Page} page */
async function settled(page) {
  await page.locator("h1, .problem").first().waitFor({ state: "attached" });
  await page.waitForFunction(() => !document.querySelector("main .loading"));
  if (new URL(page.url()).pathname === "/graph")
    await page.locator(".canvas[data-drawn], .first-run").waitFor();
  // Not for ever: some pages count seconds.
  for (let last = "", i = 0; i < 5; i++) {
    const now = (await page.screenshot()).toString("base64");
    if (now === last) return;
    last = now;
    await page.waitForTimeout(100);
  }
}

/** @param {Page} page @param {string} name @param {boolean} [whole] */
async function shoot(page, name, whole = false) {
  await settled(page);
  const size = page.viewportSize();
  const suffix = size?.width === 1440 ? "" : `-${size?.width}`;
  await page.screenshot({ path: join(target, `${name}${suffix}.png`), fullPage: whole });
}

/** @param {Server} server @param {Page} page @param {string} theme */
async function loaded(server, page, theme) {
  const runs = await server.get("/api/v1/namespaces/shop/jobs/stats-sink/runs");
  const pages = { ...PAGES, run: `/runs/${runs.runs[0].id}` };
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(server.url + path);
    await page.locator(".live-mark.live").waitFor();
    await server.flow();
    if (name === "overview") {
      await settled(page);
      await server.post("/api/v1/lineage", beat());
      await page
        .getByRole("region", { name: "Live" })
        .getByText("supplier_stats", { exact: true })
        .waitFor();
    }
    if (name === "graph") await page.locator(".wire-flow").first().waitFor({ state: "attached" });
    await shoot(page, `${name}-${theme}`, !path.startsWith("/graph") && name !== "events");
  }
  await page.goto(`${server.url}/graph`);
  await settled(page);
  await page.keyboard.press("/");
  await page.keyboard.type("supst");
  await page.locator(".palette-row").first().waitFor();
  await shoot(page, `search-${theme}`);
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await shoot(page, `keys-${theme}`);
}

/** Before the first event, behind a token, and after the server went away. @param {Page} page @param {string} theme */
async function bare(page, theme) {
  const server = await Server.start({ HEADWATER_TOKEN: TOKEN });
  try {
    await page.goto(server.url);
    await page.getByLabel("Token").waitFor();
    await shoot(page, `token-${theme}`);
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByText("Waiting for the first event").waitFor();
    await shoot(page, `first-run-${theme}`, true);
    for (const name of ["connectors", "events"]) {
      await page.goto(`${server.url}/${name}`);
      await shoot(page, `${name}-empty-${theme}`);
    }
    await server.down();
    await page.locator(".live-mark.lost").waitFor();
    await shoot(page, `lost-${theme}`);
  } finally {
    await server.remove();
  }
}

/** Two jobs that name the demo's data otherwise. @param {Page} page @param {string} theme */
async function misaligned(page, theme) {
  const server = await Server.start();
  try {
    await server.loadDemo();
    await server.load("misaligned.ndjson");
    await page.goto(`${server.url}/doctor`);
    await shoot(page, `doctor-${theme}`, true);
    await page.getByRole("button", { name: "Apply 2 sure pairs" }).click();
    await page.getByRole("region", { name: "Joined by doctor" }).waitFor();
    await shoot(page, `doctor-joined-${theme}`, true);
  } finally {
    await server.remove();
  }
}

function beat() {
  return {
    eventType: "START",
    eventTime: new Date().toISOString(),
    producer: "https://example.com/recorded",
    run: { runId: crypto.randomUUID() },
    job: { namespace: "shop", name: "supplier_stats" },
  };
}

/** Renew the pictures that the documents show. */
function renew() {
  const documents = ["README.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)];
  const text = documents
    .filter((name) => name.endsWith(".md"))
    .map((name) => readFileSync(join(ROOT, name), "utf8"))
    .join("\n");
  const shown = new Set([...text.matchAll(/pictures\/([\w-]+\.png)/g)].map((found) => found[1]));
  for (const name of shown)
    copyFileSync(join(target, String(name)), join(ROOT, "docs/pictures", String(name)));
  console.log(`pictures in ${directory}; ${shown.size} of them renewed in docs/pictures`);
}

mkdirSync(target, { recursive: true });
mkdirSync(join(ROOT, "docs/pictures"), { recursive: true });
const server = await Server.start();
const browser = await openBrowser();
try {
  await server.loadDemo();
  for (const width of [1440, 800])
    for (const theme of /** @type {const} */ (["light", "dark"])) {
      const context = await browser.newContext({
        viewport: { width, height: 900 },
        colorScheme: theme,
        reducedMotion: "reduce",
      });
      context.setDefaultTimeout(60_000);
      await loaded(server, await context.newPage(), theme);
      await bare(await context.newPage(), theme);
      await misaligned(await context.newPage(), theme);
      await context.close();
    }
} finally {
  await browser.close();
  await server.remove();
}
renew();
