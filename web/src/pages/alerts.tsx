import { plural } from "../lib/format";
import { nodeUrl } from "../lib/names";
import { Link } from "../lib/router";
import type { Incident, Overview } from "../lib/types";
import { Ago, Panel } from "../ui/basics";
import { Rows } from "../ui/lists";

function Reached({ incident }: { incident: Incident }) {
  const { datasets, jobs, more } = incident.affected;
  if (datasets + jobs === 0) return null;
  return (
    <p className="row-note">
      {more ? "at least " : ""}
      {[datasets > 0 ? plural(datasets, "dataset") : "", jobs > 0 ? plural(jobs, "job") : ""]
        .filter(Boolean)
        .join(" and ")}{" "}
      downstream
    </p>
  );
}

function Sent({ incident }: { incident: Incident }) {
  const unsent = incident.deliveries.filter((one) => one.state !== "sent");
  return unsent.map((one) => (
    <p className="row-late wrap" key={`${one.channel} ${one.message}`}>
      {one.state === "waiting" ? "Not sent yet to" : "Given up sending to"} {one.channel}
      {one.error ? `: ${one.error}` : ""}
    </p>
  ));
}

/** The open incidents of the server's alert rules; nothing where it has neither. */
export function Alerts({ alerts }: { alerts: Overview["alerts"] }) {
  const { open, rules, truncated } = alerts;
  if (rules === 0 && open.length === 0) return null;
  return (
    <Panel
      title="Open incidents"
      json="/api/v2/alerts"
      aside={<span className="muted">{plural(rules, "alert rule")}</span>}
    >
      {open.length === 0 ? (
        <p className="muted">None is open.</p>
      ) : (
        <Rows label="Open incidents">
          {open.map((incident) => (
            <li className="row" key={incident.id}>
              <div className="row-main">
                {incident.subject.type === "namespace" ? (
                  <span className="row-name">{incident.title}</span>
                ) : (
                  <Link
                    to={nodeUrl(incident.subject.type, incident.subject)}
                    className="row-name"
                    data-row
                  >
                    {incident.title}
                  </Link>
                )}
                <div className="row-sub">
                  <span>{incident.rules.join(", ")}</span>
                  <span className="mono">{incident.subject.namespace}</span>
                </div>
                {incident.detail ? <p className="row-error wrap">{incident.detail}</p> : null}
                <Reached incident={incident} />
                <Sent incident={incident} />
              </div>
              <div className="row-end">
                <span className="muted">
                  <Ago time={incident.since} />
                </span>
              </div>
            </li>
          ))}
          {truncated ? <li className="row muted">More are open: headwater alerts list.</li> : null}
        </Rows>
      )}
    </Panel>
  );
}
