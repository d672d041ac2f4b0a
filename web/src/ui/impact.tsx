import { useEffect, useId, useState } from "react";
import { ApiError, postJson } from "../lib/api";
import { plural } from "../lib/format";
import { jobUrl, ShownNames } from "../lib/names";
import { Link, usePlace } from "../lib/router";
import type {
  ImpactAnswer,
  ImpactColumn,
  ImpactEffect,
  ImpactStep,
  PlannedChange,
} from "../lib/types";
import { Problem, Unseen } from "./basics";
import { breakable } from "./breakable";

const ROUTE = "/api/v2/impact";
const SHOWN = 30;
const NAMED = 5;

/** What each effect means, the worst first. */
export const EFFECTS: [ImpactEffect, string][] = [
  ["breaks", "names what goes, or cannot take its new type"],
  ["unknown", "nobody can tell: it may break"],
  ["changes", "reads what a job before it derives, or takes the new type"],
  ["rows", "reads or holds other rows"],
  ["carries", "hands the change on"],
];

/** A change as an address holds it. */
export function written(node: string, change: PlannedChange): string {
  return new URLSearchParams({ node, ...change }).toString();
}

export function readChange(text: string | null): { node: string; change: PlannedChange } | null {
  const parts = new URLSearchParams(text ?? "");
  const node = parts.get("node");
  const kind = ["drop", "rename", "type", "delete"].find((one) => one === parts.get("kind"));
  if (!node || !kind) return null;
  return {
    node,
    change: {
      kind: kind as PlannedChange["kind"],
      column: parts.get("column") ?? "",
      to: parts.get("to") ?? "",
    },
  };
}

export interface Asked {
  answer: ImpactAnswer | undefined;
  error: ApiError | undefined;
}

/** Who is hit by a change; nothing while none was chosen. */
export function useImpact(node: string | null, change: PlannedChange | null): Asked {
  const [asked, setAsked] = useState<Asked>({ answer: undefined, error: undefined });
  const key = node && change ? written(node, change) : "";
  useEffect(() => {
    setAsked({ answer: undefined, error: undefined });
    const read = readChange(key);
    if (!read) return;
    const stop = new AbortController();
    const body = { node: read.node, changes: [read.change] };
    postJson<ImpactAnswer>(ROUTE, body, stop.signal).then(
      (answer) => setAsked({ answer, error: undefined }),
      (error: unknown) => {
        if (error instanceof ApiError) setAsked({ answer: undefined, error });
      },
    );
    return () => stop.abort();
  }, [key]);
  return asked;
}

export function ChangeForm({
  columns,
  chosen,
  marked,
  ask,
}: {
  columns: string[];
  chosen: PlannedChange | null;
  /** The column that the address points at. */
  marked?: string | null;
  ask: (change: PlannedChange) => void;
}) {
  const id = useId();
  const [kind, setKind] = useState<PlannedChange["kind"]>(chosen?.kind ?? "drop");
  const [picked, setPicked] = useState(chosen?.column ?? "");
  // The columns may come after the form, and must not undo what was chosen by then.
  const pointed = columns.find((name) => name === marked);
  const column = picked || pointed || columns[0] || "";
  const [to, setTo] = useState(chosen?.to ?? "");
  const needs = kind === "rename" || kind === "type";
  const ready = kind === "delete" || (column !== "" && (!needs || to.trim() !== ""));
  return (
    <form
      className="impact-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready)
          ask({
            kind,
            column: kind === "delete" ? "" : column,
            to: needs ? to.trim() : "",
          });
      }}
    >
      <label htmlFor={`${id}-kind`}>
        What if I
        <select
          id={`${id}-kind`}
          value={kind}
          onChange={(event) => setKind(event.target.value as PlannedChange["kind"])}
        >
          <option value="drop">drop</option>
          <option value="rename">rename</option>
          <option value="type">change the type of</option>
          <option value="delete">delete the dataset</option>
        </select>
      </label>
      {kind === "delete" ? null : (
        <label htmlFor={`${id}-column`}>
          column
          <select
            id={`${id}-column`}
            value={column}
            onChange={(event) => setPicked(event.target.value)}
          >
            {columns.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {needs ? (
        <label htmlFor={`${id}-to`}>
          to
          <input
            id={`${id}-to`}
            value={to}
            placeholder={kind === "type" ? "string" : "new_name"}
            onChange={(event) => setTo(event.target.value)}
          />
        </label>
      ) : null}
      <button type="submit" className="button" disabled={!ready}>
        Who is hit?
      </button>
    </form>
  );
}

function namesIn(answer: ImpactAnswer): ShownNames {
  return new ShownNames([
    ...answer.jobs.flatMap((job) => [
      job.id,
      ...job.stops,
      ...job.path.flatMap((step) => [step.dataset, step.job]),
    ]),
    ...(answer.coverage.columnsUnknown ?? []),
    ...answer.columns.map((one) => one.dataset),
  ]);
}

function place(names: ShownNames, one: { dataset: string; column: string | null }): string {
  const name = names.of(one.dataset);
  return one.column ? `${name}.${one.column}` : name;
}

/** A job on a path, and what becomes of the column there. */
function stepBy(names: ShownNames, { job, transformations = [] }: ImpactStep): string {
  const how = transformations.map((one) => (one.subtype ?? one.type ?? "").toLowerCase());
  return names.of(job) + (how.length > 0 ? ` (${how.join(", ")})` : "");
}

/** What the producers on a path know it from, each kind of evidence once. */
function knownFrom(path: ImpactStep[]): string {
  const kinds = path.flatMap((step) =>
    (step.evidence ?? []).map((one) => `${one.source} (${one.observed ? "observed" : "derived"})`),
  );
  return [...new Set(kinds)].join(", ");
}

/** The jobs whose columns nobody reports, some of them by name. */
function blind(names: ShownNames, jobs: string[] = []): string {
  if (jobs.length === 0) return "";
  const more = jobs.length > NAMED ? ` and ${jobs.length - NAMED} more` : "";
  const named = jobs.slice(0, NAMED).map((job) => names.of(job));
  return `, not those of ${named.join(", ")}${more}`;
}

function Columns({ columns, names }: { columns: ImpactColumn[]; names: ShownNames }) {
  return (
    <section aria-label="Columns hit">
      <h3>Columns and rows</h3>
      <ul className="impact-columns">
        {EFFECTS.map(([effect]) => {
          const some = columns.filter((one) => one.effect === effect);
          return some.length > 0 ? (
            <li key={effect}>
              <span className={`effect effect-${effect}`}>{effect}</span>{" "}
              <span className="mono wrap">
                {some
                  .slice(0, SHOWN)
                  .map((one) => place(names, one))
                  .join(", ")}
              </span>
              {some.length > SHOWN ? ` and ${some.length - SHOWN} more` : ""}
            </li>
          ) : null;
        })}
      </ul>
    </section>
  );
}

/** Who is hit, the worst first, and how much of it is known. */
export function Hits({ answer }: { answer: ImpactAnswer }) {
  const { coverage, counts } = answer;
  const names = namesIn(answer);
  return (
    <div className="impact" aria-live="polite">
      {answer.jobs.length === 0 ? <p>No job that is known to read it is hit.</p> : null}
      {EFFECTS.map(([effect, means]) => {
        const jobs = answer.jobs.filter((job) => job.effect === effect);
        return jobs.length > 0 ? (
          <section key={effect} aria-label={effect}>
            <h3>
              <span className={`effect effect-${effect}`}>{effect}</span>{" "}
              <span className="muted">{means}</span>
            </h3>
            <ul className="impact-jobs">
              {jobs.slice(0, SHOWN).map((job) => (
                <li key={job.id}>
                  <Link to={jobUrl(job)} className="wrap">
                    {breakable(names.of(job.id, job.name))}
                  </Link>{" "}
                  <span className="wrap">{job.why}</span>
                  {job.owners.length > 0 ? (
                    <span className="muted">
                      {" "}
                      owned by {job.owners.map((o) => o.name).join(", ")}
                    </span>
                  ) : null}
                  {job.path.length > 0 ? (
                    <p className="muted mono wrap">
                      {job.path
                        .map((step) => `${place(names, step)} → ${stepBy(names, step)}`)
                        .join(" → ")}
                    </p>
                  ) : null}
                  {knownFrom(job.path) ? (
                    <p className="muted wrap">known from {knownFrom(job.path)}</p>
                  ) : null}
                  {job.stops.length > 0 ? (
                    <p className="muted wrap">
                      writes {job.stops.map((one) => names.of(one)).join(", ")}
                    </p>
                  ) : null}
                </li>
              ))}
            </ul>
            {jobs.length > SHOWN ? <p className="muted">and {jobs.length - SHOWN} more</p> : null}
          </section>
        ) : null;
      })}
      {answer.columns.length > 0 ? <Columns columns={answer.columns} names={names} /> : null}
      <p className="muted">
        {plural(coverage.jobs, "job")} looked at, the columns of {coverage.columnsKnown} are known
        {blind(names, coverage.columnsUnknown)}; {counts.unaffected} unaffected, {counts.unknown}{" "}
        unknown
        {answer.truncated ? "; the answer was cut, there is more behind" : ""}.
      </p>
      <Unseen count={coverage.hidden} where="downstream" />
    </div>
  );
}

/** Choose a change of a dataset, and see who is hit. */
export function Impact({
  node,
  columns,
  change,
  ask,
}: {
  node: string;
  columns: string[];
  change: PlannedChange | null;
  ask: (change: PlannedChange) => void;
}) {
  const { answer, error } = useImpact(node, change);
  const marked = usePlace().query.get("column");
  return (
    <>
      <ChangeForm columns={columns} chosen={change} marked={marked} ask={ask} />
      {error ? <Problem error={error} /> : null}
      {answer ? <Hits answer={answer} /> : null}
    </>
  );
}
