import { useReactFlow, useStore, type Viewport } from "@xyflow/react";
import { useEffect, useRef } from "react";
import { ownerOf, type Size, sight, within } from "./fit";
import type { Laid } from "./layout";

interface Asked {
  /** The node that the view is about. */
  anchor: string | null;
  selected: string | null;
  column: string | null;
}

function moved(from: Viewport, to: Viewport): boolean {
  return (["x", "y", "zoom"] as const).some((key) => Math.abs(from[key] - to[key]) > 0.001);
}

/** Show what matters of each new view, and keep it in sight until somebody looks elsewhere. */
export function useSight(laid: Laid, { anchor, selected, column }: Asked): Size {
  const flow = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const { model, places, view } = laid;
  const fitted = useRef<{ view: string; at: Viewport }>(undefined);

  // biome-ignore lint/correctness/useExhaustiveDependencies: states and words alone move nothing
  useEffect(() => {
    if (width === 0 || height === 0 || model.boxes.length === 0) return;
    const before = fitted.current;
    // As long as nobody has moved it, the view follows what comes and goes and the window's size.
    if (before?.view === view && (selected || column || moved(before.at, flow.getViewport())))
      return;
    const at = sight(laid, { width, height }, [ownerOf(column, model), selected, anchor]);
    fitted.current = { view, at };
    void flow.setViewport(at);
  }, [view, places, width, height, flow]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: who has looked away since is left alone
  useEffect(() => {
    const box = model.boxes.find((one) => one.id === selected);
    if (!box || width === 0 || height === 0) return;
    const now = flow.getViewport();
    const at = within(now, { width, height }, box, laid);
    if (at !== now) void flow.setViewport(at);
  }, [selected, width, height, flow]);

  return { width, height };
}
