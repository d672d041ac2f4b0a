import { segments } from "./api";
import { shown } from "./shown";
import type { Named } from "./types";

export function datasetUrl(dataset: Named): string {
  return `/datasets/${segments(dataset.namespace, dataset.name)}`;
}

/** The report on where a dataset, or one of its columns, came from in a period. */
export function auditUrl(dataset: Named, query: Record<string, string> = {}): string {
  return `${datasetUrl(dataset)}/audit?${new URLSearchParams(query)}`;
}

export function jobUrl(job: Named): string {
  return `/jobs/${segments(job.namespace, job.name)}`;
}

export function runUrl(run: string): string {
  return `/runs/${segments(run)}`;
}

export function nodeUrl(kind: string, named: Named): string {
  return kind === "job" ? jobUrl(named) : datasetUrl(named);
}

export function jobId(job: Named): string {
  return `job:${job.namespace}:${job.name}`;
}

export function datasetId(dataset: Named): string {
  return `dataset:${dataset.namespace}:${dataset.name}`;
}

const NODE =
  /^(?:dataset|job):(?:arn:[^:]*:[^:]*:[^:]*:[^:/]*|[\w+.-]+:\/\/(?:\[[^\]]*\])?[^:]*(?::\d+(?:,[^:]*:\d+)*)?|[^:]*):(.+)$/s;

/** The name in an id: what follows the namespace, whose scheme and port have colons of their own. */
export function nameIn(id: string): string {
  return NODE.exec(id)?.[1] ?? id;
}

export function graphUrl(node: string, query: Record<string, string> = {}): string {
  return `/graph?${new URLSearchParams({ node, select: node, ...query })}`;
}

/** After the separators of a name, but not inside a number or an address. */
const WORDS = /(?<=[_-]|\/(?!\/)|(?<!\d)\.|\.(?!\d))/;

/** The most that a name takes in a box. */
const SHORT = 40;

/** A node's name in its box: of an action whose name is too long, what it does rather than its program. */
export function boxName(node: Named & { parent?: string | null }): string {
  const program = node.parent?.slice(`job:${node.namespace}:`.length);
  const action = program && node.name.startsWith(`${program}.`);
  if (!action || shown(node.name).length <= SHORT) return shortName(node.name);
  return shortName(`…${node.name.slice(program.length + 1)}`);
}

/** A name as it is shown where room is short: its beginning and its end, in whole words if it has any. */
export function shortName(name: string, most = SHORT): string {
  const all = shown(name);
  if (all.length <= most) return all;
  const parts = all.split(WORDS);
  let [head, tail] = ["", ""];
  const fits = (part: string | undefined) =>
    part !== undefined && head.length + part.length + tail.length < most;
  while (fits(parts[0]) || fits(parts.at(-1))) {
    if (fits(parts[0])) head += parts.shift();
    if (fits(parts.at(-1))) tail = parts.pop() + tail;
  }
  if (head && tail) return `${head}…${tail}`;
  const half = Math.floor((most - 1) / 2);
  return `${all.slice(0, half)}…${all.slice(-half)}`;
}

/** The parts of a name, cut short or not; it may be broken after each. */
export function pieces(name: string): string[] {
  return name.split(/(?<=…)/).flatMap((part) => part.split(WORDS));
}
