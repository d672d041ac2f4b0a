import { startTransition, useCallback, useEffect, useRef, useState } from "react";
import { ApiError, getJson } from "./api";
import { type Change, epoch, link, onChanges } from "./live";
import { settings } from "./settings";
import { useStore } from "./store";

export interface Resource<T> {
  data: T | undefined;
  error: ApiError | undefined;
  /** The path that `data` came from. */
  path: string | null;
  reload: () => void;
}

const KEPT = 40;
const SOONEST = 1_000;
const LONGEST = 15_000;
const kept = new Map<string, unknown>();

function keep(path: string, data: unknown): void {
  kept.delete(path);
  kept.set(path, data);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value ?? "");
}

interface Held<T> {
  path: string | null;
  data: T | undefined;
  error: ApiError | undefined;
}

/**
 * An answer of the API, asked again when `concerns` says that a change touches it. However many
 * changes come in, it is asked at most once a second, and less often where answers are slow. What
 * fails for a reason that passes is tried again by itself, and what was known stays until then.
 */
export function useResource<T>(
  path: string | null,
  concerns?: (change: Change) => boolean,
): Resource<T> {
  const [held, setHeld] = useState<Held<T>>(() => ({
    path,
    data: path ? (kept.get(path) as T | undefined) : undefined,
    error: undefined,
  }));
  const generation = useStore(epoch);
  const refresh = useStore(settings).refresh;
  const again = useRef<() => void>(() => {});
  const wanted = useRef(concerns);
  wanted.current = concerns;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new generation asks anew
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let took = 0;
    let busy = false;
    let due = false;
    let failures = 0;
    // What changed between the question and the opening of the stream is told by nobody.
    let deaf = link.get() !== "live";

    async function ask(): Promise<void> {
      if (!path) return;
      busy = true;
      const began = performance.now();
      try {
        const data = await getJson<T>(path, stop.signal);
        failures = 0;
        keep(path, data);
        // A transition may be interrupted, so that the page answers while it redraws.
        if (!stop.signal.aborted) startTransition(() => setHeld({ path, data, error: undefined }));
      } catch (error) {
        if (stop.signal.aborted) return;
        const problem = error instanceof ApiError ? error : new ApiError(0, String(error), path);
        if (problem.passing) failures += 1;
        else kept.delete(path);
        setHeld((before) => ({
          path,
          data: before.path === path && problem.passing ? before.data : undefined,
          error: problem,
        }));
        due ||= problem.passing;
      } finally {
        busy = false;
        took = performance.now() - began;
        if (due && !stop.signal.aborted) later();
      }
    }

    function later(): void {
      if (busy) {
        due = true;
        return;
      }
      due = false;
      const regular = refresh === "10" || refresh === "60" ? Number(refresh) * 1_000 : SOONEST;
      const wait = failures
        ? Math.min(LONGEST, SOONEST * 2 ** (failures - 1)) * (0.75 + Math.random() / 2)
        : Math.max(regular, took * 4);
      timer ??= setTimeout(() => {
        timer = undefined;
        void ask();
      }, wait);
    }

    setHeld((before) =>
      before.path === path
        ? before
        : { path, data: kept.get(path) as T | undefined, error: undefined },
    );
    again.current = () => void ask();
    void ask();
    const follows = refresh !== "off";
    const leave = onChanges((changes) => {
      if (follows && wanted.current && changes.some(wanted.current)) later();
    });
    const opened = link.subscribe(() => {
      if (link.get() !== "live" || !deaf) return;
      deaf = false;
      if (follows && wanted.current) later();
    });
    return () => {
      leave();
      opened();
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, generation, refresh]);

  const reload = useCallback(() => again.current(), []);
  const current = held.path === path;
  return {
    data: current ? held.data : undefined,
    error: current ? held.error : undefined,
    path,
    reload,
  };
}
