import { useSyncExternalStore } from "react";
import type { ColumnWire, Wire } from "./model";

/** Which nodes, wires and columns are lit: told to each by itself, so that only what changes redraws. */

export type Level = "" | "self" | "up" | "down" | "dim";

interface Lit {
  nodes: Map<string, Level> | null;
  wires: Set<string> | null;
  columns: Set<string> | null;
  columnWires: Set<string> | null;
}

const DARK: Lit = { nodes: null, wires: null, columns: null, columnWires: null };

export class Light {
  private lit: Lit = DARK;
  private readonly listeners = new Set<() => void>();

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private set(lit: Lit): void {
    if (lit === this.lit) return;
    this.lit = lit;
    for (const listener of [...this.listeners]) listener();
  }

  off(): void {
    this.set(DARK);
  }

  /** Light a node with all that leads to it and all it leads to. */
  node(id: string, wires: Wire[]): void {
    const up = spread(id, wires, "target", "source");
    const down = spread(id, wires, "source", "target");
    const nodes = new Map<string, Level>();
    for (const one of up) nodes.set(one, "up");
    for (const one of down) nodes.set(one, "down");
    nodes.set(id, "self");
    const lit = new Set<string>();
    for (const wire of wires) {
      if (up.has(wire.source) && (up.has(wire.target) || wire.target === id)) lit.add(wire.id);
      if (down.has(wire.target) && (down.has(wire.source) || wire.source === id)) lit.add(wire.id);
    }
    this.set({ nodes, wires: lit, columns: null, columnWires: null });
  }

  /** Light a column's whole path, across the jobs that carry it. */
  column(id: string, wires: ColumnWire[]): void {
    const path = columnPath(id, wires);
    const nodes = new Map<string, Level>();
    for (const wire of wires) {
      if (!path.wires.has(wire.id)) continue;
      nodes.set(wire.edge.from, "up");
      nodes.set(wire.edge.to, "down");
      for (const job of wire.edge.jobs) nodes.set(job, "down");
    }
    this.set({ nodes, wires: new Set(), columns: path.columns, columnWires: path.wires });
  }

  level = (id: string): Level => (this.lit.nodes ? (this.lit.nodes.get(id) ?? "dim") : "");
  wire = (id: string): Level => (this.lit.wires ? (this.lit.wires.has(id) ? "self" : "dim") : "");
  columnLevel = (id: string): Level =>
    this.lit.columns ? (this.lit.columns.has(id) ? "self" : "dim") : "";
  columnWire = (id: string): Level =>
    this.lit.columnWires
      ? this.lit.columnWires.has(id)
        ? "self"
        : "dim"
      : this.lit.nodes
        ? "dim"
        : "";
}

export function spread(
  start: string,
  wires: Wire[],
  from: "source" | "target",
  to: "source" | "target",
): Set<string> {
  const next = new Map<string, string[]>();
  for (const wire of wires) {
    const list = next.get(wire[from]);
    if (list) list.push(wire[to]);
    else next.set(wire[from], [wire[to]]);
  }
  const seen = new Set<string>();
  const queue = [start];
  for (let at = queue.pop(); at !== undefined; at = queue.pop())
    for (const one of next.get(at) ?? [])
      if (!seen.has(one) && one !== start) {
        seen.add(one);
        queue.push(one);
      }
  return seen;
}

export function columnPath(
  id: string,
  wires: ColumnWire[],
): { columns: Set<string>; wires: Set<string> } {
  const columns = new Set([id]);
  const lit = new Set<string>();
  for (const ahead of [true, false]) {
    const queue = [id];
    const seen = new Set([id]);
    for (let at = queue.pop(); at !== undefined; at = queue.pop())
      for (const wire of wires) {
        const near = ahead ? wire.edge.origin : wire.edge.destination;
        const far = ahead ? wire.edge.destination : wire.edge.origin;
        if (near !== at) continue;
        lit.add(wire.id);
        columns.add(far);
        if (!seen.has(far)) {
          seen.add(far);
          queue.push(far);
        }
      }
  }
  return { columns, wires: lit };
}

export const light = new Light();

export function useLevel(read: (id: string) => Level, id: string): Level {
  return useSyncExternalStore(light.subscribe, () => read(id));
}
