// @ts-check
/**
 * Screenshots of every page from the running program, light and dark, wide and narrow:
 * `npm run pictures [-- DIRECTORY]`. Those that README.md and docs mention are renewed in docs.
 *
 * The estate is recorded. With URL=http://127.0.0.1:PORT it is that of the demo which runs there, but for
 * what a demo cannot show: a failure, the past, and a server in trouble. Nothing is sent to that server.
 */

import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser, Server } from "./harness.mjs";

/** @typedef {import("playwright-core").Page} Page */

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const [directory = "build/pictures"] = process.argv.slice(2);
const target = resolve(ROOT, directory);
const TOKEN = "hw_of-the-pictures";
const URL_OF_DEMO = process.env.URL?.replace(/\/+$/, "");
const DAY = 86_400_000;

/**
 * What the pictures show of an estate.
 * @typedef {{ namespace: string, name: string }} Named
 * @typedef {object} Estate
 * @property {Named} selected a job in the graph
 * @property {Named} job the job that has a page of its own
 * @property {Named} summary a table of totals
 * @property {Named} orders the table it is made from, and the column to light up
 * @property {string} column
 * @property {Named} topic in a namespace that is opened
 * @property {string} typed what somebody looks for
 */

/** @type {Estate} */
const RECORDED = {
  selected: { namespace: "shop", name: "enrich_orders" },
  job: { namespace: "shop", name: "supplier_stats.by_day" },
  summary: { namespace: "s3://warehouse", name: "lake/supplier_stats" },
  orders: { namespace: "s3://warehouse", name: "lake/orders" },
  column: "amount",
  topic: { namespace: "kafka://broker:9092", name: "supplier-stats" },
  typed: "supst",
};

/** The same of the demo; ports are in its namespaces. @returns {Promise<Estate>} */
async function ofDemo(/** @type {Site} */ demo) {
  const { jobs } = await demo.get("/api/v1/jobs?limit=1000");
  const job = (/** @type {string} */ name) => {
    const found = jobs.find((/** @type {Named} */ one) => one.name === name);
    if (!found) throw new Error(`no job ${name} at ${demo.url}: is the demo running there?`);
    return { namespace: found.namespace, name };
  };
  const dataset = async (/** @type {string} */ name) => {
    const { matches } = await demo.get(`/api/v2/names?${new URLSearchParams({ q: name })}`);
    return matches[0];
  };
  return {
    selected: job("iceberg-ingestion"),
    job: job("supplier_stats.overwrite_by_expression.default_supplier_stats"),
    summary: await dataset("default/supplier_stats"),
    orders: await dataset("default/orders"),
    column: "price",
    topic: await dataset("supplier-stats"),
    typed: "supst",
  };
}

/** @param {string} kind @param {Named} named */
const node = (kind, { namespace, name }) => `${kind}:${namespace}:${name}`;
/** @param {string} page @param {Named} named */
const path = (page, { namespace, name }) =>
  `/${page}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
/** @param {number} age in milliseconds */
const ago = (age) => new Date(Date.now() - age).toISOString();

/** What a running demo shows as well. @param {Estate} estate @returns {Record<string, string>} */
const pagesOf = ({ selected, job, summary, orders, column, topic }) => ({
  overview: "/",
  graph: "/graph",
  "graph-selected": `/graph?select=${encodeURIComponent(node("job", selected))}`,
  "graph-columns": `/graph?${new URLSearchParams({ columns: "1", node: node("dataset", orders), depth: "4", column })}`,
  "graph-groups": "/graph?group=1",
  "graph-opened": `/graph?group=1&open=${encodeURIComponent(topic.namespace)}`,
  dataset: path("datasets", summary),
  audit: `${path("datasets", summary)}/audit?from=${ago(DAY / 12)}`,
  "dataset-history": path("datasets", orders),
  job: path("jobs", job),
  connectors: "/connectors",
  events: "/events",
  settings: "/settings",
});

/** What only the recorded estate has. @type {Record<string, string>} */
const RECORDED_ONLY = {
  "graph-past": `/graph?at=${ago(5 * DAY)}`,
  "graph-difference": `/graph?from=${ago(5 * DAY)}`,
  "job-failed": "/jobs/shop/stats-sink",
  "unknown-job": "/jobs/shop/nobody",
  "unknown-page": "/nowhere",
};

/** A server that pictures are taken of. */
class Site {
  /** @param {string} url @param {Server} [own] what events may be sent to */
  constructor(url, own) {
    this.url = url;
    this.own = own;
  }

  /** @param {string} path @returns {Promise<any>} */
  async get(path) {
    const answer = await fetch(this.url + path);
    if (!answer.ok) throw new Error(`${this.url}${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }
}

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

/** @param {Site} site @param {Record<string, string>} pages @param {Page} page @param {string} theme */
async function visit(site, pages, page, theme) {
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(site.url + path);
    await page.locator(".live-mark.live").waitFor();
    await site.own?.flow();
    if (name === "overview" && site.own) {
      await settled(page);
      await site.own.post("/api/v1/lineage", beat());
      await page
        .getByRole("region", { name: "Live" })
        .getByText("supplier_stats", { exact: true })
        .waitFor();
    }
    if (name === "graph") await page.locator(".wire-flow").first().waitFor({ state: "attached" });
    await shoot(page, `${name}-${theme}`, !path.startsWith("/graph") && name !== "events");
  }
}

/** @param {Site} site @param {string} typed @param {Page} page @param {string} theme */
async function search(site, typed, page, theme) {
  await page.goto(`${site.url}/graph`);
  await settled(page);
  await page.keyboard.press("/");
  await page.keyboard.type(typed);
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
  const recorded = new Site(server.url, server);
  const shown = URL_OF_DEMO ? new Site(URL_OF_DEMO) : recorded;
  const estate = URL_OF_DEMO ? await ofDemo(shown) : RECORDED;
  const { runs } = await recorded.get("/api/v1/namespaces/shop/jobs/stats-sink/runs");
  for (const width of [1440, 800])
    for (const theme of /** @type {const} */ (["light", "dark"])) {
      const context = await browser.newContext({
        viewport: { width, height: 900 },
        colorScheme: theme,
        reducedMotion: "reduce",
      });
      context.setDefaultTimeout(60_000);
      const page = await context.newPage();
      await visit(shown, pagesOf(estate), page, theme);
      await search(shown, estate.typed, page, theme);
      await visit(recorded, { ...RECORDED_ONLY, run: `/runs/${runs[0].id}` }, page, theme);
      await bare(await context.newPage(), theme);
      await misaligned(await context.newPage(), theme);
      await context.close();
    }
} finally {
  await browser.close();
  await server.remove();
}
renew();
