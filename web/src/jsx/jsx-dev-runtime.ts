import type { ElementType, Key, ReactElement } from "react";
import { jsx, jsxs } from "./jsx-runtime";

/** The same while developing and in tests, where the compiler asks for it under another name. */

export { Fragment } from "./jsx-runtime";

export function jsxDEV(
  type: ElementType,
  props: Record<string, unknown>,
  key?: Key,
  several?: boolean,
): ReactElement {
  return (several ? jsxs : jsx)(type, props, key);
}
