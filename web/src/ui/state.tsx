import type { Planned, ShownState, State } from "../lib/types";

/** A run's state by colour, shape and word, so that no one of them has to be seen. */

const WORDS: Record<ShownState, string> = {
  NEW: "New",
  RUNNING: "Running",
  COMPLETED: "Completed",
  FAILED: "Failed",
  ABORTED: "Aborted",
  PAUSED: "Paused",
  STOPPED: "Stopped",
  DELETED: "Deleted",
};

export const SHAPES: Record<ShownState, string> = {
  NEW: "M6 1.500a4.500 4.500 0 1 1 0 9 4.500 4.500 0 0 1 0-9zM6 3.300a2.700 2.700 0 1 0 0 5.400 2.700 2.700 0 0 0 0-5.400z",
  RUNNING: "M3 1.200 10.500 6 3 10.800z",
  COMPLETED:
    "M6 .8a5.200 5.200 0 1 1 0 10.400A5.200 5.200 0 0 1 6 .8zM8.900 3.900 5.300 7.500 3.300 5.600l-.9.9 2.900 2.800 4.500-4.500z",
  FAILED:
    "M6 .5 11.500 6 6 11.500.5 6zM5.300 3.200v3.400h1.400V3.200zM5.300 7.500v1.300h1.400V7.500z",
  ABORTED: "M1.500 1.500h9v9h-9z",
  PAUSED: "M2.500 1.500h2.500v9H2.500zM7 1.500h2.500v9H7z",
  STOPPED: "M1.500 1.500h9v9h-9zM3.200 3.200v5.600h5.600V3.200z",
  DELETED:
    "M2.600 1.400 6 4.800l3.400-3.400 1.200 1.200L7.200 6l3.400 3.400-1.200 1.200L6 7.200l-3.400 3.400-1.200-1.200L4.800 6 1.400 2.600z",
};

interface Standing {
  state: State;
  planned?: Planned | null | undefined;
  deleted?: string | null | undefined;
}

/** What to show of a state: deleted, or paused and stopped where somebody wanted it so. */
export function shownState(of: Standing): ShownState {
  if (of.deleted) return "DELETED";
  return of.planned ? (of.planned.toUpperCase() as Uppercase<Planned>) : of.state;
}

export function stateWord(state: ShownState, inferred = false): string {
  const known = state === "PAUSED" || state === "STOPPED" || state === "DELETED";
  return inferred && !known ? "Gone silent" : (WORDS[state] ?? state);
}

export function StateMark({ state, size = 12 }: { state: ShownState; size?: number }) {
  return (
    <svg
      className={`mark state-${state.toLowerCase()}`}
      width={size}
      height={size}
      viewBox="0 0 12 12"
      aria-hidden="true"
    >
      <path d={SHAPES[state] ?? SHAPES.NEW} fill="currentColor" fillRule="evenodd" />
    </svg>
  );
}

export function StateBadge({ state, inferred = false }: { state: ShownState; inferred?: boolean }) {
  return (
    <span className={`badge state-${state.toLowerCase()}`}>
      <StateMark state={state} />
      {stateWord(state, inferred)}
    </span>
  );
}
