import { useSyncExternalStore } from "react";
import type { ImpactAnswer, ImpactEffect } from "../lib/types";
import { EFFECTS } from "../ui/impact";
import type { Box, ColumnWire, Wire } from "./model";
import { actionsOf } from "./programs";

/** Which nodes, wires and columns are lit: told to each by itself, so that only what changes redraws. */

export type Level = "" | "self" | "up" | "down" | "dim" | ImpactEffect;

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
  node(id: string, wires: Wire[], boxes: Box[]): void {
    const pairs = pairsOf(boxes);
    const up = spread(id, wires, pairs, true);
    const down = spread(id, wires, pairs, false);
    const nodes = new Map<string, Level>();
    for (const one of up.nodes) nodes.set(one, "up");
    for (const one of down.nodes) nodes.set(one, "down");
    nodes.set(id, "self");
    const lit = new Set([...up.wires, ...down.wires]);
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

  /** Light what a change hits, each by its effect. */
  impact(answer: ImpactAnswer, wires: Wire[], boxes: Box[]): void {
    const drawn = boxOfActions(boxes);
    const nodes = new Map<string, Level>();
    const order: Level[] = EFFECTS.map(([effect]) => effect).toReversed();
    const worse = (id: string, effect: ImpactEffect): void => {
      if (order.indexOf(effect) > order.indexOf(nodes.get(id) ?? "")) nodes.set(id, effect);
    };
    const columns = new Set<string>();
    for (const job of answer.jobs) worse(drawn.get(job.id) ?? job.id, job.effect);
    for (const one of answer.columns) {
      worse(one.dataset, one.effect);
      if (one.column)
        columns.add(`datasetField:${one.dataset.slice("dataset:".length)}:${one.column}`);
    }
    for (const { column } of answer.changes)
      if (column) columns.add(`datasetField:${answer.dataset.slice("dataset:".length)}:${column}`);
    nodes.set(answer.dataset, "self");
    const lit = new Set(
      wires.filter((w) => nodes.has(w.source) && nodes.has(w.target)).map((w) => w.id),
    );
    this.set({ nodes, wires: lit, columns, columnWires: new Set() });
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

/** The box that stands for each action of a program, drawn in it or left out. */
function boxOfActions(boxes: Box[]): Map<string, string> {
  return new Map(
    boxes.flatMap(({ id, node }) =>
      node?.kind === "job" ? actionsOf(node).map((one): [string, string] => [one, id]) : [],
    ),
  );
}

/** Of each job with known pairs: each output with the inputs that feed it. */
type Pairs = Map<string, Map<string, Set<string>>>;

function pairsOf(boxes: Box[]): Pairs {
  const pairs: Pairs = new Map();
  for (const { id, node } of boxes) {
    if (node?.kind !== "job" || !node.pairs) continue;
    const fed = new Map<string, Set<string>>();
    for (const { origin, destination } of node.pairs)
      fed.set(destination, (fed.get(destination) ?? new Set()).add(origin));
    pairs.set(id, fed);
  }
  return pairs;
}

/**
 * All that leads to a node, or all it leads to, and the wires between. A job with known pairs is
 * left only towards what belongs to the dataset it was entered through, so it may be met again.
 */
function spread(
  start: string,
  wires: Wire[],
  pairs: Pairs,
  up: boolean,
): { nodes: Set<string>; wires: Set<string> } {
  const [from, to] = up ? (["target", "source"] as const) : (["source", "target"] as const);
  const next = new Map<string, Wire[]>();
  for (const wire of wires) {
    const list = next.get(wire[from]);
    if (list) list.push(wire);
    else next.set(wire[from], [wire]);
  }
  const nodes = new Set<string>();
  const passed = new Set<string>();
  const seen = new Set([start]);
  const queue: { at: string; via: string | null }[] = [{ at: start, via: null }];
  for (let one = queue.pop(); one !== undefined; one = queue.pop()) {
    const { at, via } = one;
    const fed = via === null ? undefined : pairs.get(at);
    for (const wire of next.get(at) ?? []) {
      const other = wire[to];
      if (fed && via !== null && !(up ? fed.get(via)?.has(other) : fed.get(other)?.has(via)))
        continue;
      passed.add(wire.id);
      if (other !== start) nodes.add(other);
      const visit = pairs.has(other) && other !== start ? `${other}\n${at}` : other;
      if (seen.has(visit)) continue;
      seen.add(visit);
      queue.push({ at: other, via: at });
    }
  }
  return { nodes, wires: passed };
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
