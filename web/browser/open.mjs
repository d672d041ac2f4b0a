// @ts-check
/** Open an address in a browser: `node browser/open.mjs URL TEXT`. Fails unless the page shows the text without an error. */

import { openBrowser } from "./harness.mjs";

const [url = "", text = ""] = process.argv.slice(2);
const browser = await openBrowser();
try {
  const page = await browser.newPage();
  /** @type {string[]} */
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (said) => said.type() === "error" && errors.push(said.text()));
  await page.goto(url);
  await page.getByText(text).first().waitFor();
  if (errors.length > 0) throw new Error(errors.join("\n"));
} finally {
  await browser.close();
}
