import { root } from "./root";
import { settings } from "./settings";
import type { Named } from "./types";

export interface Near extends Named {
  kind: string;
  /** The column, where it is one. */
  field?: string;
}

export class ApiError extends Error {
  readonly status: number;
  readonly path: string;
  /** Of a name that is not there: what has a name like it. */
  readonly nearest: Near[];

  constructor(status: number, message: string, path: string, nearest: Near[] = []) {
    super(message);
    this.status = status;
    this.path = path;
    this.nearest = nearest;
  }

  /** Whether the same question may get an answer a moment later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export function authorization(): Record<string, string> {
  const { token } = settings.get();
  return token ? { authorization: `Bearer ${token}` } : {};
}

async function call(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(root + path, {
      ...init,
      headers: { accept: "application/json", ...authorization(), ...init.headers },
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "the server does not answer", path);
  }
  if (!response.ok) throw await refusal(response, path);
  return response;
}

async function refusal(response: Response, path: string): Promise<ApiError> {
  let message = `HTTP ${response.status}`;
  let nearest: Near[] = [];
  try {
    const body = (await response.json()) as { message?: unknown; nearest?: unknown };
    if (typeof body.message === "string") message = body.message;
    if (Array.isArray(body.nearest)) nearest = body.nearest as Near[];
  } catch {
    // Not JSON: the status has to do.
  }
  return new ApiError(response.status, message, path, nearest);
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await call(path, signal ? { signal } : {});
  return (await response.json()) as T;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await call(path, signal ? { signal } : {})).text();
}

export async function postJson<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return sendJson("POST", path, body, signal);
}

export async function sendJson<T>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  if (signal) init.signal = signal;
  const response = await call(path, init);
  return (await response.json()) as T;
}

/** An API path with its query; parameters without a value are left out. */
export function apiPath(
  path: string,
  query: Record<string, string | number | boolean | null | undefined> = {},
): string {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "" && value !== false)
      parts.set(key, String(value));
  }
  const text = parts.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Names as parts of an address. Browsers take `.` and `..` out of an address, however encoded; the
 * semicolon, which no encoded name holds, keeps them in.
 */
export function segments(...parts: string[]): string {
  return parts
    .map((part) => (/^\.\.?$/.test(part) ? `${part};` : encodeURIComponent(part)))
    .join("/");
}
