import type { AnchorHTMLAttributes, MouseEvent, ReactNode } from "react";
import { useSyncExternalStore } from "react";
import { below, root } from "./root";

/** Real addresses by the history API: every view can be shared, and Back goes back. */

export interface Place {
  /** The decoded parts of the path: names may hold slashes, which travel encoded. */
  parts: string[];
  query: URLSearchParams;
  href: string;
}

const listeners = new Set<() => void>();
let place = read();

function read(): Place {
  const { search } = window.location;
  const pathname = below(window.location.pathname);
  const parts = pathname.split("/").filter(Boolean).map(decode);
  return { parts, query: new URLSearchParams(search), href: pathname + search };
}

function decode(text: string): string {
  if (text === ".;" || text === "..;") return text.slice(0, -1);
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function moved(): void {
  place = read();
  for (const listener of [...listeners]) listener();
}

window.addEventListener("popstate", moved);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function here(): Place {
  return place;
}

export function usePlace(): Place {
  return useSyncExternalStore(subscribe, here);
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
  if (to === place.href) return;
  if (options.replace) history.replaceState(null, "", root + to);
  else history.pushState(null, "", root + to);
  moved();
  if (!options.replace) window.scrollTo(0, 0);
}

/** The present address with some query parameters changed; null takes one away. */
export function withQuery(changes: Record<string, string | null>): string {
  const query = new URLSearchParams(place.query);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  return below(window.location.pathname) + (text ? `?${text}` : "");
}

interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  to: string;
  children: ReactNode;
}

export function Link({ to, onClick, children, ...rest }: LinkProps) {
  function click(event: MouseEvent<HTMLAnchorElement>): void {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  }
  return (
    <a href={root + to} onClick={click} {...rest}>
      {children}
    </a>
  );
}
