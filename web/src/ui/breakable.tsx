import type { ReactNode } from "react";
import { pieces } from "../lib/names";

/** Longer names are seldom read, and each place to break is an element. */
const BREAKABLE = 200;

/** A name that may be broken after its separators. */
export function breakable(name: string): ReactNode[] {
  if (name.length > BREAKABLE) return [name];
  return pieces(name).flatMap((part, i) =>
    i === 0 ? [part] : [<wbr key={part + String(i)} />, part],
  );
}
