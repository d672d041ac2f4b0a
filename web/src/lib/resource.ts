import { startTransition, useCallback, useEffect, useRef, useState } from "react";
import { ApiError, getJson } from "./api";
import { type Change, epoch, onChanges } from "./live";
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
 * changes come in, it is asked at most once a second, and less often where answers are slow.
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

    async function ask(): Promise<void> {
      if (!path) return;
      busy = true;
      const began = performance.now();
      try {
        const data = await getJson<T>(path, stop.signal);
        keep(path, data);
        // A transition may be interrupted, so that the page answers while it redraws.
        if (!stop.signal.aborted) startTransition(() => setHeld({ path, data, error: undefined }));
      } catch (error) {
        if (stop.signal.aborted) return;
        const problem = error instanceof ApiError ? error : new ApiError(0, String(error), path);
        setHeld((before) => ({
          path,
          data: before.path === path && problem.status === 0 ? before.data : undefined,
          error: problem,
        }));
      } finally {
        busy = false;
        took = performance.now() - began;
        if (due) later();
      }
    }

    function later(): void {
      if (busy) {
        due = true;
        return;
      }
      due = false;
      const least = refresh === "live" ? SOONEST : Number(refresh) * 1_000;
      timer ??= setTimeout(
        () => {
          timer = undefined;
          void ask();
        },
        Math.max(least, took * 4),
      );
    }

    setHeld((before) =>
      before.path === path
        ? before
        : { path, data: kept.get(path) as T | undefined, error: undefined },
    );
    again.current = () => void ask();
    void ask();
    const leave =
      refresh === "off"
        ? () => {}
        : onChanges((changes) => {
            if (wanted.current && changes.some(wanted.current)) later();
          });
    return () => {
      leave();
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
