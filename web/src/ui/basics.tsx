import { type ReactNode, useEffect, useState } from "react";
import { type ApiError, authorization } from "../lib/api";
import { ago, clock } from "../lib/format";
import { datasetUrl, jobUrl } from "../lib/names";
import { root } from "../lib/root";
import { Link } from "../lib/router";
import { settings } from "../lib/settings";
import { shown } from "../lib/shown";
import { Store, useStore } from "../lib/store";
import { breakable } from "./breakable";
import { Icon, type IconName } from "./icons";

const second = new Store(Date.now());
setInterval(() => second.set(Date.now()), 5_000);

/** A moment as the time since, the full time on hover and for screen readers. */
export function Ago({
  time,
  none = "never",
  words = ago,
}: {
  time: string | number | null | undefined;
  none?: string;
  /** Whether it is how long ago, or for how long. */
  words?: typeof ago;
}) {
  const now = useStore(second);
  if (time === null || time === undefined) return <span className="muted">{none}</span>;
  const iso = typeof time === "number" ? new Date(time).toISOString() : time;
  return (
    <time dateTime={iso} title={clock(time)}>
      {words(time, Math.max(now, Date.now() - 4_000))}
    </time>
  );
}

/** The address of the JSON that a part of the page was drawn from. */
export function Json({ path }: { path: string | null }) {
  const { token } = useStore(settings);
  if (!path) return null;
  async function open(): Promise<void> {
    const response = await fetch(root + path, { headers: authorization() });
    const url = URL.createObjectURL(await response.blob());
    window.open(url, "_blank", "noopener");
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }
  return (
    <a
      className="json-link"
      href={root + path}
      target="_blank"
      rel="noreferrer"
      title={`GET ${path}`}
      onClick={(event) => {
        if (!token) return;
        event.preventDefault();
        void open();
      }}
    >
      JSON<span className="sr"> of this part, from the API</span>
    </a>
  );
}

interface PanelProps {
  title: string;
  json?: string | null;
  aside?: ReactNode;
  className?: string;
  children: ReactNode;
}

export function Panel({ title, json, aside, className = "", children }: PanelProps) {
  return (
    <section className={`panel ${className}`} aria-label={title}>
      <header className="panel-head">
        <h2>{title}</h2>
        <div className="panel-aside">
          {aside}
          {json ? <Json path={json} /> : null}
        </div>
      </header>
      <div className="panel-body">{children}</div>
    </section>
  );
}

/** Says that an answer is not whole because of a token that is limited to namespaces. */
export function Unseen({ count, where = "" }: { count: number; where?: string }) {
  if (count === 0) return null;
  const noun = where ? `${where} job or dataset` : "job or dataset";
  const many = where ? `${where} jobs or datasets` : "jobs or datasets";
  return (
    <p className="muted">
      {count === 1 ? `1 ${noun} is` : `${count} ${many} are`} not visible to this token.
    </p>
  );
}

export function Empty({ icon = "events", children }: { icon?: IconName; children: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} size={22} />
      <div>{children}</div>
    </div>
  );
}

export function Problem({ error, retry }: { error: ApiError; retry?: () => void }) {
  const title =
    error.status === 404
      ? "Not found"
      : error.status === 0
        ? "The server does not answer"
        : error.status === 401 || error.status === 403
          ? "Not allowed"
          : error.status === 400 || error.status === 422
            ? "The server did not understand"
            : "The server could not answer";
  return (
    <div className="problem" role="alert">
      <h2>{title}</h2>
      <p className="wrap">{error.message}</p>
      {error.passing ? <p className="muted">It is tried again by itself.</p> : null}
      {error.nearest.length > 0 ? (
        <>
          <p>Names like it:</p>
          <ul className="uses">
            {error.nearest.map((one) => (
              <li key={`${one.kind}${one.namespace} ${one.name} ${one.field}`}>
                <Link to={one.kind === "job" ? jobUrl(one) : datasetUrl(one)}>
                  {shown(one.field ? `${one.name}.${one.field}` : one.name)}
                </Link>{" "}
                <span className="muted">{shown(one.namespace)}</span>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {error.status === 404 ? (
        <p>
          It may be known under another name: <kbd>/</kbd> searches. <Link to="/">Overview</Link>
        </p>
      ) : null}
      {retry && ![400, 404].includes(error.status) ? (
        <button type="button" className="button" onClick={retry}>
          Try now
        </button>
      ) : null}
    </div>
  );
}

export function Loading({ what = "Loading" }: { what?: string }) {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 300);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="loading" role="status" aria-live="polite">
      {slow ? `${what}…` : ""}
    </div>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  }
  return (
    <button type="button" className="button small quiet" onClick={() => void copy()}>
      <Icon name={done ? "check" : "copy"} size={14} />
      {done ? "Copied" : label}
    </button>
  );
}

export function Tag({ children }: { children: ReactNode }) {
  return <span className="tag">{children}</span>;
}

/** An address that a producer gave: only one of the web becomes a link. */
export function WebLink({ url }: { url: string }) {
  if (!/^https?:\/\//i.test(url)) return <span className="mono wrap">{url}</span>;
  return (
    <a href={url} target="_blank" rel="noreferrer noopener" className="wrap">
      {url.replace(/^https?:\/\//i, "")}
    </a>
  );
}

export function CloseButton({ close }: { close: () => void }) {
  return (
    <button type="button" className="button icon-only quiet" aria-label="Close" onClick={close}>
      <Icon name="close" />
    </button>
  );
}

interface PageTitleProps {
  kind: { icon: IconName; label: string };
  of: { namespace: string; name: string; description?: string | null };
  children: ReactNode;
}

/** The top of a job's or a dataset's page: its kind, its name, and what can be done with it. */
export function PageTitle({ kind, of, children }: PageTitleProps) {
  return (
    <div className="page-title">
      <div>
        <p className="crumb">
          <Icon name={kind.icon} size={16} /> {kind.label} in{" "}
          <span className="mono">{of.namespace}</span>
        </p>
        <h1 className="wrap">{breakable(of.name)}</h1>
        {of.description ? <p className="lead wrap">{of.description}</p> : null}
      </div>
      <div className="page-actions">{children}</div>
    </div>
  );
}
