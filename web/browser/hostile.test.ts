import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { shown } from "../src/lib/shown";
import { openBrowser } from "./harness.mjs";
import { drawn, open, runEvent, serve, settled } from "./kit";

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
});

/** Names that mean something to HTML, scripts, addresses, paths, terminals or writing systems. */
const ALL = [
  `<img src=x onerror="alert(1)">`,
  `"><svg/onload=alert(2)>`,
  "</title></script><script>alert(3)</script>",
  "javascript:alert(4)",
  "data:text/html,<script>alert(5)</script>",
  "{{7*7}}#{7*7}<%= 7*7 %>",
  "__proto__",
  "constructor",
  ".",
  "..",
  "../../etc/passwd",
  "a/../b",
  "/",
  "//evil.example/x",
  "%2F..%2F",
  "%",
  "%00",
  "a#b?c=d&e=f",
  "a;b",
  "a\\b",
  "a:b:c",
  " ",
  "a\nb\tc",
  "\u202egnp.exe\u2066x\u2069",
  "\u200b\u200d\ufeff",
  "👩‍👩‍👧‍👦🏴‍☠️",
  "ﷺ".repeat(100),
  "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞",
  "x".repeat(1_024),
  "'; DROP TABLE job; --",
  "\u0001\u001b[31mred",
];
/** One of each kind; with HEADWATER_FULL all of them, which takes minutes. */
const NAMES = process.env.HEADWATER_FULL
  ? ALL
  : [`<img src=x onerror="alert(1)">`, "..", "a#b?c=d&e=f"];
const LONG = "y".repeat(10_000);

function hostile(name: string, run: string): Record<string, unknown> {
  const schema = { fields: [{ name, type: name, description: LONG + name }] };
  const dataset = (end: string) => ({ namespace: name, name: (name + end).slice(0, 1_024) });
  const out = dataset("");
  return {
    ...runEvent("FAIL", name, run),
    run: {
      runId: run,
      facets: { errorMessage: { message: name, programmingLanguage: name, stackTrace: name } },
    },
    job: {
      namespace: name,
      name,
      facets: {
        sql: { query: `SELECT '${name}' -- ${LONG}` },
        sourceCodeLocation: { type: "git", url: name, repoUrl: name },
        documentation: { description: name + LONG },
        ownership: { owners: [{ name, type: name }] },
      },
    },
    outputs: [
      {
        ...out,
        facets: {
          schema,
          documentation: { description: name },
          dataSource: { name, uri: name },
          columnLineage: {
            fields: { [name]: { inputFields: [{ ...dataset(""), field: name }] } },
          },
        },
      },
    ],
  };
}

/** Nothing of a name became part of the page. */
async function harmless(page: Page, faults: string[], where: string): Promise<void> {
  expect(faults, where).toEqual([]);
  const bad =
    "main img, .palette img, main script, .palette script, iframe, svg[onload], a[href^='javascript' i], a[href^='data' i]";
  expect(await page.locator(bad).count(), where).toBe(0);
  expect(await page.getByText("Something went wrong").count(), where).toBe(0);
}

/** What the links of a list lead to, as the browser would ask for it. */
async function targets(page: Page, kind: "jobs" | "datasets"): Promise<Set<string>> {
  const found = await page
    .locator(`main a[href^="/${kind}/"]`)
    .evaluateAll((links) => links.map((one) => new URL((one as HTMLAnchorElement).href).pathname));
  return new Set(found);
}

/** Click the first link of a kind; one without anything to see is followed by its address. */
async function follow(page: Page, name: string, kind: string): Promise<void> {
  const link = page.locator(`main a[href^="/${kind}/"]`).first();
  if (/[\p{L}\p{N}\p{P}\p{S}]/u.test(name)) await link.click();
  else await page.goto(await link.evaluate((one) => (one as HTMLAnchorElement).href));
}

test("every page opens under hostile names, and links lead to what they name", async () => {
  const server = await serve();
  const runs = new Map<string, string>();
  for (const name of NAMES) {
    const run = crypto.randomUUID();
    runs.set(name, run);
    await server.post("/api/v1/lineage", hostile(name, run));
  }
  const { page, faults } = await open(browser, `${server.url}/settings`);
  for (const path of ["/", "/connectors", "/events", "/doctor", "/graph", "/graph?columns=1"]) {
    await page.goto(server.url + path);
    await settled(page);
    await harmless(page, faults, path);
  }
  expect(await drawn(page)).toBeGreaterThan(0);
  for (const name of NAMES) {
    const text = (wanted: string) => shown(wanted).replace(/\s+/g, " ").trim();
    const title = async () => text((await page.locator("h1").first().textContent()) ?? "");
    await page.goto(`${server.url}/runs/${runs.get(name)}`);
    await settled(page);
    await harmless(page, faults, `the run of ${name}`);
    const [job] = await targets(page, "jobs");
    await follow(page, name, "jobs");
    await settled(page);
    expect(await title(), `the job ${name}`).toBe(text(name));
    expect(new URL(page.url()).pathname).toBe(job);
    await harmless(page, faults, `the job ${name}`);
    await follow(page, name, "datasets");
    await settled(page);
    expect(await title(), `the dataset ${name}`).toBe(text(name));
    await harmless(page, faults, `the dataset ${name}`);
    await page.reload();
    await settled(page);
    expect(await title(), `the dataset ${name}, opened anew`).toBe(text(name));
    await page.getByRole("link", { name: "Open the report" }).click();
    await page.locator(".audit-paper h2").first().waitFor();
    expect(await title(), `the audit of ${name}`).toBe(text(name));
    await harmless(page, faults, `the audit of ${name}`);
  }
  for (const name of NAMES.filter((_, i) => i % 7 === 0)) {
    const node = `job:${name}:${name}`;
    await page.goto(`${server.url}/graph?${new URLSearchParams({ node, select: node })}`);
    await settled(page);
    await harmless(page, faults, `the graph around ${name}`);
  }
}, 900_000);

test("the search palette shows hostile names as text and opens what they name", async () => {
  const server = await serve();
  for (const name of NAMES)
    await server.post("/api/v1/lineage", hostile(name, crypto.randomUUID()));
  const { page, faults } = await open(browser, `${server.url}/settings`);
  await settled(page); // no key is listened to before
  const names = page.locator(".palette-name");
  for (const name of NAMES.filter((one) => one.trim() !== "")) {
    const query = new URLSearchParams({ q: name.trim(), limit: "20" });
    const answer = await page.request.get(`${server.url}/api/v2/search?${query}`);
    const [first, ...others] = (await answer.json()).results;
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search names" }).fill(name);
    // A field of one line takes the breaks out of what is pasted, and then finds other things.
    if (!/[\n\t]/.test(name))
      await expect.poll(() => names.count(), { message: name }).toBe(others.length + 1);
    await names.first().waitFor({ state: "attached" }); // one of no width counts as hidden
    await harmless(page, faults, `the search for ${name}`);
    const inner = names.first().locator("span").last();
    const bidi = await inner.evaluate((one) => getComputedStyle(one).unicodeBidi);
    expect(bidi, "a name turns no text around that is not its own").toBe("isolate");
    await page.keyboard.press("Enter");
    await settled(page);
    if (!/[\n\t]/.test(name))
      expect(await page.locator("h1").first().textContent(), name).toBe(shown(first.name));
    await harmless(page, faults, `what the search for ${name} opened`);
  }
  for (const long of [LONG, "é".repeat(10_000), "👩‍👩‍👧‍👦".repeat(2_000)]) {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search names" }).fill(long);
    await page.getByText("Nothing fits").waitFor();
    await harmless(page, faults, "a search of 10,000 characters");
    await page.keyboard.press("Escape");
  }
}, 900_000);
