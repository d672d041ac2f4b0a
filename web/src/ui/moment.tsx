import { fromLocal, toLocal } from "../lib/format";

/** A moment to pick, in the time of the browser. */
export function Moment({
  label,
  value,
  pick,
}: {
  label: string;
  value: string;
  pick: (time: string) => void;
}) {
  return (
    <label className="moment">
      {label}
      <input
        type="datetime-local"
        step={1}
        value={toLocal(value)}
        onChange={(event) => {
          const time = fromLocal(event.target.value);
          if (time) pick(time);
        }}
      />
    </label>
  );
}
