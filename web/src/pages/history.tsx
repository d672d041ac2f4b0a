import { clock, duration, number } from "../lib/format";
import { navigate, withQuery } from "../lib/router";
import type { Run } from "../lib/types";
import { Ago, Panel } from "../ui/basics";
import { count, Plot, type Point } from "../ui/plot";
import { stateWord } from "../ui/state";
import { rows } from "./run";

function tone(run: Run): Point["tone"] {
  if (run.state === "FAILED" || run.state === "ABORTED") return "bad";
  return run.state === "RUNNING" ? "live" : undefined;
}

export function Plots({ runs, path }: { runs: Run[]; path: string }) {
  const past = runs.toReversed();
  const lengths = past
    .filter((run) => run.startedAt && run.durationMs !== null)
    .map((run) => ({
      time: run.startedAt ?? run.createdAt,
      value: (run.durationMs ?? 0) / 1000,
      tone: tone(run),
      label: stateWord(run.state),
    }));
  const sizes = past
    .map((run) => ({ run, value: rows(run.outputDatasetVersions, "outputStatistics") }))
    .filter((one) => one.value !== null)
    .map(({ run, value }) => ({ time: run.createdAt, value: value ?? 0, tone: tone(run) }));
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
          <Plot title="Rows written" unit={count} points={sizes} />
        </Panel>
      ) : null}
    </div>
  );
}

/** Runs on a line of time: where each begins and ends, and how it ended. */
export function TimeLine({ runs, chosen }: { runs: Run[]; chosen: string | null }) {
  const now = Date.now();
  const spans = runs
    .filter((run) => run.startedAt ?? run.createdAt)
    .slice(0, 40)
    .map((run) => ({
      run,
      start: Date.parse(run.startedAt ?? run.createdAt),
      end: run.endedAt ? Date.parse(run.endedAt) : now,
    }));
  const low = Math.min(...spans.map((s) => s.start));
  const high = Math.max(...spans.map((s) => s.end), low + 1);
  return (
    <div className="timeline">
      {spans.toReversed().map(({ run, start, end }) => (
        <button
          key={run.id}
          type="button"
          className={`span state-${run.state.toLowerCase()}`}
          aria-pressed={run.id === chosen}
          ref={(element) => {
            if (!element) return;
            const width = Math.max(0.8, ((end - start) / (high - low)) * 100);
            const left = Math.min(100 - width, ((start - low) / (high - low)) * 100);
            element.style.left = `${left}%`;
            element.style.width = `${width}%`;
          }}
          title={`${clock(run.startedAt)}: ${stateWord(run.state)}, ${duration((end - start) / 1000)}`}
          aria-label={`Run of ${clock(run.startedAt)}, ${stateWord(run.state)}`}
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
