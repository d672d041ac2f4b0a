import type { EstateMap, JobNode, MapEdge, MapNode } from "../lib/types";
import { wireId } from "./model";

/**
 * Programs as people think of them: what an application runs, drawn as that application. Its actions
 * become one box with its name; statements that only make a table or only look at one are left out
 * where the program does more than that; a streaming query stands for its application.
 */

const LOOKS = /^(?:count|head|first|take|tail|show|isempty|is_empty|collect_limit)(?:$|\.)/i;
const CREATES = /^(?:execute_)?(?:create|replace)_(?!\w*as_select)/;

interface Family {
  parent: JobNode;
  actions: JobNode[];
  queries: number;
}

/** The map with each program drawn once. `keep` is the node that was asked for: it stays itself. */
export function byProgram(map: EstateMap, keep: string | null): EstateMap {
  const families = familiesOf(map, keep);
  if (families.size === 0) return map;
  const ends = endsOf(map);
  /** What an action is drawn as; null if it is left out. */
  const drawn = new Map<string, string | null>();
  const folded = new Map<string, JobNode[]>();
  for (const [id, { actions, queries }] of families) {
    const working = actions.filter((action) => !isAside(action, ends));
    // A program that does nothing else is still a reader of what it counts.
    const shown = working.length > 0 || queries > 0 ? working : actions;
    for (const action of actions) drawn.set(action.id, shown.includes(action) ? id : null);
    if (shown.length > 0) folded.set(id, shown);
    else if (queries > 0 && id !== keep) drawn.set(id, null);
  }
  const nodes = map.nodes.filter((node) => !drawn.has(node.id) && !folded.has(node.id));
  for (const [id, actions] of folded) {
    const family = families.get(id);
    if (!family) continue;
    const asides = family.actions.filter((one) => !actions.includes(one)).map((one) => one.id);
    nodes.push({ ...program(family.parent, actions, map), asides });
  }
  const edges = new Map<string, MapEdge>();
  for (const edge of map.edges) {
    const origin = drawn.has(edge.origin) ? drawn.get(edge.origin) : edge.origin;
    const destination = drawn.has(edge.destination)
      ? drawn.get(edge.destination)
      : edge.destination;
    if (!origin || !destination) continue;
    const moved = origin !== edge.origin || destination !== edge.destination;
    const made = moved ? { ...edge, origin, destination, of: edge } : edge;
    const known = edges.get(wireId(made));
    // What one action still does has not gone, whatever another one did before.
    if (!known || (known.change && !made.change)) edges.set(wireId(made), made);
  }
  const used = new Set([...edges.values()].flatMap((edge) => [edge.origin, edge.destination]));
  const touched = new Set(
    map.edges
      .filter((edge) => drawn.has(edge.origin) || drawn.has(edge.destination))
      .flatMap((edge) => [edge.origin, edge.destination]),
  );
  return {
    ...map,
    // A dataset that only a statement left out has touched goes with it.
    nodes: nodes.filter(
      (node) =>
        node.kind === "job" || used.has(node.id) || !touched.has(node.id) || node.id === keep,
    ),
    edges: [...edges.values()],
    ...(map.columns
      ? {
          columns: {
            ...map.columns,
            edges: map.columns.edges.map((edge) => ({
              ...edge,
              jobs: [...new Set(edge.jobs.map((job) => drawn.get(job) ?? job))],
            })),
          },
        }
      : {}),
  };
}

/**
 * The map with every action by itself: an application that has no datasets of its own is left out where
 * something it runs is drawn, since no wire would tell where it belongs.
 */
export function byAction(map: EstateMap, keep: string | null): EstateMap {
  const parents = new Set(map.nodes.map((node) => (node.kind === "job" ? node.parent : null)));
  const ends = endsOf(map);
  const bare = (node: MapNode) => {
    const { reads, writes } = ends.get(node.id) ?? { reads: 0, writes: 0 };
    return node.kind === "job" && node.type === "application" && reads + writes === 0;
  };
  const nodes = map.nodes.filter(
    (node) => node.id === keep || !parents.has(node.id) || !bare(node),
  );
  return nodes.length === map.nodes.length ? map : { ...map, nodes };
}

/** The ids of all actions that a program's box stands for. */
export function actionsOf(node: JobNode): string[] {
  return [...(node.actions ?? []).map((action) => action.id), ...(node.asides ?? [])];
}

/** What a job is drawn as: itself, or the program that it is an action of. */
export function drawnAs(nodes: MapNode[], id: string | null): string | null {
  const found = nodes.find(
    (node) => node.kind === "job" && id !== null && actionsOf(node).includes(id),
  );
  return found?.id ?? id;
}

function familiesOf(map: EstateMap, keep: string | null): Map<string, Family> {
  const jobs = map.nodes.filter((node): node is JobNode => node.kind === "job");
  const known = new Map<string, JobNode>(
    (map.parents ?? []).map((job) => [
      job.id,
      { ...job, distance: 0, more: { upstream: 0, downstream: 0 } },
    ]),
  );
  for (const job of jobs) known.set(job.id, job);
  const families = new Map<string, Family>();
  for (const job of jobs) {
    const parent = job.parent ? known.get(job.parent) : undefined;
    if (parent?.type !== "application" || job.id === keep) continue;
    const family = families.get(parent.id) ?? { parent, actions: [], queries: 0 };
    if (job.processing.startsWith("stream")) family.queries += 1;
    else family.actions.push(job);
    families.set(parent.id, family);
  }
  return families;
}

/** How many datasets a job reads and writes, drawn or not. */
function endsOf(map: EstateMap): Map<string, { reads: number; writes: number }> {
  const ends = new Map<string, { reads: number; writes: number }>();
  for (const node of map.nodes)
    ends.set(node.id, { reads: node.more.upstream, writes: node.more.downstream });
  for (const { origin, destination } of map.edges) {
    const from = ends.get(origin);
    const to = ends.get(destination);
    if (from) from.writes += 1;
    if (to) to.reads += 1;
  }
  return ends;
}

/** Whether an action only makes a table, or only looks at one, as `count` does. */
function isAside(action: JobNode, ends: ReturnType<typeof endsOf>): boolean {
  const { reads, writes } = ends.get(action.id) ?? { reads: 0, writes: 0 };
  if (writes === 0 && LOOKS.test(operation(action))) return true;
  return reads === 0 && CREATES.test(operation(action));
}

/** What an action does, by its name: `create_table` in `stats.create_table.default_orders`. */
function operation(action: JobNode): string {
  const parent = action.parent?.slice(`job:${action.namespace}:`.length) ?? "";
  return action.name.startsWith(`${parent}.`) ? action.name.slice(parent.length + 1) : action.name;
}

function program(parent: JobNode, actions: JobNode[], map: EstateMap): JobNode {
  const sum = (side: "upstream" | "downstream") =>
    actions.reduce((total, action) => total + action.more[side], 0);
  const error = parent.error ?? actions.find((action) => action.state === "FAILED")?.error ?? null;
  const changes = new Set(actions.map((action) => action.change ?? ""));
  const change = changes.size === 1 ? [...changes][0] : "";
  return {
    ...parent,
    actions,
    error,
    distance: Math.min(...actions.map((action) => action.distance)),
    more: { upstream: sum("upstream"), downstream: sum("downstream") },
    pairs: pairsOf(actions, map),
    assumed: actions.some((action) => action.assumed),
    ...(change ? { change } : {}),
  };
}

/** Which datasets feed which: those of each action, or nothing to say if all feed all in the only one. */
function pairsOf(actions: JobNode[], map: EstateMap): NonNullable<JobNode["pairs"]> | null {
  const [only] = actions;
  if (actions.length === 1) return only?.pairs ?? null;
  return actions.flatMap((action) => {
    if (action.pairs) return action.pairs;
    const reads = map.edges.filter((edge) => edge.destination === action.id);
    const writes = map.edges.filter((edge) => edge.origin === action.id);
    return reads.flatMap(({ origin }) =>
      writes.map(({ destination }) => ({ origin, destination })),
    );
  });
}
