import { clock, duration, number } from "../lib/format";
import { navigate, withQuery } from "../lib/router";
import type { JobPage, Run, ShownState } from "../lib/types";
import { Ago, Panel } from "../ui/basics";
import { count, Plot, type Point } from "../ui/plot";
import { shownState, stateWord } from "../ui/state";
import { rows } from "./run";

/** The runs that somebody ended on purpose. */
export type Ends = JobPage["plannedEnds"];

function stateOf(run: Run, ends: Ends): ShownState {
  return shownState({ state: run.state, planned: ends[run.id] });
}

function tone(state: ShownState): Point["tone"] {
  if (state === "FAILED") return "bad";
  if (state === "ABORTED") return "aborted";
  return state === "RUNNING" ? "live" : undefined;
}

export function Plots({ runs, ends, path }: { runs: Run[]; ends: Ends; path: string }) {
  const past = runs.toReversed();
  const lengths = past
    .filter((run) => run.startedAt && run.durationMs !== null)
    .map((run) => ({
      time: run.startedAt ?? run.createdAt,
      value: (run.durationMs ?? 0) / 1000,
      tone: tone(stateOf(run, ends)),
      label: stateWord(stateOf(run, ends)),
    }));
  const sizes = past
    .map((run) => ({ run, value: rows(run.outputDatasetVersions, "outputStatistics") }))
    .filter((one) => one.value !== null)
    .map(({ run, value }) => ({
      time: run.createdAt,
      value: value ?? 0,
      tone: tone(stateOf(run, ends)),
    }));
  const longest = Math.max(...lengths.map((one) => one.value), 0);
  const [size, unit] = longest > 7_200 ? [3_600, "h"] : longest > 120 ? [60, "min"] : [1, "s"];
  if (lengths.length < 2 && sizes.length < 2) return null;
  return (
    <div className="columns even">
      {lengths.length > 1 ? (
        <Panel title="Duration of runs" json={path}>
          <Plot
            title="Duration of runs"
            unit={(value) => `${number(value)} ${unit}`}
            points={lengths.map((one) => ({ ...one, value: one.value / Number(size) }))}
          />
        </Panel>
      ) : null}
      {sizes.length > 1 ? (
        <Panel title="Rows written" json={path}>
          <Plot title="Rows written" unit={count} whole points={sizes} />
        </Panel>
      ) : null}
    </div>
  );
}

/** Runs on a line of time: where each begins and ends, and how it ended. */
export function TimeLine({
  runs,
  ends,
  chosen,
}: {
  runs: Run[];
  ends: Ends;
  chosen: string | null;
}) {
  const now = Date.now();
  const spans = runs
    .filter((run) => run.startedAt ?? run.createdAt)
    .slice(0, 40)
    .map((run) => ({
      run,
      start: Date.parse(run.startedAt ?? run.createdAt),
      end: run.endedAt ? Date.parse(run.endedAt) : now,
      state: stateOf(run, ends),
    }));
  const low = Math.min(...spans.map((s) => s.start));
  const high = Math.max(...spans.map((s) => s.end), low + 1);
  return (
    <div className="timeline">
      {spans.toReversed().map(({ run, start, end, state }) => (
        <button
          key={run.id}
          type="button"
          className={`span state-${state.toLowerCase()}`}
          aria-pressed={run.id === chosen}
          ref={(element) => {
            if (!element) return;
            const width = Math.max(0.8, ((end - start) / (high - low)) * 100);
            const left = Math.min(100 - width, ((start - low) / (high - low)) * 100);
            element.style.left = `${left}%`;
            element.style.width = `${width}%`;
          }}
          title={`${clock(run.startedAt)}: ${stateWord(state)}, ${duration((end - start) / 1000)}`}
          aria-label={`Run of ${clock(run.startedAt)}, ${stateWord(state)}`}
          onClick={() =>
            navigate(withQuery({ run: run.id === chosen ? null : run.id }), { replace: true })
          }
        />
      ))}
      <div className="timeline-axis muted">
        <Ago time={low} />
        <span>{runs.some((run) => run.state === "RUNNING") ? "now" : <Ago time={high} />}</span>
      </div>
    </div>
  );
}
