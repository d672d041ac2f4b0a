import { type ComponentType, lazy, Suspense, useEffect } from "react";
import { link } from "./lib/live";
import { usePlace } from "./lib/router";
import { shown } from "./lib/shown";
import { useStore } from "./lib/store";
import { AnalysisPage } from "./pages/analysis";
import { AuditPage } from "./pages/audit";
import { ConnectorsPage } from "./pages/connectors";
import { DatasetPage } from "./pages/dataset";
import { DoctorPage } from "./pages/doctor";
import { EventsPage } from "./pages/events";
import { JobPage } from "./pages/job";
import { NotFound } from "./pages/notfound";
import { OverviewPage } from "./pages/overview";
import { RunPage } from "./pages/run";
import { SettingsPage, TokenForm } from "./pages/settings";
import { Loading } from "./ui/basics";
import { Boundary } from "./ui/boundary";
import { Shell } from "./ui/shell";

const RELOADED = "headwater.reloaded";

/**
 * The graph's script comes when it is needed. A browser does not ask again for a script that did
 * not come, be it for a broken connection or an updated server, so the page is loaded anew, once.
 */
async function graph(): Promise<{ default: ComponentType }> {
  try {
    return await import("./pages/graph");
  } catch (error) {
    const last = Number(sessionStorage.getItem(RELOADED) ?? 0);
    if (Date.now() - last < 60_000) throw error;
    sessionStorage.setItem(RELOADED, String(Date.now()));
    window.location.reload();
    return new Promise(() => {});
  }
}

const GraphPage = lazy(() => graph());

const TITLES: Record<string, string> = {
  graph: "Graph",
  connectors: "Connectors",
  events: "Events",
  doctor: "Doctor",
  analysis: "Blast radius",
  settings: "Settings",
};

function Page({ parts }: { parts: string[] }) {
  const [first = "", second, third, fourth] = parts;
  if (parts.length === 0) return <OverviewPage />;
  if (parts.length === 1) {
    switch (first) {
      case "graph":
        return <GraphPage />;
      case "connectors":
        return <ConnectorsPage />;
      case "events":
        return <EventsPage />;
      case "doctor":
        return <DoctorPage />;
      case "analysis":
        return <AnalysisPage />;
      case "settings":
        return <SettingsPage />;
    }
  }
  if (first === "runs" && second && parts.length === 2) return <RunPage id={second} />;
  if (second && third && parts.length === 3) {
    const named = { namespace: second, name: third };
    const key = `${second}\n${third}`;
    if (first === "datasets") return <DatasetPage key={key} dataset={named} />;
    if (first === "jobs") return <JobPage key={key} job={named} />;
  }
  if (first === "datasets" && second && third && fourth === "audit" && parts.length === 4)
    return <AuditPage dataset={{ namespace: second, name: third }} />;
  return <NotFound />;
}

export function App() {
  const { parts } = usePlace();
  const denied = useStore(link) === "denied";
  const name = parts.length === 4 ? `${parts[2]}, ${parts[3]}` : parts.at(-1);
  const title = parts.length > 1 ? (name ?? "") : (TITLES[parts[0] ?? ""] ?? "Overview");
  useEffect(() => {
    document.title = `${shown(title)} · Headwater`;
  }, [title]);
  return (
    <Shell wide={parts[0] === "graph" && !denied}>
      {denied && parts[0] !== "settings" ? (
        <TokenForm />
      ) : (
        <Boundary place={parts.join("\n")}>
          <Suspense fallback={<Loading />}>
            <Page parts={parts} />
          </Suspense>
        </Boundary>
      )}
    </Shell>
  );
}
