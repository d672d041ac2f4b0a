import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { apiPath, getJson } from "../lib/api";
import { datasetUrl, graphUrl, jobUrl } from "../lib/names";
import { navigate } from "../lib/router";
import type { Found } from "../lib/types";
import { Dialog } from "./dialog";
import { Icon, type IconName } from "./icons";

const ICON: Record<Found["kind"], IconName> = {
  job: "gear",
  dataset: "table",
  column: "column",
  tag: "group",
};
const WORD: Record<Found["kind"], string> = {
  job: "Job",
  dataset: "Dataset",
  column: "Column",
  tag: "Tag",
};

/** No name is longer, and a longer address is refused. */
const LONGEST = 1_024;

export function useSearch(query: string): { results: Found[]; asked: string } {
  const [state, setState] = useState<{ results: Found[]; asked: string }>({
    results: [],
    asked: "",
  });
  useEffect(() => {
    const text = query.trim();
    if (!text) {
      setState({ results: [], asked: "" });
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      getJson<{ results: Found[] }>(apiPath("/api/v2/search", { q: text, limit: 20 }), stop.signal)
        .then(({ results }) => setState({ results, asked: text }))
        .catch(() => {});
    }, 60);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [query]);
  return state;
}

/** Where a result leads: its page, or its place in the graph. */
export function target(found: Found, graph: boolean): string {
  if (graph) return graphUrl(found.node, found.field ? { columns: "1", column: found.field } : {});
  if (found.node.startsWith("job:")) return jobUrl(found);
  return datasetUrl(found) + (found.field ? `?column=${encodeURIComponent(found.field)}` : "");
}

export function Palette({ close }: { close: () => void }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const { results, asked } = useSearch(query);
  const list = useId();
  const current = Math.min(at, Math.max(0, results.length - 1));

  function go(found: Found | undefined, graph: boolean): void {
    if (!found) return;
    close();
    navigate(target(found, graph));
  }

  function key(event: KeyboardEvent): void {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt((current + step + results.length) % Math.max(1, results.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(results[current], event.shiftKey);
    } else if (event.key === "Escape") {
      // A search field would take the first one to empty itself.
      event.preventDefault();
      close();
    }
  }

  return (
    <Dialog title="Search" close={close} className="palette" bare>
      <div className="palette-input">
        <Icon name="search" />
        <input
          autoFocus
          type="search"
          role="combobox"
          aria-expanded={results.length > 0}
          aria-controls={list}
          aria-activedescendant={results.length > 0 ? `${list}-${current}` : undefined}
          aria-label="Search names, columns and tags"
          placeholder="Names, columns, tags"
          value={query}
          onChange={(event) => {
            setQuery(event.target.value.slice(0, LONGEST));
            setAt(0);
          }}
          onKeyDown={key}
        />
        <kbd>Esc</kbd>
      </div>
      <div className="palette-list" role="listbox" id={list} aria-label="Results">
        {results.map((found, i) => (
          <button
            key={`${found.kind}${found.node}${found.field ?? ""}${found.tag ?? ""}`}
            id={`${list}-${i}`}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={i === current}
            className="palette-row"
            onMouseMove={() => setAt(i)}
            onClick={(event) => go(found, event.shiftKey)}
          >
            <Icon name={ICON[found.kind]} />
            <span className="palette-name">
              {found.kind === "tag" ? `${found.tag} · ` : ""}
              {found.field ? <b>{found.field}</b> : null}
              {found.field ? " in " : ""}
              <span>{found.name}</span>
            </span>
            <span className="palette-space mono">{found.namespace}</span>
            <span className="palette-kind">{WORD[found.kind]}</span>
          </button>
        ))}
      </div>
      <p className="palette-foot" aria-live="polite">
        {asked && results.length === 0 ? `Nothing fits “${asked}”.` : null}
        {results.length > 0 ? (
          <>
            <kbd>↵</kbd> open <kbd>⇧↵</kbd> show in the graph
          </>
        ) : null}
        {!asked ? "Letters in order are enough: “supst” finds supplier_stats." : null}
      </p>
    </Dialog>
  );
}
