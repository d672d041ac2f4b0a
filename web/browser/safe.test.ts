import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser } from "./harness.mjs";
import { accessible, drawn, open, runEvent, serve } from "./kit";

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const EVIL = `<img src=x onerror="alert(1)"><script>alert(2)</script>{{7*7}}'"\u202e`;

test("hostile names and facets are shown as text", async () => {
  const server = await serve();
  const schema = { fields: [{ name: EVIL, type: EVIL, description: EVIL }] };
  const run = crypto.randomUUID();
  const event = runEvent("FAIL", EVIL, run, {
    run: { runId: run, facets: { errorMessage: { message: EVIL, stackTrace: EVIL } } },
    inputs: [{ namespace: "s3://x", name: `in ${EVIL}`, facets: { schema } }],
    outputs: [
      {
        namespace: "s3://x",
        name: `out ${EVIL}`,
        facets: {
          schema,
          documentation: { description: EVIL },
          columnLineage: {
            fields: {
              [EVIL]: { inputFields: [{ namespace: "s3://x", name: `in ${EVIL}`, field: EVIL }] },
            },
          },
        },
      },
    ],
  });
  (event.job as Record<string, unknown>).facets = {
    sql: { query: `SELECT '${EVIL}'` },
    sourceCodeLocation: { type: "git", url: "javascript:alert(3)" },
    documentation: { description: EVIL },
  };
  await server.post("/api/v1/lineage", event);
  const paths = [
    "/",
    "/graph",
    "/graph?columns=1",
    `/jobs/shop/${encodeURIComponent(EVIL)}`,
    `/datasets/${encodeURIComponent("s3://x")}/${encodeURIComponent(`out ${EVIL}`)}`,
    `/runs/${run}`,
    "/events",
  ];
  const { page, faults } = await open(browser, `${server.url}/settings`);
  for (const path of paths) {
    await page.goto(server.url + path);
    if (path.startsWith("/graph")) {
      await drawn(page);
      const names = page.locator(".box-name", { hasText: "onerror=" });
      await expect.poll(() => names.count()).toBeGreaterThan(0);
    } else await expect.poll(() => page.locator("main").textContent()).toContain("onerror");
    expect(await page.locator("main img, main script").count(), path).toBe(0);
    expect(await page.locator('a[href^="javascript"]').count(), path).toBe(0);
    expect(faults, path).toEqual([]);
  }
});

test("the policy stops inline script even if one got in", async () => {
  const server = await serve();
  const { page } = await open(browser, server.url);
  await page.getByText("Waiting for the first event").waitFor();
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.broken = true";
    document.body.append(script);
    return (window as unknown as { broken?: boolean }).broken === true;
  });
  expect(ran).toBe(false);
  const header = (await page.request.get(server.url)).headers()["content-security-policy"] ?? "";
  expect(header).toContain("script-src 'self'");
  expect(header).not.toContain("unsafe");
});

test("a token opens the page and stays in the session only", async () => {
  const server = await serve({ HEADWATER_TOKEN: "secret-of-the-test" });
  const { page, context } = await open(browser, `${server.url}/graph`);
  await page.getByRole("heading", { name: "This server needs a token" }).waitFor();
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Use it" }).click();
  await page.getByText("The token is not known").waitFor();
  await page.getByLabel("Token").fill("secret-of-the-test");
  await page.getByRole("button", { name: "Use it" }).click();
  await page.locator(".live-mark.live").waitFor();
  await page.getByText("Waiting for the first event").waitFor();
  const kept = await page.evaluate(() => JSON.stringify(localStorage) + document.cookie);
  expect(kept).not.toContain("secret-of-the-test");
  expect(page.url()).not.toContain("secret");
  await page.reload();
  await page.locator(".live-mark.live").waitFor();
  const other = await context.newPage();
  await other.goto(server.url);
  await other.getByRole("heading", { name: "This server needs a token" }).waitFor();
});

test("a token that may only read is not offered to abort a run", async () => {
  const server = await serve({ HEADWATER_TOKEN: "secret-of-the-test" });
  await server.post("/api/v1/lineage", runEvent("START", "stuck", crypto.randomUUID()));
  const { page } = await open(browser, `${server.url}/jobs/shop/stuck`);
  const use = async (token: string) => {
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Use it" }).click();
  };
  await page.getByRole("heading", { name: "This server needs a token" }).waitFor();
  await use(await server.token("read"));
  await page.getByText("Your token may only read").waitFor();
  expect(await page.getByRole("button", { name: "Abort run" }).isDisabled()).toBe(true);
  await accessible(page);
  await page.getByRole("link", { name: "Settings" }).click();
  await use("secret-of-the-test");
  await page.goBack();
  await expect.poll(() => page.getByText("Your token may only read").count()).toBe(0);
  await page.getByRole("button", { name: "Abort run" }).click();
  await page.getByRole("dialog", { name: "Abort this run?" }).waitFor();
});
