import { authorization } from "./api";
import { root } from "./root";
import { settings } from "./settings";
import { type Message, Parser } from "./sse";
import { Store } from "./store";

export type Link = "connecting" | "live" | "lost" | "denied";

export interface Change {
  kind: string;
  data: Record<string, unknown>;
  at: number;
}

const QUIET = 40_000;
const FLUSH = 250;
const LONGEST = 8_000;
const KEPT = 100;
/** Kinds that parts of the page ask again for, and that are no news of a job or a dataset. */
const UNSHOWN = ["flow", "alerts"];

/** How the stream stands. */
export const link = new Store<Link>("connecting");
/** Counts the times when everything may be out of date: after a gap that cannot be made up. */
export const epoch = new Store(0);
/** The newest changes, the newest first. */
export const feed = new Store<Change[]>([]);

type Listener = (changes: Change[]) => void;
const listeners = new Set<Listener>();
let last = "";
let waiting: Change[] = [];
let planned = false;

export function onChanges(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function flush(): void {
  planned = false;
  const changes = waiting;
  waiting = [];
  const shown = changes.filter((change) => !UNSHOWN.includes(change.kind));
  if (shown.length > 0) feed.set([...shown.reverse(), ...feed.get()].slice(0, KEPT));
  for (const listener of listeners) listener(changes);
}

/** Changes go out a few times a second, however fast they come in. */
export function take(message: Message): void {
  if (message.id) last = message.id;
  if (message.event === "reset") {
    epoch.set(epoch.get() + 1);
    return;
  }
  try {
    waiting.push({ kind: message.event, data: JSON.parse(message.data), at: Date.now() });
  } catch {
    return;
  }
  if (planned) return;
  planned = true;
  setTimeout(flush, FLUSH);
}

async function once(signal: AbortSignal): Promise<void> {
  const resume: Record<string, string> = last ? { "last-event-id": last } : {};
  const response = await fetch(`${root}/api/v2/live`, {
    signal,
    headers: { accept: "text/event-stream", ...authorization(), ...resume },
  });
  if (response.status === 401 || response.status === 403) {
    link.set("denied");
    return;
  }
  if (!response.ok || !response.body) throw new Error(`HTTP ${response.status}`);
  const again = link.get() === "lost";
  link.set("live");
  // What changed while nobody listened is told again from the last id; the rest is asked anew.
  if (again) epoch.set(epoch.get() + 1);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new Parser();
  for (;;) {
    let quiet: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<never>((_, reject) => {
      quiet = setTimeout(() => reject(new Error("silent")), QUIET);
    });
    const { done, value } = await Promise.race([reader.read(), silence]).finally(() =>
      clearTimeout(quiet),
    );
    if (done) throw new Error("ended");
    for (const message of parser.take(value)) take(message);
  }
}

let stop: AbortController | undefined;

async function run(signal: AbortSignal): Promise<void> {
  let pause = 500;
  while (!signal.aborted) {
    const began = Date.now();
    const attempt = new AbortController();
    const end = () => attempt.abort();
    signal.addEventListener("abort", end);
    try {
      await once(attempt.signal);
    } catch {
      if (signal.aborted) return;
      link.set("lost");
    } finally {
      signal.removeEventListener("abort", end);
      attempt.abort();
    }
    if (link.get() === "denied") return;
    pause = Date.now() - began > 10_000 ? 500 : Math.min(LONGEST, pause * 2);
    await new Promise((resolve) => setTimeout(resolve, pause * (0.75 + Math.random() / 2)));
  }
}

/** Open the stream and keep it open; a new token opens it anew. */
export function follow(): void {
  let token = settings.get().token;
  const start = () => {
    stop?.abort();
    stop = new AbortController();
    link.set("connecting");
    void run(stop.signal);
  };
  start();
  settings.subscribe(() => {
    if (settings.get().token === token) return;
    token = settings.get().token;
    epoch.set(epoch.get() + 1);
    start();
  });
}
