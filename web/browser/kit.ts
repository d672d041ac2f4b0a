import axe from "axe-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { expect } from "vitest";

export interface Watched {
  page: Page;
  context: BrowserContext;
  /** What the page should never do: log errors, break the policy, ask strangers. */
  faults: string[];
}

export async function open(
  browser: Browser,
  url: string,
  options: Parameters<Browser["newContext"]>[0] = {},
): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => {
    if (/^https?:/.test(request.url()) && !request.url().startsWith(new URL(url).origin))
      faults.push(`asked a stranger: ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  return { page, context, faults };
}

export async function drawn(page: Page): Promise<number> {
  const canvas = page.locator(".canvas[data-drawn]");
  await canvas.waitFor();
  return Number(await canvas.getAttribute("data-drawn"));
}

/** Accessibility by axe: WCAG 2 A and AA. */
export async function accessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const engine = (window as unknown as { axe: typeof import("axe-core") }).axe;
    const { violations } = await engine.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    });
    return violations.map(
      (one) =>
        `${one.id}: ${one.nodes
          .slice(0, 3)
          .map((node) => node.html.slice(0, 160))
          .join(" | ")}`,
    );
  });
  expect(found).toEqual([]);
}

export function runEvent(
  state: string,
  job: string,
  run: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    eventType: state,
    eventTime: new Date().toISOString(),
    producer: "https://example.com/test",
    run: { runId: run },
    job: { namespace: "shop", name: job },
    ...more,
  };
}
