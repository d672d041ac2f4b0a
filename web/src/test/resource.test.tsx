import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { link, take } from "../lib/live";
import { useResource } from "../lib/resource";

let answers: (Response | Error)[] = [];
let asked = 0;

beforeEach(() => {
  vi.useFakeTimers();
  asked = 0;
  link.set("live");
  vi.stubGlobal("fetch", async () => {
    const answer = answers[Math.min(asked++, answers.length - 1)];
    if (answer instanceof Error) throw answer;
    return answer?.clone();
  });
});

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status });
}

function Shown({ path, concerns }: { path: string; concerns?: () => boolean }) {
  const { data, error } = useResource<{ value: number }>(path, concerns);
  return (
    <p>
      {data?.value ?? "nothing"} {error ? error.message : "fine"}
    </p>
  );
}

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

test("what fails for a reason that passes is asked for again", async () => {
  answers = [json({ message: "broken" }, 500), new TypeError("reset"), json({ value: 7 })];
  render(<Shown path="/again" />);
  await pass(10);
  screen.getByText("nothing broken");
  await pass(1_300);
  screen.getByText("nothing the server does not answer");
  await pass(2_600);
  screen.getByText("7 fine");
  await pass(60_000);
  expect(asked).toBe(3);
});

test("what is refused is not asked for again", async () => {
  answers = [json({ message: "no such job" }, 404)];
  render(<Shown path="/refused" />);
  await pass(60_000);
  screen.getByText("nothing no such job");
  expect(asked).toBe(1);
});

test("what was known stays while the server is away", async () => {
  answers = [json({ value: 1 }), json({ message: "away" }, 503), json({ value: 2 })];
  render(<Shown path="/kept" concerns={() => true} />);
  await pass(10);
  take({ id: "1", event: "run", data: "{}" });
  await pass(1_400);
  screen.getByText("1 away");
  await pass(1_400);
  screen.getByText("2 fine");
});

test("what changed before the stream was open is asked for once it is", async () => {
  link.set("connecting");
  answers = [json({ value: 1 }), json({ value: 2 })];
  render(<Shown path="/deaf" concerns={() => false} />);
  await pass(10);
  screen.getByText("1 fine");
  act(() => link.set("live"));
  await pass(1_100);
  screen.getByText("2 fine");
  await pass(60_000);
  expect(asked).toBe(2);
});
