import { startTransition, useEffect, useState } from "react";
import { layered, type Places, type Shape } from "./layered";
import type { Model } from "./model";

const DEADLINE = 2_500;
const KEPT = 30;
const kept = new Map<string, Places>();

let worker: Worker | undefined;
let ticket = 0;

function open(): Worker {
  worker ??= new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  return worker;
}

export function shapeOf(model: Model): Shape {
  return {
    nodes: model.boxes.map(({ id, width, height }) => ({ id, width, height })),
    edges: model.wires
      .filter((wire) => !wire.returns)
      .map((wire): [string, string] => [wire.source, wire.target]),
    frames: model.frames.map((frame) => frame.members),
    wordy: model.columns.length > 0 || model.wires.some((wire) => wire.back > 0),
  };
}

/** A key of the shape alone: what a box says does not move it. */
export function keyOf(shape: Shape): string {
  const text = [
    ...shape.nodes.map((node) => `${node.id} ${node.width} ${node.height}`),
    ...shape.edges.map((edge) => edge.join("\n")),
    ...shape.frames.map((frame) => frame.join("\n\n")),
    shape.wordy ? "wordy" : "",
  ].join("\0");
  let a = 0x811c9dc5;
  let b = 0x1b873593;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (a >>> 13);
  }
  return `${text.length}.${(a >>> 0).toString(36)}.${(b >>> 0).toString(36)}`;
}

/** Ask the worker; when it is too slow or broken, it is ended and a plain layout takes its place. */
export function place(shape: Shape, deadline = DEADLINE): Promise<Places> {
  const mine = ++ticket;
  return new Promise((resolve) => {
    let asked: Worker;
    const finish = (places: Places | undefined) => {
      clearTimeout(timer);
      asked?.removeEventListener("message", heard);
      asked?.removeEventListener("error", failed);
      if (!places) {
        worker?.terminate();
        worker = undefined;
      }
      resolve(places ?? layered(shape));
    };
    const heard = (event: MessageEvent<{ ticket: number; places?: Places }>) => {
      if (event.data.ticket === mine) finish(event.data.places);
    };
    const failed = () => finish(undefined);
    const timer = setTimeout(() => finish(undefined), deadline);
    try {
      asked = open();
      asked.addEventListener("message", heard);
      asked.addEventListener("error", failed);
      asked.postMessage({ ticket: mine, shape });
    } catch {
      finish(undefined);
    }
  });
}

export interface Laid {
  model: Model;
  places: Places;
  /** Another value means another view: the window is then fitted to it. */
  view: string;
}

/** A model with its places; until they are known, the one before stays. */
export function useLayout(model: Model | undefined, view: string): Laid | undefined {
  const [laid, setLaid] = useState<Laid>();
  useEffect(() => {
    if (!model) return;
    const shape = shapeOf(model);
    const key = keyOf(shape);
    const known = kept.get(key);
    if (known) {
      startTransition(() => setLaid({ model, places: known, view }));
      return;
    }
    let current = true;
    void place(shape).then((places) => {
      kept.set(key, places);
      if (kept.size > KEPT) kept.delete(kept.keys().next().value ?? "");
      if (current) startTransition(() => setLaid({ model, places, view }));
    });
    return () => {
      current = false;
    };
  }, [model, view]);
  return laid;
}
