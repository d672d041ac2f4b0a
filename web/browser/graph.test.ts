import { readFileSync } from "node:fs";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, Server } from "./harness.mjs";
import { drawn, open } from "./kit";

let server: Server;
let browser: Browser;

beforeAll(async () => {
  [server, browser] = await Promise.all([Server.start(), openBrowser()]);
  await server.loadDemo();
});

afterAll(async () => {
  await browser?.close();
  await server?.remove();
});

const node = (page: Page, name: string) =>
  page.locator(".react-flow__node").filter({ hasText: name });
const box = (page: Page, name: string) => node(page, name).locator(".box");

test("the demo's jobs are connected and their flow moves only while data moves", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  await page.locator(".live-mark.live").waitFor();
  await server.flow();
  // Nine of ten samples say that records move; suppliers stand still and say so.
  await expect.poll(() => page.locator(".wire-flow").count()).toBe(9);
  const edges = await page
    .locator(".react-flow__edge")
    .evaluateAll((all) => all.map((one) => (one as SVGGElement).dataset.id ?? ""));
  const joined = new Set(["job:shop:orders-source"]);
  for (let before = 0; before < joined.size; ) {
    before = joined.size;
    for (const edge of edges) {
      const ends = edge.split("\n");
      if (ends.some((end) => joined.has(end))) for (const end of ends) joined.add(end);
    }
  }
  for (const name of [
    "orders-source",
    "enrich_orders",
    "iceberg_ingestion",
    "supplier_stats_stream",
    "supplier_stats",
    "stats-sink",
  ]) {
    expect(await page.locator(`[data-id="job:shop:${name}"]`).count(), name).toBe(1);
    expect(joined.has(`job:shop:${name}`), name).toBe(true);
  }
  expect(await page.locator(".react-flow__edge").count()).toBe(22);
  expect(await page.locator(".wire-label.idle").textContent()).toBe("0/s");
  await page.getByText("lag 310").waitFor();
  const moves = () =>
    page
      .locator(".wire-flow")
      .first()
      .evaluate((path) => getComputedStyle(path).animationName);
  expect(await moves()).toBe("flow");
  await page.emulateMedia({ reducedMotion: "reduce" });
  expect(await moves()).toBe("none");
});

/** What of these does not stand wholly on the canvas, by its words. */
function outside(found: Locator): Promise<string[]> {
  return found.evaluateAll((all) => {
    const room = document.querySelector(".canvas")?.getBoundingClientRect() ?? new DOMRect();
    return all
      .filter((one) => {
        const mine = one.getBoundingClientRect();
        const across = mine.left >= room.left && mine.right <= room.right;
        return !across || mine.top < room.top || mine.bottom > room.bottom;
      })
      .map((one) => one.textContent || "a box without words");
  });
}

/** The smallest size, on the screen, of words on the canvas. */
function smallest(page: Page): Promise<number> {
  return page.locator(".react-flow__viewport").evaluate((viewport) => {
    const zoom = new DOMMatrix(getComputedStyle(viewport).transform).a;
    const walker = document.createTreeWalker(viewport, NodeFilter.SHOW_TEXT);
    let least = Number.POSITIVE_INFINITY;
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      if (!parent || parent.closest(".sr") || !walker.currentNode.textContent?.trim()) continue;
      least = Math.min(least, Number.parseFloat(getComputedStyle(parent).fontSize) * zoom);
    }
    return least;
  });
}

test.each([
  [1440, "/graph", "whole"],
  [800, "/graph", "stats-sink"],
  [800, "/graph?columns=1", "stats-sink"],
  [800, "/graph?select=job%3Ashop%3Aorders-source", "orders-source"],
] as const)("at %i px %s can be read, and %s is in sight", async (width, path, shown) => {
  const { page } = await open(browser, server.url + path, { viewport: { width, height: 900 } });
  await drawn(page);
  await server.flow();
  await page.locator(".wire-label").first().waitFor();
  await expect.poll(() => smallest(page)).toBeGreaterThan(8.8);
  const sought = shown === "whole" ? page.locator(".react-flow__node") : node(page, shown);
  expect(await sought.count()).toBe(shown === "whole" ? 21 : 1);
  expect(await outside(sought)).toEqual([]);
  // What is not in sight is on the map.
  const map = page.getByLabel("Map of the graph");
  expect(await outside(map)).toEqual([]);
  expect(await map.locator(".react-flow__minimap-node").count()).toBe(21);
  // And neither it nor the zoom lies over the graph.
  const room = await page.locator(".react-flow__renderer").boundingBox();
  for (const panel of [map, page.locator(".react-flow__controls")])
    expect((await panel.boundingBox())?.y).toBeGreaterThanOrEqual(
      (room?.y ?? Number.NaN) + (room?.height ?? Number.NaN),
    );
});

test("what is selected stays in sight, and a view that nobody moved follows the window", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  const last = node(page, "nightly/");
  const right = async () => {
    const room = await last.boundingBox();
    return room ? room.x + room.width : 0;
  };
  expect(await right()).toBeLessThan(1440);
  await page.setViewportSize({ width: 1920, height: 900 });
  await expect.poll(right).toBeGreaterThan(1800);
  // The side panel takes room from the graph's right end, where this one stands.
  await last.click();
  await page.getByRole("complementary", { name: /nightly/ }).waitFor();
  await expect.poll(() => outside(last)).toEqual([]);
});

test("selecting a node lights up what leads to it and what it leads to", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  await node(page, "enrich_orders").click();
  await expect.poll(() => box(page, "enrich_orders").getAttribute("class")).toContain("self");
  expect(await box(page, "orders-source").getAttribute("class")).toContain(" up");
  expect(await box(page, "stats-sink").getAttribute("class")).toContain(" down");
  expect(await box(page, "audit-sink").getAttribute("class")).toContain(" dim");
  expect(page.url()).toContain("select=");
  await page.getByRole("complementary").getByText("Upstream").waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => box(page, "audit-sink").getAttribute("class")).not.toContain("dim");
});

test("arrow keys walk along the wires", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  await node(page, "enrich_orders").click();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("complementary", { name: /orders-enriched/ }).waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("complementary", { name: /enrich_orders/ }).waitFor();
});

test("arrow keys start at the node that was reached by Tab, which has a ring", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  const stream = page.locator('[data-id="job:shop:supplier_stats_stream"]');
  const focused = () => stream.evaluate((one) => one === document.activeElement);
  for (let i = 0; i < 60 && !(await focused()); i++) await page.keyboard.press("Tab");
  expect(await stream.evaluate((one) => getComputedStyle(one).outlineStyle)).toBe("solid");
  await page.keyboard.press("ArrowRight");
  await page.getByRole("complementary", { name: /supplier-stats/ }).waitFor();
});

test("a column's path lights up across jobs, and its steps say how and why", async () => {
  const { page } = await open(browser, `${server.url}/graph?columns=1`);
  await drawn(page);
  await page.getByRole("button", { name: "Fit View" }).click();
  await node(page, "orders-enriched")
    .getByRole("button", { name: /^amount/ })
    .click();
  await expect.poll(() => page.locator(".col.self").count()).toBeGreaterThan(6);
  const side = page.getByRole("complementary", { name: "Column" });
  for (const said of ["quantity * price", "sum(amount)", "observed from plan node"])
    await expect.poll(() => side.textContent()).toContain(said);
  expect(await box(page, "iceberg_ingestion").getAttribute("class")).not.toContain("dim");
  expect(await box(page, "audit-sink").getAttribute("class")).toContain("dim");
  await node(page, "orders-enriched")
    .getByRole("button", { name: /^customer/ })
    .click();
  await expect.poll(() => side.textContent()).toContain("masked");
});

test("a table's wires end beside its name, above its columns", async () => {
  const { page } = await open(browser, `${server.url}/graph?columns=1`);
  await drawn(page);
  await page.getByRole("button", { name: "Fit View" }).click();
  const ends = await page.locator(".react-flow__edge:has(.wire)").evaluateAll((edges) => {
    const boxes = new Map(
      [...document.querySelectorAll<HTMLElement>(".react-flow__node")].map((box) => [
        box.dataset.id,
        box,
      ]),
    );
    return edges.flatMap((edge) => {
      const path = edge.querySelector<SVGPathElement>(".wire");
      const to = path?.getScreenCTM();
      if (!path || !to) throw new Error("an edge without a way");
      return (edge as HTMLElement).dataset.id?.split("\n").flatMap((id, i) => {
        const columns = boxes.get(id)?.querySelector(".cols")?.getBoundingClientRect();
        const end = path.getPointAtLength(i === 0 ? 0 : path.getTotalLength()).matrixTransform(to);
        return columns ? [{ id, above: columns.top - end.y }] : [];
      });
    });
  });
  expect(ends.length).toBeGreaterThan(15);
  expect(ends.filter((end) => !end || end.above <= 0)).toEqual([]);
});

test("neighbours unfold and fold, the depth follows", async () => {
  const around = encodeURIComponent("dataset:kafka://broker:9092:orders-enriched");
  const { page } = await open(browser, `${server.url}/graph?node=${around}&depth=0`);
  await drawn(page);
  const few = await page.locator(".react-flow__node").count();
  await page.getByRole("button", { name: /more upstream of shop.orders/ }).click();
  await node(page, "orders-source").waitFor();
  expect(await page.locator(".react-flow__node").count()).toBeGreaterThan(few);
  await page.goBack();
  await expect.poll(() => page.locator(".react-flow__node").count()).toBe(few);
  await page.getByLabel("Depth").selectOption("4");
  await expect.poll(() => page.locator(".react-flow__node").count()).toBe(21);
  await node(page, "orders-enriched").click();
  await page
    .getByRole("region", { name: "Downstream" })
    .getByRole("button", { name: "fold" })
    .click();
  await expect.poll(() => node(page, "iceberg_ingestion").count()).toBe(0);
  await page.getByRole("button", { name: /Show 2 more downstream of orders-enriched/ }).click();
  await node(page, "iceberg_ingestion").waitFor();
});

test("what says how many neighbours are hidden covers no rate", async () => {
  const around = encodeURIComponent("dataset:kafka://broker:9092:shop.orders");
  const { page } = await open(browser, `${server.url}/graph?node=${around}&depth=0`);
  await drawn(page);
  await server.flow();
  await page.locator(".wire-label").first().waitFor();
  const rooms = (of: string) =>
    page.locator(of).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
  const [badges, rates] = [await rooms(".more"), await rooms(".wire-label")];
  expect([badges.length > 0, rates.length > 0]).toEqual([true, true]);
  for (const badge of badges)
    for (const rate of rates) {
      const across = badge.left < rate.right && rate.left < badge.right;
      expect(across && badge.top < rate.bottom && rate.top < badge.bottom).toBe(false);
    }
});

test("no box covers a rate", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  await server.flow();
  await page.locator(".wire-label").first().waitFor();
  const rooms = (of: string) =>
    page.locator(of).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
  const [boxes, rates] = [await rooms(".react-flow__node"), await rooms(".wire-label")];
  expect([boxes.length, rates.length > 0]).toEqual([21, true]);
  const under = rates.filter((rate) =>
    boxes.some((box) => {
      const across = Math.min(box.right, rate.right) - Math.max(box.left, rate.left);
      return across > 2 && box.top < rate.bottom && rate.top < box.bottom;
    }),
  );
  expect(under).toEqual([]);
});

test("what a Spark program does is drawn when it is asked for", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  expect(await node(page, "supplier_stats.by_day").count()).toBe(0);
  expect(await page.locator(".react-flow__node").count()).toBe(21);
  await page.goto(`${server.url}/graph?actions=1`);
  await drawn(page);
  await node(page, "supplier_stats.by_day").waitFor();
  // In place of their application, which has no wires of its own.
  expect(await page.locator('[data-id="job:shop:supplier_stats"]').count()).toBe(0);
  expect(await page.locator(".react-flow__node").count()).toBe(21);
});

test("namespaces group with counts and open one by one", async () => {
  const { page } = await open(browser, `${server.url}/graph?group=1`);
  await drawn(page);
  await node(page, "8 jobs").waitFor();
  expect(await node(page, "8 jobs").textContent()).toMatch(/1\s*failed/);
  await node(page, "5 datasets").getByRole("button").click();
  await node(page, "orders-enriched").waitFor();
  // The opened one is a frame round its five nodes, and none of the others stands in it.
  const frame = page.locator(".react-flow__node-frame");
  const room = await frame.boundingBox();
  const boxes = page.locator(".react-flow__node-box");
  let inside = 0;
  for (const one of await boxes.all()) {
    const place = await one.boundingBox();
    if (!room || !place) throw new Error("nothing is drawn");
    const apart =
      place.x + place.width <= room.x ||
      place.x >= room.x + room.width ||
      place.y + place.height <= room.y ||
      place.y >= room.y + room.height;
    if (!apart) inside += 1;
  }
  expect(inside).toBe(5);
  await frame.getByRole("button", { name: "Close namespace kafka://broker:9092" }).click();
  await expect.poll(() => page.locator(".react-flow__node-frame").count()).toBe(0);
  await node(page, "5 datasets").waitFor();
});

test("the graph of a past moment and the difference between two", async () => {
  const ago = new Date(Date.now() - 5 * 86_400_000).toISOString();
  const { page } = await open(browser, `${server.url}/graph?at=${ago}`);
  await drawn(page);
  await node(page, "orders-source").waitFor();
  // What was not there yet is not drawn.
  expect(await node(page, "supplier_stats_stream").count()).toBe(0);
  expect(await page.locator(".react-flow__edge").count()).toBeLessThan(12);
  await page.getByRole("radio", { name: "Difference" }).check({ force: true });
  await expect.poll(() => page.locator(".wire.added").count()).toBeGreaterThan(8);
  expect(page.url()).toContain("from=");
  await node(page, "supplier_stats_stream").locator(".box-change.added").waitFor();
  await page.getByRole("radio", { name: "Now" }).check({ force: true });
  await expect.poll(() => page.locator(".wire.added").count()).toBe(0);
});

test("an address may say how long ago, and one that is refused leaves the bar", async () => {
  const { page } = await open(browser, `${server.url}/graph?from=5d&to=now`);
  await drawn(page);
  await expect.poll(() => page.locator(".wire.added").count()).toBeGreaterThan(8);
  const from = await page.getByLabel("from", { exact: true }).inputValue();
  expect(Math.abs(Date.now() - 5 * 86_400_000 - Date.parse(from))).toBeLessThan(86_400_000);
  await page.goto(`${server.url}/graph?from=yesterday`);
  await page.getByText("how long ago (90m, 2d), or now").waitFor();
  await page.getByRole("radio", { name: "Now" }).check({ force: true });
  await node(page, "orders-source").waitFor();
});

test("find centres on a node", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  await page.getByLabel("Find and centre").fill("nightly_exp");
  await page.getByRole("option", { name: "nightly_export" }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/node=job%3Ashop%3Anightly_export/);
  await page.getByRole("complementary", { name: /nightly_export/ }).waitFor();
});

test("an edge tells since when it holds and how it is known", async () => {
  const { page } = await open(browser, `${server.url}/graph`);
  await drawn(page);
  const id = "job:shop:orders-source\ndataset:kafka://broker:9092:shop.orders";
  await page.evaluate((wanted) => {
    const edges = [...document.querySelectorAll<SVGGElement>(".react-flow__edge")];
    const edge = edges.find((one) => one.dataset.id === wanted);
    edge?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  }, id);
  const side = page.getByRole("complementary", { name: "Edge" });
  await side.getByText(/^holds (for|since now)/).waitFor();
  await expect.poll(() => side.textContent()).toContain("runtime topics");
});

test("the graph is exported as PNG, SVG and JSON", async () => {
  const { page, faults } = await open(browser, `${server.url}/graph`, { acceptDownloads: true });
  await drawn(page);
  const menu = page.locator("details.menu", { hasText: "Export" });
  for (const format of ["PNG", "SVG", "JSON"]) {
    if ((await menu.getAttribute("open")) === null) await menu.locator("summary").click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: format }).click(),
    ]);
    const bytes = readFileSync(await download.path());
    if (format === "PNG") expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    else expect(bytes.toString()).toContain("enrich_orders");
    expect(bytes.length).toBeGreaterThan(4_000);
  }
  expect(faults).toEqual([]);
});
