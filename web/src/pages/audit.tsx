import { useEffect, useRef, useState } from "react";
import { ApiError, apiPath, getText, segments } from "../lib/api";
import { momentOf } from "../lib/format";
import { auditUrl, datasetUrl } from "../lib/names";
import { Link, usePlace } from "../lib/router";
import type { Named } from "../lib/types";
import { Loading, PageTitle, Panel, Problem } from "../ui/basics";
import { Moment } from "../ui/moment";

const STYLE = /<style>([\s\S]*?)<\/style>/;
const MONTH = 30 * 86_400_000;

/** A time of an address as the pickers have it; one that cannot be read is this long ago. */
function picked(text: string | null, ago: number): string {
  const now = Date.now();
  return new Date(momentOf(text ?? "", now) || now - ago).toISOString();
}

interface Times {
  from: string;
  to: string;
}

/** A period that can be chosen: at first that of an address, or the last month. */
function usePeriod(query = new URLSearchParams()): [Times, (part: Partial<Times>) => void] {
  const [times, setTimes] = useState(() => ({
    from: picked(query.get("from"), MONTH),
    to: picked(query.get("to"), 0),
  }));
  return [times, (part) => setTimes({ ...times, ...part })];
}

function Choice({
  times,
  choose,
  url,
}: {
  times: Times;
  choose: (part: Partial<Times>) => void;
  url: string;
}) {
  return (
    <div className="audit-form">
      <Moment label="From" value={times.from} pick={(from) => choose({ from })} />
      <Moment label="to" value={times.to} pick={(to) => choose({ to })} />
      <Link className="button" to={url}>
        Open the report
      </Link>
    </div>
  );
}

/** Choose a period, and open the report on it. */
export function AuditPanel({ dataset, path }: { dataset: Named; path: string }) {
  const [times, choose] = usePeriod();
  return (
    <Panel title="Audit" json={apiPath(`${path}/audit`, { ...times })}>
      <p className="muted">
        Where the data came from, every run, configuration, schema and code that touched it in a
        period, and who had it.
      </p>
      <Choice times={times} choose={choose} url={auditUrl(dataset, { ...times })} />
    </Panel>
  );
}

/** Another period for a report that is open, or that its address kept from opening. */
function Another({ dataset, query }: { dataset: Named; query: URLSearchParams }) {
  const [times, choose] = usePeriod(query);
  const column = query.get("column");
  const url = auditUrl(dataset, { ...(column ? { column } : {}), ...times });
  return <Choice times={times} choose={choose} url={url} />;
}

/**
 * The server's report, white when it is printed. It is parsed, which runs nothing, and stands in a tree of its
 * own, where its styles and those of the page do not meet.
 */
function Paper({ html }: { html: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const root = place.current.shadowRoot ?? place.current.attachShadow({ mode: "open" });
    // The page's policy allows no style element, not even where nothing is drawn.
    const [style = "", css = ""] = STYLE.exec(html) ?? [];
    const report = new DOMParser().parseFromString(html.replace(style, ""), "text/html");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    root.adoptedStyleSheets = [sheet];
    root.replaceChildren(...report.body.childNodes);
  }, [html]);
  return <div className="audit-paper" ref={place} />;
}

function save(html: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  link.download = `audit ${name}.html`.replace(/[^\p{L}\p{N}._ -]/gu, "_").slice(0, 120);
  link.click();
  URL.revokeObjectURL(link.href);
}

/** The report on one dataset or column and one period, at an address of its own. */
export function AuditPage({ dataset }: { dataset: Named }) {
  const { query } = usePlace();
  const path = apiPath(
    `/api/v2/datasets/${segments(dataset.namespace, dataset.name)}/audit/report`,
    { column: query.get("column"), from: query.get("from"), to: query.get("to") },
  );
  const [found, setFound] = useState<{ path: string; html?: string; error?: ApiError }>();
  useEffect(() => {
    const stop = new AbortController();
    getText(path, stop.signal).then(
      (html) => setFound({ path, html }),
      (error) => {
        if (error instanceof ApiError) setFound({ path, error });
      },
    );
    return () => stop.abort();
  }, [path]);
  const { html, error } = found?.path === path ? found : {};
  return (
    <div className="page">
      <PageTitle kind={{ icon: "table", label: "Audit of a dataset" }} of={dataset}>
        <Link className="button" to={datasetUrl(dataset)}>
          Back to the dataset
        </Link>
        {html ? (
          <>
            <button type="button" className="button" onClick={() => save(html, dataset.name)}>
              Save as HTML
            </button>
            <button type="button" className="button" onClick={() => window.print()}>
              Print
            </button>
          </>
        ) : null}
      </PageTitle>
      <Another key={path} dataset={dataset} query={query} />
      {error ? <Problem error={error} /> : html ? <Paper html={html} /> : <Loading />}
    </div>
  );
}
