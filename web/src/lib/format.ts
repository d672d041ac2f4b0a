const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A length of time in its one or two largest units. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const first = UNITS.findIndex(([size]) => whole >= size);
  const [size, name] = UNITS[first] ?? [1, "s"];
  const count = Math.floor(whole / size);
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  return rest && count < 10 && next ? `${count} ${name} ${rest} ${next[1]}` : `${count} ${name}`;
}

/** How long ago, in words. */
export function ago(time: string | number | null | undefined, now = Date.now()): string {
  if (time === null || time === undefined) return "never";
  const seconds = (now - new Date(time).getTime()) / 1000;
  if (Number.isNaN(seconds)) return "–";
  if (Math.abs(seconds) < 3) return "now";
  if (seconds > 0 && seconds < 60) return `${Math.round(seconds)} s ago`;
  return seconds < 0
    ? `in ${duration(-seconds)}`
    : `${duration(Math.max(1, Math.round(seconds)))} ago`;
}

/** How long something has lasted, in words: "for 2 h". */
export function lasting(time: string | number | null | undefined, now = Date.now()): string {
  const words = ago(time, now);
  return words.endsWith(" ago") ? `for ${words.slice(0, -" ago".length)}` : `since ${words}`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const SHORT = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});

export function clock(time: string | number | null | undefined): string {
  const date = time === null || time === undefined ? null : new Date(time);
  return !date || Number.isNaN(date.getTime()) ? "–" : CLOCK.format(date);
}

export function shortClock(time: string | number): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "–" : SHORT.format(date);
}

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

const BRIEF = new Intl.NumberFormat("en", { notation: "compact" });

/** Two or three digits, for a place that has room for no more. */
export function brief(value: number): string {
  return BRIEF.format(value);
}

export function number(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : NUMBER.format(value);
}

export function compact(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return value < 10_000 ? NUMBER.format(value) : COMPACT.format(value);
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let size = value;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (size < 1000 || unit === "TB") return `${NUMBER.format(size)} ${unit}`;
    size /= 1000;
  }
  return "–";
}

export function plural(count: number, word: string): string {
  return `${compact(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** The moment that an address names: RFC 3339, a date, how long ago (90m, 2d), or now; NaN for others. */
export function momentOf(text: string, now = Date.now()): number {
  if (/^now$/i.test(text)) return now;
  const [, count, unit] = /^(\d+)([dhms])$/i.exec(text) ?? [];
  if (!count || !unit) return Date.parse(text);
  const size = { d: 86_400, h: 3_600, m: 60, s: 1 }[unit.toLowerCase()] ?? Number.NaN;
  return new Date(now - Number(count) * size * 1_000).getTime();
}

/** A moment for `<input type="datetime-local">`, in the reader's time zone. */
export function toLocal(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function fromLocal(text: string): string | null {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** The end of a run's id: those of runs that began together begin alike (UUIDv7). */
export function shortRun(id: string): string {
  return id.length > 9 ? `…${id.slice(-8)}` : id;
}
