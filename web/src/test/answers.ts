import { vi } from "vitest";

/** What was asked of the server in place of which this answers, newest last. */
export interface Asked {
  method: string;
  path: string;
  body: unknown;
}

/** Answer requests by method and path from a table, as the server would; anything else is not found. */
export function answering(answers: Record<string, unknown>): Asked[] {
  const asked: Asked[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit = {}) => {
    const method = init.method ?? "GET";
    const path = url.split("?")[0] ?? url;
    const body = init.body ? JSON.parse(String(init.body)) : undefined;
    asked.push({ method, path, body });
    const key = method === "GET" ? path : `${method} ${path}`;
    const known = key in answers;
    const answer = known ? answers[key] : { message: "Not found." };
    return new Response(JSON.stringify(answer), { status: known ? 200 : 404 });
  });
  return asked;
}
