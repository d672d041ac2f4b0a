import { useCallback, useMemo } from "react";
import { here, navigate, usePlace } from "../lib/router";
import type { Options } from "./model";
import type { Times } from "./timebar";

/** What the address says of the graph: everything that is seen can be shared. */
export interface View {
  node: string | null;
  namespace: string | null;
  select: string | null;
  column: string | null;
  /** A change whose impact is shown, as `ui/impact` writes it. */
  impact: string | null;
  depth: number;
  times: Times;
  expanded: string[];
  /** Whether every action of a program is drawn by itself. */
  actions: boolean;
  options: Options;
  /** Changes when the view is another one, so that it is fitted anew. */
  key: string;
  set: (part: Record<string, string | null>, push?: boolean) => void;
  toggle: (id: string, side: "up" | "down") => void;
  fold: (id: string, side: "up" | "down") => void;
  group: (namespace: string) => void;
  close: (namespace: string) => void;
}

function go(query: URLSearchParams, push: boolean): void {
  const text = query.toString();
  navigate(`/graph${text ? `?${text}` : ""}`, { replace: !push });
}

export function useView(): View {
  const { query } = usePlace();
  const text = query.toString();

  const set = useCallback((part: Record<string, string | null>, push = false) => {
    const next = new URLSearchParams(here().query);
    for (const [key, value] of Object.entries(part)) {
      if (value === null || value === "") next.delete(key);
      else next.set(key, value);
    }
    go(next, push);
  }, []);
  const fold = useCallback((id: string, side: "up" | "down") => {
    const next = new URLSearchParams(here().query);
    next.append("fold", `${side}|${id}`);
    go(next, true);
  }, []);
  /** Show what is hidden on one side of a node: unfold it, or ask the server for more. */
  const toggle = useCallback((id: string, side: "up" | "down") => {
    const next = new URLSearchParams(here().query);
    const folds = next.getAll("fold");
    const mine = `${side}|${id}`;
    if (folds.includes(mine)) {
      next.delete("fold");
      for (const one of folds) if (one !== mine) next.append("fold", one);
    } else if (!next.getAll("x").includes(id)) next.append("x", id);
    go(next, true);
  }, []);
  const group = useCallback((namespace: string) => {
    const next = new URLSearchParams(here().query);
    if (next.get("group")) next.append("open", namespace);
    else next.set("namespace", namespace);
    go(next, true);
  }, []);
  const close = useCallback((namespace: string) => {
    const next = new URLSearchParams(here().query);
    const open = next.getAll("open").filter((one) => one !== namespace);
    next.delete("open");
    for (const one of open) next.append("open", one);
    go(next, true);
  }, []);

  return useMemo(() => {
    const asked = new URLSearchParams(text);
    const node = asked.get("node");
    const namespace = asked.get("namespace");
    const times = { at: asked.get("at"), from: asked.get("from"), to: asked.get("to") };
    const options: Options = {
      columns: asked.has("columns"),
      grouped: asked.has("group"),
      open: asked.getAll("open"),
      folds: asked.getAll("fold"),
    };
    const depth = Number(asked.get("depth") ?? 2);
    const column = asked.get("column");
    const key = [
      node,
      namespace,
      depth,
      options.columns,
      options.grouped,
      options.open.length,
      asked.has("actions"),
    ].join("\n");
    return {
      node,
      namespace,
      select: asked.get("select"),
      // A bare name is a column of the node in the middle.
      column:
        column && node && !column.startsWith("datasetField:")
          ? `datasetField:${node.slice("dataset:".length)}:${column}`
          : column,
      impact: asked.get("impact"),
      depth: Number.isFinite(depth) ? depth : 2,
      times,
      expanded: asked.getAll("x"),
      actions: asked.has("actions"),
      options,
      key,
      set,
      toggle,
      fold,
      group,
      close,
    };
  }, [text, set, toggle, fold, group, close]);
}
