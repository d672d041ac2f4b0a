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

function kindIn(id: string): string {
  return id.slice(0, id.indexOf(":"));
}

/** What the jobs and datasets of one answer are called, so that no two of them look alike. */
export class ShownNames {
  private often = new Map<string, number>();

  constructor(ids: Iterable<string>) {
    for (const id of new Set(ids)) {
      const key = `${kindIn(id)} ${nameIn(id)}`;
      this.often.set(key, (this.often.get(key) ?? 0) + 1);
    }
  }

  /** A name without its namespace, unless another of its kind has the same; `own` where it is known. */
  of(id: string, own?: string): string {
    const name = nameIn(id);
    const often = this.often.get(`${kindIn(id)} ${name}`) ?? 0;
    return often > 1 ? id.slice(id.indexOf(":") + 1) : (own ?? name);
  }

  /** A way over jobs and datasets; of a name that both have, also which it is. */
  path(ids: string[]): string {
    const kinds = new Map<string, Set<string>>();
    for (const id of ids) {
      const name = this.of(id);
      kinds.set(name, (kinds.get(name) ?? new Set()).add(kindIn(id)));
    }
    return ids
      .map((id) => {
        const name = this.of(id);
        return (kinds.get(name)?.size ?? 0) > 1 ? `${kindIn(id)} ${name}` : name;
      })
      .join(" → ");
  }
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
