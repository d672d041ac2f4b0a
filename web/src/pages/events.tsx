import { memo, startTransition, useCallback, useEffect, useRef, useState } from "react";
import { ApiError, apiPath, getJson } from "../lib/api";
import { clock, shortRun } from "../lib/format";
import { onChanges } from "../lib/live";
import { jobUrl, runUrl } from "../lib/names";
import { Link, navigate, usePlace, withQuery } from "../lib/router";
import type { LogRecord, Overview } from "../lib/types";
import { Ago, Empty, Json, Loading, Problem } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { Code } from "../ui/code";
import { Icon } from "../ui/icons";
import { count } from "../ui/plot";

const SHOWN = 300;
const PAGE = 100;

interface Line {
  type: string;
  job: { namespace: string; name: string } | null;
  run: string | null;
  what: string;
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function names(value: unknown): string {
  return Array.isArray(value) ? value.map((one) => String(object(one).name ?? "")).join(", ") : "";
}

export function readRecord(record: LogRecord): Line {
  const event = record.event;
  if (!event) {
    const command = record.command ?? {};
    return { type: "COMMAND", job: null, run: null, what: String(command.command ?? "") };
  }
  const job = object(event.job);
  const dataset = object(event.dataset);
  const named = job.name
    ? { namespace: String(job.namespace ?? ""), name: String(job.name) }
    : null;
  const kind = named ? (event.run ? "OTHER" : "JOB") : "DATASET";
  const flow = [names(event.inputs), names(event.outputs)];
  return {
    type: String(event.eventType ?? kind).toUpperCase(),
    job: named,
    run: event.run ? String(object(event.run).runId ?? "") : null,
    what: named
      ? flow[0] || flow[1]
        ? `${flow[0] || "–"} → ${flow[1] || "–"}`
        : ""
      : String(dataset.name ?? ""),
  };
}

/** The end of the log, followed while it grows. */
function useTail(paused: boolean) {
  const [records, setRecords] = useState<LogRecord[]>([]);
  const [error, setError] = useState<ApiError>();
  const [ready, setReady] = useState(false);
  const cursor = useRef(-1);
  const busy = useRef(false);

  const pull = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    try {
      if (cursor.current < 0) {
        const { records: head } = await getJson<Overview>("/api/v2/overview");
        cursor.current = Math.max(0, head - PAGE);
      }
      const path = apiPath("/api/v2/events", { after: cursor.current, limit: PAGE * 2 });
      const page = await getJson<{ records: LogRecord[]; next: number }>(path);
      cursor.current = page.next;
      if (page.records.length > 0)
        startTransition(() =>
          setRecords((before) => [...page.records.reverse(), ...before].slice(0, SHOWN)),
        );
      setError(undefined);
      setReady(true);
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem), ""));
    } finally {
      busy.current = false;
    }
  }, []);

  useEffect(() => {
    void pull();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void pull();
      }, 500);
    };
    if (paused) return;
    // A heartbeat that changes nothing is not told, so the tail also looks by itself.
    const regular = setInterval(soon, 3_000);
    const leave = onChanges(soon);
    return () => {
      leave();
      clearInterval(regular);
      clearTimeout(timer);
    };
  }, [pull, paused]);

  async function older(): Promise<void> {
    const first = records.at(-1)?.seq ?? 0;
    if (first <= 1) return;
    const after = Math.max(0, first - 1 - PAGE);
    const path = apiPath("/api/v2/events", { after, limit: first - 1 - after });
    try {
      const page = await getJson<{ records: LogRecord[] }>(path);
      setRecords((before) => [...before, ...page.records.reverse()]);
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem), path));
    }
  }
  return { records, error, ready, older, pull };
}

const TYPES = ["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER", "COMMAND"];

const read = new WeakMap<LogRecord, Line>();

function lineOf(record: LogRecord): Line {
  const known = read.get(record) ?? readRecord(record);
  read.set(record, known);
  return known;
}

const Row = memo(function Row({ record }: { record: LogRecord }) {
  const line = lineOf(record);
  const [open, setOpen] = useState(false);
  return (
    <li className="event">
      <button
        type="button"
        className="event-toggle"
        aria-expanded={open}
        aria-label={`Record ${record.seq}, raw JSON`}
        onClick={() => setOpen(!open)}
      >
        <Icon name="chevron" size={13} />
        <span className="mono">{record.seq}</span>
      </button>
      <span className={`event-type type-${line.type.toLowerCase()}`}>{line.type}</span>
      <span className="event-job">
        {line.job ? (
          <Link to={jobUrl(line.job)}>{breakable(line.job.name)}</Link>
        ) : (
          <span>{line.what}</span>
        )}
      </span>
      <span className="event-what muted" title={line.what}>
        {line.job ? line.what : ""}
      </span>
      <span className="event-run mono">
        {line.run ? <Link to={runUrl(line.run)}>{shortRun(line.run)}</Link> : ""}
      </span>
      <span className="event-time muted" title={clock(record.receivedAt)}>
        <Ago time={record.receivedAt} />
      </span>
      {open ? (
        <div className="event-raw">
          <Code text={JSON.stringify(record.event ?? record.command, null, 2)} label="Raw record" />
        </div>
      ) : null}
    </li>
  );
});

/** How many records are shown, of those read, and how many older ones are not read. */
export function shownText(shown: number, records: LogRecord[]): string {
  const older = Math.max(0, (records.at(-1)?.seq ?? 1) - 1);
  const read = `${count(shown)} of ${count(records.length)} shown`;
  return older > 0 ? `${read}, up to ${count(older)} older` : read;
}

export function EventsPage() {
  const { query } = usePlace();
  const [paused, setPaused] = useState(false);
  const { records, error, ready, older, pull } = useTail(paused);
  const type = query.get("type") ?? "";
  const text = (query.get("q") ?? "").toLowerCase();
  const shown = records.filter((record) => {
    const line = lineOf(record);
    if (type && line.type !== type) return false;
    if (!text) return true;
    const near = `${line.job?.namespace} ${line.job?.name} ${line.run} ${line.what}`.toLowerCase();
    return (
      near.includes(text) ||
      JSON.stringify(record.event ?? record.command)
        .toLowerCase()
        .includes(text)
    );
  });
  const filter = (part: Record<string, string | null>) =>
    navigate(withQuery(part), { replace: true });
  return (
    <div className="page">
      <div className="page-title">
        <h1>Events</h1>
        <Json path="/api/v2/events" />
      </div>
      <div className="filters">
        <input
          type="search"
          aria-label="Filter by any text"
          placeholder="Filter by any text"
          value={query.get("q") ?? ""}
          onChange={(event) => filter({ q: event.target.value || null })}
        />
        <select
          aria-label="Filter by type"
          value={type}
          onChange={(event) => filter({ type: event.target.value || null })}
        >
          <option value="">All types</option>
          {TYPES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <button
          type="button"
          className="button"
          aria-pressed={paused}
          onClick={() => setPaused(!paused)}
        >
          {paused ? "Follow again" : "Hold"}
        </button>
        <span className="muted" aria-live="polite">
          {shownText(shown.length, records)}
        </span>
      </div>
      {error ? <Problem error={error} retry={() => void pull()} /> : null}
      {!ready && !error ? <Loading /> : null}
      {ready && shown.length === 0 ? (
        <Empty>{records.length === 0 ? "No events yet." : "No event fits the filter."}</Empty>
      ) : null}
      <ol className="events" aria-label="Events, the newest first">
        {shown.map((record) => (
          <Row key={record.seq} record={record} />
        ))}
      </ol>
      {ready && (records.at(-1)?.seq ?? 0) > 1 ? (
        <button type="button" className="button" onClick={() => void older()}>
          Show older
        </button>
      ) : null}
    </div>
  );
}
