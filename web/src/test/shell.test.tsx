import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Shell } from "../ui/shell";
import { answering } from "./answers";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function menu(): (string | null)[] {
  const pages = within(screen.getByRole("navigation", { name: "Pages" }));
  return pages.getAllByRole("link").map((link) => link.getAttribute("href"));
}

test("the analysis of the estate is in the menu of a server that has one", async () => {
  const usual = ["/", "/graph", "/connectors", "/events", "/doctor"];
  answering({ "/api/v2/health": { may: ["read"], analysis: false } });
  render(<Shell wide={false}>content</Shell>);
  expect(menu()).toEqual(usual);
  cleanup();
  answering({ "/api/v2/health": { may: ["read"], analysis: true } });
  render(<Shell wide={false}>content</Shell>);
  await screen.findByRole("link", { name: "Blast radius" });
  expect(menu()).toEqual([...usual, "/analysis"]);
});

test.each([
  ["MacIntel", "/ or ⌘K"],
  ["Linux x86_64", "/ or Ctrl K"],
  ["Win32", "/ or Ctrl K"],
])("on %s the list of keys has %s", (platform, keys) => {
  vi.spyOn(navigator, "platform", "get").mockReturnValue(platform);
  answering({});
  render(<Shell wide={false}>content</Shell>);
  fireEvent.keyDown(window, { key: "?" });
  screen.getByText(keys);
});
