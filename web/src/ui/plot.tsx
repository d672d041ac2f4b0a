import { useEffect, useRef, useState } from "react";
import { compact, shortClock } from "../lib/format";

export interface Point {
  time: string;
  value: number;
  /** Points of another tone stand out: a failed run among good ones. */
  tone?: "bad" | "aborted" | "live" | undefined;
  label?: string;
}

interface PlotProps {
  title: string;
  points: Point[];
  unit: (value: number) => string;
  /** Whether the values are counts: the axis then has whole numbers alone. */
  whole?: boolean;
  height?: number;
  /** The time that the axis covers, where other plots beside it are to have the same; else each point has a slot. */
  range?: Range | undefined;
}

/** From one moment to another, both with a slot of their own, in milliseconds. */
export interface Range {
  first: number;
  last: number;
  step: number;
}

/** The range of all of these points, which come once in `step` milliseconds. */
export function rangeOf(times: string[], step: number): Range | undefined {
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const time of times.map((one) => Date.parse(one)).filter(Number.isFinite)) {
    first = Math.min(first, time);
    last = Math.max(last, time);
  }
  return first <= last ? { first, last, step } : undefined;
}

const LEFT = 54;
const BOTTOM = 20;

/** The end of an axis: a round value not below these, of counts one with a whole half. */
export function ceiling(value: number, whole = false): number {
  if (value <= 0) return whole ? 2 : 1;
  const power = whole ? Math.max(1, tenth(value)) : tenth(value);
  const steps =
    whole && power === 1 ? [2, 4, 6, 8, 10] : whole ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10];
  return (steps.find((one) => one * power >= value) ?? 10) * power;
}

function tenth(value: number): number {
  return 10 ** Math.floor(Math.log10(value));
}

/** The width that an element has on the screen, so that letters drawn in it have their true size. */
function useWidth() {
  const ref = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    if (!ref.current) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > LEFT) setWidth(Math.round(entry.contentRect.width));
    });
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}

/** Bars over time, with an axis that can be read and a summary that can be heard. */
export function Plot({ title, points, unit, whole = false, height = 150, range }: PlotProps) {
  const { ref, width: full } = useWidth();
  const top = ceiling(Math.max(...points.map((p) => p.value), 0), whole);
  const inner = height - BOTTOM - 8;
  const slots = range ? Math.round((range.last - range.first) / range.step) + 1 : points.length;
  const slot = (full - LEFT) / Math.max(1, slots);
  const width = Math.max(1.5, Math.min(22, slot * 0.72));
  const place = (point: Point, i: number) =>
    range ? Math.round((Date.parse(point.time) - range.first) / range.step) : i;
  const first = points[0];
  const last = points.at(-1);
  const summary = last
    ? `${title}: ${points.length} values, the last ${unit(last.value)}, the highest ${unit(Math.max(...points.map((p) => p.value)))}`
    : `${title}: no values`;
  return (
    <figure className="plot" ref={ref}>
      <svg viewBox={`0 0 ${full} ${height}`} height={height} role="img" aria-label={summary}>
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <line
              className="plot-grid"
              x1={LEFT}
              x2={full}
              y1={8 + inner * (1 - part)}
              y2={8 + inner * (1 - part)}
            />
            <text className="plot-text" x={LEFT - 8} y={12 + inner * (1 - part)} textAnchor="end">
              {unit(top * part)}
            </text>
          </g>
        ))}
        {points.map((point, i) => {
          const tall = point.value > 0 ? Math.max(1.5, (point.value / top) * inner) : 0;
          return (
            <rect
              key={`${point.time}${point.label ?? i}`}
              className={`plot-bar ${point.tone ?? ""}`}
              x={LEFT + slot * place(point, i) + (slot - width) / 2}
              y={8 + inner - tall}
              width={width}
              height={tall}
              rx={Math.min(2, width / 3)}
            >
              <title>{`${shortClock(point.time)}: ${unit(point.value)}${point.label ? `, ${point.label}` : ""}`}</title>
            </rect>
          );
        })}
        {first && slots === 1 ? (
          <text className="plot-text" x={(LEFT + full) / 2} y={height - 4} textAnchor="middle">
            {shortClock(first.time)}
          </text>
        ) : null}
        {first && last && slots > 1 ? (
          <>
            <text className="plot-text" x={LEFT} y={height - 4}>
              {shortClock(range?.first ?? first.time)}
            </text>
            <text className="plot-text" x={full} y={height - 4} textAnchor="end">
              {shortClock(range?.last ?? last.time)}
            </text>
          </>
        ) : null}
      </svg>
    </figure>
  );
}

export function count(value: number): string {
  return compact(Math.round(value * 10) / 10);
}
