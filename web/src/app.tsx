import { lazy, Suspense, useEffect } from "react";
import { link } from "./lib/live";
import { usePlace } from "./lib/router";
import { useStore } from "./lib/store";
import { ConnectorsPage } from "./pages/connectors";
import { DatasetPage } from "./pages/dataset";
import { EventsPage } from "./pages/events";
import { JobPage } from "./pages/job";
import { NotFound } from "./pages/notfound";
import { OverviewPage } from "./pages/overview";
import { RunPage } from "./pages/run";
import { SettingsPage, TokenForm } from "./pages/settings";
import { Loading } from "./ui/basics";
import { Shell } from "./ui/shell";

const GraphPage = lazy(() => import("./pages/graph"));

const TITLES: Record<string, string> = {
  graph: "Graph",
  connectors: "Connectors",
  events: "Events",
  settings: "Settings",
};

function Page({ parts }: { parts: string[] }) {
  const [first = "", second, third] = parts;
  if (parts.length === 0) return <OverviewPage />;
  if (parts.length === 1) {
    switch (first) {
      case "graph":
        return <GraphPage />;
      case "connectors":
        return <ConnectorsPage />;
      case "events":
        return <EventsPage />;
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
  return <NotFound />;
}

export function App() {
  const { parts } = usePlace();
  const denied = useStore(link) === "denied";
  const title = parts.length > 1 ? (parts.at(-1) ?? "") : (TITLES[parts[0] ?? ""] ?? "Overview");
  useEffect(() => {
    document.title = `${title} · Headwater`;
  }, [title]);
  return (
    <Shell wide={parts[0] === "graph" && !denied}>
      {denied && parts[0] !== "settings" ? (
        <TokenForm />
      ) : (
        <Suspense fallback={<Loading />}>
          <Page parts={parts} />
        </Suspense>
      )}
    </Shell>
  );
}
