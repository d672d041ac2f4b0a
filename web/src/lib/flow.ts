import { useEffect, useSyncExternalStore } from "react";
import { getJson } from "./api";
import { onChanges } from "./live";
import type { FlowSample } from "./types";

/** What flows now, by run, direction and dataset: a sample stands for half a minute. */

const FRESH = 30_000;

export interface Rate {
  records: number;
  lag: number | null;
  last: string | null;
  heard: number;
}

const rates = new Map<string, Rate>();
const listeners = new Set<() => void>();

export function flowKey(run: string, direction: string, name: string): string {
  return `${run}\n${direction}\n${name}`;
}

function put(sample: FlowSample, heard: number): void {
  rates.set(flowKey(sample.run, sample.direction, sample.dataset.name), {
    records: sample.recordsPerSecond ?? 0,
    lag: sample.lag,
    last: sample.lastRecordAt,
    heard,
  });
}

function tell(): void {
  for (const listener of [...listeners]) listener();
}

onChanges((changes) => {
  let any = false;
  for (const change of changes) {
    if (change.kind !== "flow") continue;
    put(change.data as unknown as FlowSample, change.at);
    any = true;
  }
  if (any) tell();
});

setInterval(() => {
  const oldest = Date.now() - FRESH;
  let any = false;
  for (const [key, rate] of rates) {
    if (rate.heard < oldest) {
      rates.delete(key);
      any = true;
    }
  }
  if (any) tell();
}, 1_000);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useRate(key: string | null): Rate | undefined {
  return useSyncExternalStore(subscribe, () => (key ? rates.get(key) : undefined));
}

/** Begin with what the server heard of late: of its sums of a minute, those that ended just now. */
export function useFlow(): void {
  useEffect(() => {
    const stop = new AbortController();
    getJson<{ flow: (FlowSample & { seconds: number })[] }>("/api/v2/flow", stop.signal)
      .then(({ flow }) => {
        const now = Date.now();
        for (const sample of flow) {
          const key = flowKey(sample.run, sample.direction, sample.dataset.name);
          const heard = Math.min(now, Date.parse(sample.time) + sample.seconds * 1_000);
          if (!rates.has(key) && heard >= now - FRESH) put(sample, heard);
        }
        tell();
      })
      .catch(() => {});
    return () => stop.abort();
  }, []);
}
