import { useEffect, useRef, useState } from "react";
import { ApiError, apiPath, getText, segments } from "../lib/api";
import { auditUrl, datasetUrl } from "../lib/names";
import { Link, usePlace } from "../lib/router";
import type { Named } from "../lib/types";
import { Loading, PageTitle, Panel, Problem } from "../ui/basics";
import { Moment } from "../ui/moment";

const STYLE = /<style>([\s\S]*?)<\/style>/;
const MONTH = 30 * 86_400_000;

/** Choose a period, and open the report on it. */
export function AuditPanel({ dataset, path }: { dataset: Named; path: string }) {
  const [from, setFrom] = useState(() => new Date(Date.now() - MONTH).toISOString());
  const [to, setTo] = useState(() => new Date().toISOString());
  return (
    <Panel title="Audit" json={apiPath(`${path}/audit`, { from, to })}>
      <p className="muted">
        Where the data came from, every run, configuration, schema and code that touched it in a
        period, and who had it.
      </p>
      <div className="audit-form">
        <Moment label="From" value={from} pick={setFrom} />
        <Moment label="to" value={to} pick={setTo} />
        <Link className="button" to={auditUrl(dataset, { from, to })}>
          Open the report
        </Link>
      </div>
    </Panel>
  );
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
      {error ? <Problem error={error} /> : html ? <Paper html={html} /> : <Loading />}
    </div>
  );
}
