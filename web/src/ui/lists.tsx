import type { KeyboardEvent, ReactNode } from "react";
import { jobKind } from "../lib/kinds";
import { datasetUrl, jobUrl } from "../lib/names";
import { Link } from "../lib/router";
import type { JobFacts, Named } from "../lib/types";
import { Ago } from "./basics";
import { breakable } from "./breakable";
import { Icon } from "./icons";
import { StateBadge, shownState } from "./state";

/** Arrow keys move between the links of a list, Home and End to its ends. */
export function arrows(event: KeyboardEvent<HTMLElement>): void {
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, Home: -1e6, End: 1e6 };
  const step = steps[event.key];
  if (step === undefined) return;
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("a[data-row]")];
  if (items.length === 0) return;
  const at = items.indexOf(document.activeElement as HTMLElement);
  const next = items[Math.max(0, Math.min(items.length - 1, at + step))];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

export function Rows({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ul className="rows" aria-label={label} onKeyDown={arrows}>
      {children}
    </ul>
  );
}

export function JobRow({ job, children }: { job: JobFacts; children?: ReactNode }) {
  const kind = jobKind(job);
  return (
    <li className="row">
      <span className="row-icon" title={kind.label}>
        <Icon name={kind.icon} />
      </span>
      <div className="row-main">
        <Link to={jobUrl(job)} className="row-name" data-row>
          {breakable(job.name)}
        </Link>
        <div className="row-sub">
          <span>{kind.label}</span>
          <span className="mono">{job.namespace}</span>
        </div>
        {children}
      </div>
      <div className="row-end">
        <StateBadge state={shownState(job)} inferred={job.inferred} />
        <span className="muted">
          <Ago time={job.since} />
        </span>
      </div>
    </li>
  );
}

export function DatasetLink({ dataset, full = false }: { dataset: Named; full?: boolean }) {
  return (
    <Link
      to={datasetUrl(dataset)}
      className="entity"
      title={`${dataset.namespace} ${dataset.name}`}
    >
      {breakable(dataset.name)}
      {full ? <span className="entity-space mono">{breakable(dataset.namespace)}</span> : null}
    </Link>
  );
}

export function JobLink({ job }: { job: Named }) {
  return (
    <Link to={jobUrl(job)} className="entity" title={`${job.namespace} ${job.name}`}>
      {breakable(job.name)}
    </Link>
  );
}

/** What is known, each under its name; what is not takes no room. */
export function Facts({ items }: { items: [string, ReactNode][] }) {
  const known = items.filter(
    ([, value]) => value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
  return (
    <dl className="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
