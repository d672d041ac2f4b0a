import { pieces } from "../lib/names";

/** How much room words take, by a wide font's measure: what fits in it fits in any other. */

const BREADTHS: [string, number][] = [
  ["ijl.,:;'|!/()[]- ", 0.38],
  ["tf", 0.48],
  ["r_", 0.5],
  ["scz", 0.6],
  ["vxyk", 0.66],
  ["aeo", 0.685],
  ["mwMW@%…", 1.05],
  ["ABCDEFGHIJKLNOPQRSTUVXYZ", 0.78],
];
const KNOWN = new Map(
  BREADTHS.flatMap(([signs, each]) => [...signs].map((sign): [string, number] => [sign, each])),
);

function signBreadth(sign: string): number {
  // Letters of other scripts are taken for wide ones.
  return KNOWN.get(sign) ?? (sign < "\u0250" ? 0.715 : 1.05);
}

/** The breadth of bold words, in parts of their size. */
export function breadth(text: string): number {
  let sum = 0;
  for (const sign of text) sum += signBreadth(sign);
  return sum;
}

/** A name in lines of some breadth, broken after separators where that is possible. */
export function wrapped(name: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  let used = 0;
  const next = () => {
    if (line) lines.push(line);
    line = "";
    used = 0;
  };
  const add = (part: string, needs: number) => {
    if (used + needs > most) next();
    line += part;
    used += needs;
  };
  for (const piece of pieces(name)) {
    const needs = breadth(piece);
    if (needs <= most) add(piece, needs);
    else {
      // As browsers do: a word is broken only where it has a line to itself.
      next();
      for (const sign of piece) add(sign, signBreadth(sign));
    }
  }
  return [...lines, line];
}
