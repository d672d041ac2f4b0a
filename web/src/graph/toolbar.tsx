import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { graphUrl } from "../lib/names";
import { navigate } from "../lib/router";
import { Json } from "../ui/basics";
import { Icon } from "../ui/icons";
import { useSearch } from "../ui/palette";

interface ToolbarProps {
  path: string;
  focus: string | null;
  focusName: string;
  depth: number;
  columns: boolean;
  grouped: boolean;
  actions: boolean;
  big: boolean;
  set: (part: Record<string, string | null>) => void;
  save: (format: "png" | "svg" | "json") => void;
}

/** Find a node anywhere and centre the graph on it. */
function Find() {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const { results } = useSearch(query);
  const nodes = results
    .filter((found, i) => results.findIndex((one) => one.node === found.node) === i)
    .slice(0, 8);
  function go(i: number): void {
    const found = nodes[i];
    if (!found) return;
    setQuery("");
    navigate(graphUrl(found.node));
  }
  function key(event: KeyboardEvent): void {
    if (event.key === "ArrowDown") setAt(Math.min(nodes.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") go(at);
    else if (event.key === "Escape") setQuery("");
    else return;
    event.preventDefault();
  }
  return (
    <div className="find">
      <Icon name="search" size={15} />
      <input
        type="search"
        role="combobox"
        aria-label="Find and centre"
        aria-expanded={nodes.length > 0}
        aria-controls="find-list"
        placeholder="Find"
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setAt(0);
        }}
        onKeyDown={key}
      />
      {nodes.length > 0 ? (
        <div className="find-list" role="listbox" id="find-list" aria-label="Found">
          {nodes.map((found, i) => (
            <button
              key={found.node}
              type="button"
              role="option"
              tabIndex={-1}
              aria-selected={i === at}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => go(i)}
            >
              <Icon name={found.node.startsWith("job:") ? "gear" : "table"} size={15} />
              <span>{found.name}</span>
            </button>
          ))}
        </div>
      ) : null}
    </div>
  );
}

function Save({ save }: { save: ToolbarProps["save"] }) {
  const ref = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    function away(event: Event): void {
      const details = ref.current;
      if (details?.open && !details.contains(event.target as Node)) details.open = false;
    }
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, []);
  return (
    <details className="menu" ref={ref}>
      <summary className="button small" aria-label="Export">
        <Icon name="download" size={15} /> <span className="tool-word">Export</span>
      </summary>
      <div className="menu-list">
        {(["png", "svg", "json"] as const).map((format) => (
          <button
            key={format}
            type="button"
            onClick={() => {
              if (ref.current) ref.current.open = false;
              save(format);
            }}
          >
            {format.toUpperCase()}
          </button>
        ))}
      </div>
    </details>
  );
}

export function Toolbar(props: ToolbarProps) {
  const { path, focus, focusName, depth, columns, grouped, actions, big, set, save } = props;
  return (
    <div className="toolbar" role="toolbar" aria-label="Graph">
      <Find />
      {focus ? (
        <>
          <button
            type="button"
            className="button small focus-chip"
            title={`Around ${focusName}; show everything instead`}
            onClick={() => set({ node: null, namespace: null, x: null, fold: null })}
          >
            <Icon name="target" size={14} />
            <span>{focusName}</span>
            <Icon name="close" size={12} />
            <span className="sr">Show everything</span>
          </button>
          <label className="depth">
            Depth
            <select value={depth} onChange={(event) => set({ depth: event.target.value })}>
              {[0, 1, 2, 3, 4, 6, 10].map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        </>
      ) : null}
      <button
        type="button"
        className="button small"
        aria-label="Columns"
        aria-pressed={columns}
        disabled={big}
        onClick={() => set({ columns: columns ? null : "1", column: null, group: null })}
      >
        <Icon name="column" size={15} /> <span className="tool-word">Columns</span>
      </button>
      <button
        type="button"
        className="button small"
        aria-label="Group by namespace"
        aria-pressed={grouped}
        disabled={big}
        onClick={() =>
          set({ group: grouped ? null : "1", columns: null, column: null, open: null })
        }
      >
        <Icon name="group" size={15} /> <span className="tool-word">Group</span>
      </button>
      <button
        type="button"
        className="button small"
        aria-label="Actions of programs"
        title="Draw every action of a program by itself, also those that only create or count"
        aria-pressed={actions}
        disabled={big}
        onClick={() => set({ actions: actions ? null : "1" })}
      >
        <Icon name="gear" size={15} /> <span className="tool-word">Actions</span>
      </button>
      <Save save={save} />
      <Json path={path} />
    </div>
  );
}
