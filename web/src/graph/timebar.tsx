import { useState } from "react";
import { momentOf, shortClock } from "../lib/format";
import { Icon } from "../ui/icons";
import { Moment } from "../ui/moment";

export interface Times {
  at: string | null;
  from: string | null;
  to: string | null;
}

type Mode = "now" | "at" | "diff";

const STEPS: [string, number][] = [
  ["1 h ago", 3_600_000],
  ["1 d ago", 86_400_000],
  ["7 d ago", 7 * 86_400_000],
];

/** The graph as of now, as of a moment, or as what changed between two. */
export function TimeBar({
  times,
  first,
  set,
}: {
  times: Times;
  first: string | null;
  set: (times: Times) => void;
}) {
  const mode: Mode = times.from ? "diff" : times.at ? "at" : "now";
  const [now] = useState(() => Date.now());
  const low = first ? Date.parse(first) : now - 86_400_000;
  const past = (back: number) => new Date(Math.max(low, Date.now() - back)).toISOString();
  const value = momentOf((mode === "diff" ? times.from : times.at) ?? "", now) || now;
  const end = momentOf(times.to ?? "", now) || now;

  function change(next: Mode): void {
    if (next === "now") set({ at: null, from: null, to: null });
    else if (next === "at") set({ at: times.from ?? past(86_400_000), from: null, to: null });
    else set({ at: null, from: times.at ?? past(86_400_000), to: null });
  }
  function move(time: string): void {
    set(mode === "diff" ? { ...times, from: time } : { at: time, from: null, to: null });
  }
  return (
    <fieldset className="timebar">
      <legend className="sr">Time</legend>
      <Icon name="clock" size={16} />
      <div className="segments small">
        {(
          [
            ["now", "Now"],
            ["at", "As of"],
            ["diff", "Difference"],
          ] as [Mode, string][]
        ).map(([one, name]) => (
          <label key={one}>
            <input
              type="radio"
              name="time"
              aria-label={name}
              checked={mode === one}
              onChange={() => change(one)}
            />
            <span>{name}</span>
          </label>
        ))}
      </div>
      {mode !== "now" ? (
        <>
          <input
            type="range"
            className="time-range"
            aria-label={mode === "diff" ? "From" : "As of"}
            aria-valuetext={shortClock(value)}
            min={low}
            max={now}
            step={Math.max(1000, Math.round((now - low) / 500))}
            value={value}
            onChange={(event) => move(new Date(Number(event.target.value)).toISOString())}
          />
          <Moment
            label={mode === "diff" ? "from" : "at"}
            value={new Date(value).toISOString()}
            pick={move}
          />
          {mode === "diff" ? (
            <Moment
              label="to"
              value={new Date(end).toISOString()}
              pick={(time) => set({ ...times, to: time })}
            />
          ) : null}
          <span className="time-steps">
            {STEPS.map(([name, back]) => (
              <button
                key={name}
                type="button"
                className="button small quiet"
                onClick={() => move(past(back))}
              >
                {name}
              </button>
            ))}
          </span>
        </>
      ) : null}
    </fieldset>
  );
}
