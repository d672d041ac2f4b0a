import { link } from "../lib/live";
import { root } from "../lib/root";
import { useStore } from "../lib/store";
import { Code } from "../ui/code";
import { Icon } from "../ui/icons";

function commands(origin: string): { name: string; about: string; text: string }[] {
  const run = crypto.randomUUID?.() ?? "0190a5b6-3b1e-4000-8000-000000000000";
  // Clients take the last part of an address without a slash at its end for a file.
  const url = root ? `${origin}/` : origin;
  return [
    {
      name: "Kafka Connect",
      about: "Watch a Connect cluster from outside; nothing is installed on it.",
      text: `export OPENLINEAGE_URL=${url}\nheadwater connect watch --url http://CONNECT:8083 --kafka-bootstrap BROKER:9092`,
    },
    {
      name: "PySpark",
      about: "Batch and Structured Streaming, from the driver, without a jar.",
      text: `export OPENLINEAGE_URL=${url}\nheadwater spark run job.py`,
    },
    {
      name: "curl",
      about: "Any OpenLineage event will do; this is the smallest that draws an edge.",
      text: `curl ${origin}/api/v1/lineage -d '{
  "eventType": "START", "eventTime": "${new Date().toISOString()}",
  "run": {"runId": "${run}"},
  "job": {"namespace": "first", "name": "hello"},
  "inputs": [{"namespace": "kafka://broker:9092", "name": "orders"}],
  "outputs": [{"namespace": "s3://lake", "name": "orders"}]}'`,
    },
  ];
}

/** Before the first event: how to send one. The page that shows it turns into the graph. */
export function FirstRun() {
  const state = useStore(link);
  return (
    <div className="page narrow first-run">
      <h1>Nothing has reported yet</h1>
      <p className="lead">
        Headwater draws what your jobs tell. Send the first event in one of these ways; the graph
        opens here by itself when it arrives.
      </p>
      <div className="ways">
        {commands(window.location.origin + root).map((way) => (
          <section key={way.name} className="way" aria-label={way.name}>
            <h2>{way.name}</h2>
            <p className="muted">{way.about}</p>
            <Code text={way.text} label={`${way.name}: what to run`} />
          </section>
        ))}
      </div>
      <p className="waiting" role="status">
        <Icon name="wave" />
        {state === "live" ? "Waiting for the first event" : "Connecting to the server"}
      </p>
    </div>
  );
}
