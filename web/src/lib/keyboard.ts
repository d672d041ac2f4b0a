import { navigate } from "./router";

/** Keys that work everywhere: / and ⌘K or Ctrl K search, g and a letter goes to a page, ? helps. */

export const GOES: Record<string, { to: string; name: string }> = {
  o: { to: "/", name: "Overview" },
  g: { to: "/graph", name: "Graph" },
  c: { to: "/connectors", name: "Connectors" },
  e: { to: "/events", name: "Events" },
  d: { to: "/doctor", name: "Doctor" },
  s: { to: "/settings", name: "Settings" },
};

/** The keys that search, as this machine's keyboard names them. */
export function searchKeys(): string {
  return /^(Mac|iP)/.test(navigator.platform) ? "⌘K" : "Ctrl K";
}

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

export function listen(search: () => void, help: () => void): () => void {
  let went = 0;
  function key(event: KeyboardEvent): void {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      search();
      return;
    }
    if (event.metaKey || event.ctrlKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      search();
    } else if (event.key === "?") {
      help();
    } else if (Date.now() - went < 1_200 && GOES[event.key]) {
      went = 0;
      navigate(GOES[event.key]?.to ?? "/");
    } else if (event.key === "g") {
      went = Date.now();
    }
  }
  window.addEventListener("keydown", key);
  return () => window.removeEventListener("keydown", key);
}
