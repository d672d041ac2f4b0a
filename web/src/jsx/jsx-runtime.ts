import type { ElementType, Key, ReactElement } from "react";
import * as react from "react/jsx-runtime";
import { shown } from "../lib/shown";

/**
 * What every element of the page is made by (see `jsxImportSource` in vite.config.ts): names come
 * from anywhere and stand in hundreds of places, so the marks that turn the direction of writing
 * are shown instead of obeyed in all text and in what is said of it.
 */

export { Fragment } from "react/jsx-runtime";

type Props = Record<string, unknown>;

const TEXTS = ["children", "title", "aria-label"];

function readable(value: unknown): unknown {
  if (typeof value === "string") return shown(value);
  if (!Array.isArray(value)) return value;
  const changed = value.map(readable);
  return changed.every((part, i) => part === value[i]) ? value : changed;
}

function plain(props: Props): Props {
  let result = props;
  for (const key of TEXTS) {
    const value = readable(props[key]);
    if (value !== props[key]) result = { ...result, [key]: value };
  }
  return result;
}

export function jsx(type: ElementType, props: Props, key?: Key): ReactElement {
  return react.jsx(type, plain(props), key);
}

export function jsxs(type: ElementType, props: Props, key?: Key): ReactElement {
  return react.jsxs(type, plain(props), key);
}
