import { startTransition, useEffect, useMemo, useRef, useState } from "react";
import { ApiError, apiPath, getJson } from "../lib/api";
import { type Change, onChanges } from "../lib/live";
import { useResource } from "../lib/resource";
import type { EstateMap, JobFacts, Planned, State } from "../lib/types";
import { merge } from "./model";
import type { View } from "./view";

const MOST = 300;
const STRUCTURE = new Set(["job", "dataset", "edges", "schema"]);

interface Told {
  state: State;
  planned: Planned | null;
  run: string;
  at: string;
}

/** The states of jobs that changes tell of: where runs of one overlap, one of them decides. */
export function statesIn(changes: Change[]): [string, Told][] {
  return changes
    .filter(({ kind, data }) => kind === "run" && data.decides !== false)
    .map(({ data, at }) => [
      `job:${data.namespace}:${data.name}`,
      {
        state: data.state as State,
        planned: (data.planned as Planned | undefined) ?? null,
        run: String(data.run),
        at: new Date(at).toISOString(),
      },
    ]);
}

/** The states that the live stream told since the last answer, so that a run need not ask anew. */
function useTold(base: EstateMap | undefined, still: boolean): Map<string, Told> {
  const [told, setTold] = useState<{ base: EstateMap | undefined; map: Map<string, Told> }>({
    base,
    map: new Map(),
  });
  useEffect(() => {
    if (still) return;
    return onChanges((changes) => {
      const states = statesIn(changes);
      if (states.length === 0) return;
      startTransition(() =>
        setTold((before) => ({
          base,
          map: new Map([...(before.base === base ? before.map : []), ...states]),
        })),
      );
    });
  }, [base, still]);
  return told.base === base ? told.map : EMPTY;
}

const EMPTY = new Map<string, Told>();

function concerns(change: Change): boolean {
  return STRUCTURE.has(change.kind);
}

export interface Estate {
  map: EstateMap | undefined;
  error: ApiError | undefined;
  reload: () => void;
  path: string;
}

/** The part of the estate that the address asks for, with the neighbours opened since. */
export function useEstate(view: View): Estate {
  const { at, from, to } = view.times;
  const common = { at: from ? null : at, from, to, columns: view.options.columns ? "true" : null };
  const path = apiPath("/api/v2/map", {
    node: view.node,
    namespace: view.node ? null : view.namespace,
    depth: view.node ? view.depth : null,
    ...common,
  });
  const still = at !== null || from !== null;
  const { data, error, reload } = useResource<EstateMap>(path, still ? undefined : concerns);
  const paths = view.expanded.map((node) => apiPath("/api/v2/map", { node, depth: 0, ...common }));
  const wanted = paths.join("\n");
  const [extra, setExtra] = useState<{ wanted: string; maps: EstateMap[] }>({
    wanted: "",
    maps: [],
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new answer asks for the rest anew
  useEffect(() => {
    if (!wanted) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = () => {
      Promise.all(wanted.split("\n").map((one) => getJson<EstateMap>(one, stop.signal)))
        .then((maps) => setExtra({ wanted, maps }))
        .catch((problem) => {
          if (problem instanceof ApiError && problem.passing) timer = setTimeout(ask, 2_000);
        });
    };
    ask();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [wanted, data]);

  const merged = useMemo(
    () => (data ? merge([data, ...(extra.wanted === wanted ? extra.maps : [])], MOST) : undefined),
    [data, extra, wanted],
  );
  const told = useTold(merged, still);
  const retold = useRef(new Map<string, { base: JobFacts; news: Told; job: JobFacts }>());
  const map = useMemo(() => {
    if (!merged || told.size === 0) return merged;
    const renew = <T extends JobFacts>(job: T): T => {
      const news = told.get(job.id);
      if (!news) return job;
      const before = retold.current.get(job.id);
      if (before?.base === job && before.news === news) return before.job as T;
      const { state, planned, run, at: since } = news;
      const fresh = { ...job, state, planned, run, since, inferred: false, deleted: null };
      retold.current.set(job.id, { base: job, news, job: fresh });
      return fresh;
    };
    const nodes = merged.nodes.map((node) => (node.kind === "job" ? renew(node) : node));
    return { ...merged, nodes, parents: merged.parents?.map(renew) ?? [] };
  }, [merged, told]);
  return { map, error, reload, path };
}
