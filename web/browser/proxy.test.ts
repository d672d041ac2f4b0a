import { request as ask, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openBrowser } from "./harness.mjs";
import { drawn, open, serve } from "./kit";

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
});

/** A reverse proxy that signs ann in and serves the server below a path, and nothing else. */
async function proxy(port: number, root: string, strips: boolean): Promise<string> {
  const front = createServer((incoming, outgoing) => {
    const url = incoming.url ?? "/";
    if (!`${url}/`.startsWith(`${root}/`)) {
      outgoing.writeHead(418).end("outside of the path");
      return;
    }
    const path = strips ? url.slice(root.length) || "/" : url;
    const headers = { ...incoming.headers, "x-forwarded-user": "ann" };
    const { method = "GET" } = incoming;
    const onward = ask({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((done) => front.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    front.closeAllConnections();
    front.close();
  });
  return `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
}

test.each([true, false])(
  "the page works below a path (taken off by the proxy: %s)",
  async (strips) => {
    const server = await serve({ HEADWATER_TOKEN: "producers" }, [
      ...["--root-path", "/tools/lineage", "--trusted-proxies", "127.0.0.1"],
      ...["--user-header", "X-Forwarded-User"],
    ]);
    await server.loadDemo();
    const front = await proxy(server.port, "/tools/lineage", strips);
    const { page, faults } = await open(browser, `${front}/tools/lineage/`);
    await page.locator(".live-mark.live").waitFor();
    await page.goto(`${front}/tools/lineage/graph`);
    await drawn(page);
    expect(new URL(page.url()).pathname).toBe("/tools/lineage/graph");
    await page.goto(`${front}/tools/lineage/jobs/shop/supplier_stats.by_day`);
    await page.locator(".lead", { hasText: "Revenue by supplier and day" }).waitFor();
    const json = await page.locator("a.json-link").first().getAttribute("href");
    expect(json).toMatch(/^\/tools\/lineage\/api\//);
    await page.locator('nav a[href="/tools/lineage/events"]').first().click();
    await page.waitForURL("**/tools/lineage/events");
    await page.goBack();
    await page.locator(".lead", { hasText: "Revenue by supplier and day" }).waitFor();
    expect(faults).toEqual([]);
  },
);
