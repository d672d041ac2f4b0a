import { type ReactNode, useEffect, useState } from "react";
import { GOES, listen, searchKeys } from "../lib/keyboard";
import { link } from "../lib/live";
import { useResource } from "../lib/resource";
import { root } from "../lib/root";
import { Link, usePlace } from "../lib/router";
import { change, isDark, settings } from "../lib/settings";
import { useStore } from "../lib/store";
import type { Health } from "../lib/types";
import { Dialog } from "./dialog";
import { Icon, type IconName } from "./icons";
import { Palette } from "./palette";

interface Entry {
  to: string;
  name: string;
  icon: IconName;
  first: string;
}

const NAV: Entry[] = [
  { to: "/", name: "Overview", icon: "overview", first: "" },
  { to: "/graph", name: "Graph", icon: "graph", first: "graph" },
  { to: "/connectors", name: "Connectors", icon: "plug", first: "connectors" },
  { to: "/events", name: "Events", icon: "events", first: "events" },
  { to: "/doctor", name: "Doctor", icon: "pulse", first: "doctor" },
];

/** Only where the server has a lake that was, or can be, analysed. */
const ANALYSIS: Entry = {
  to: "/analysis",
  name: "Blast radius",
  icon: "target",
  first: "analysis",
};

const WORDS = {
  connecting: "Connecting",
  live: "Live",
  lost: "Server lost",
  denied: "Token needed",
} as const;

function LiveMark() {
  const state = useStore(link);
  return (
    <span className={`live-mark ${state}`} role="status" aria-live="polite" title={WORDS[state]}>
      <span className="live-dot" aria-hidden="true" />
      <span className="live-word">{WORDS[state]}</span>
    </span>
  );
}

function Keys({ close }: { close: () => void }) {
  const keys: [string, string][] = [
    [`/ or ${searchKeys()}`, "Search"],
    ...Object.entries(GOES).map(([key, go]): [string, string] => [`g ${key}`, go.name]),
    ["↑ ↓", "Move in a list; in the graph, between neighbours of a layer"],
    ["← →", "In the graph: upstream, downstream"],
    ["Enter", "Open; in the graph, select"],
    ["Esc", "Close, or let go of the selection"],
  ];
  return (
    <Dialog title="Keys" close={close}>
      <dl className="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

export function Shell({ children, wide }: { children: ReactNode; wide: boolean }) {
  const [open, setOpen] = useState<"search" | "keys" | null>(null);
  const { theme } = useStore(settings);
  const { parts } = usePlace();
  const lost = useStore(link) === "lost";
  const { data: health } = useResource<Health>("/api/v2/health");
  const entries = health?.analysis ? [...NAV, ANALYSIS] : NAV;
  useEffect(
    () =>
      listen(
        () => setOpen("search"),
        () => setOpen("keys"),
      ),
    [],
  );
  const dark = isDark(theme);
  return (
    <div className={wide ? "shell wide" : "shell"}>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <Link to="/" className="brand" aria-label="Headwater, overview">
          <img src={`${root}/favicon.svg`} alt="" width={26} height={26} />
          <span>Headwater</span>
        </Link>
        <nav aria-label="Pages">
          {entries.map((item) => (
            <Link
              key={item.to}
              to={item.to}
              aria-label={item.name}
              aria-current={(parts[0] ?? "") === item.first ? "page" : undefined}
            >
              <Icon name={item.icon} />
              <span>{item.name}</span>
            </Link>
          ))}
        </nav>
        <div className="top-end">
          <button
            type="button"
            className="search-button"
            onClick={() => setOpen("search")}
            aria-label="Search"
          >
            <Icon name="search" size={16} />
            <span>Search</span>
            <kbd>/</kbd>
          </button>
          <LiveMark />
          <button
            type="button"
            className="button icon-only quiet"
            aria-label={dark ? "Use the light theme" : "Use the dark theme"}
            onClick={() => change({ theme: dark ? "light" : "dark" })}
          >
            <Icon name={dark ? "sun" : "moon"} />
          </button>
          <Link to="/settings" className="button icon-only quiet" aria-label="Settings">
            <Icon name="settings" />
          </Link>
        </div>
      </header>
      {lost ? (
        <div className="lost-note" role="alert">
          The server does not answer. What you see is as of before; it is tried again by itself.
        </div>
      ) : null}
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      {open === "search" ? <Palette close={() => setOpen(null)} /> : null}
      {open === "keys" ? <Keys close={() => setOpen(null)} /> : null}
    </div>
  );
}
