import { segments } from "./api";
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

/** The part of a long name that tells it from its neighbours. */
export function shortName(name: string, most = 34): string {
  if (name.length <= most) return name;
  const parts = name.split(/(?<=[/.])/);
  let short = parts.pop() ?? name;
  while (parts.length > 0 && short.length + (parts.at(-1)?.length ?? 0) < most - 1)
    short = parts.pop() + short;
  if (short.length > most - 1) {
    const half = Math.floor((most - 1) / 2);
    return `${name.slice(0, half)}…${name.slice(-half)}`;
  }
  return `…${short}`;
}
