import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { listed } from "../graph/diffside";
import { ApiError } from "../lib/api";
import { shortRun } from "../lib/format";
import type {
  ConnectorPreview,
  DoctorAnswer,
  EdgeChange,
  ImpactAnswer,
  Incident,
  JobFacts,
  LogRecord,
  PlannedChange,
  RankedDatasets,
} from "../lib/types";
import { Alerts } from "../pages/alerts";
import { BlastRadius, Components, Ranking } from "../pages/analysis";
import {
  addressOf,
  Card,
  clusterOf,
  command,
  deploy,
  quoted,
  summary,
  tasks,
} from "../pages/connectors";
import { LastWritten, lastWord, Moves, verdictText } from "../pages/dataset";
import { Doubts, Pairs } from "../pages/doctor";
import { readRecord, shownText } from "../pages/events";
import { Changes } from "../pages/news";
import { difference, Findings, History, how, Propagated } from "../pages/schema";
import { Causes, StaleDataset, Upstream, Why } from "../pages/why";
import { Problem } from "../ui/basics";
import { RawFacets, Sql, Trace, tokens } from "../ui/code";
import { ChangeForm, Hits, readChange, written } from "../ui/impact";
import { JobLink, JobRow, Rows } from "../ui/lists";
import { ceiling, count, Plot } from "../ui/plot";
import { bootstraps, columnsOf, fileFor, Previewed, PreviewPanel } from "../ui/preview";
import { StateBadge } from "../ui/state";
import { answering } from "./answers";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const EVIL = '<img src=x onerror="alert(1)">';

const JOB: JobFacts = {
  id: `job:ns:${EVIL}`,
  kind: "job",
  namespace: EVIL,
  name: EVIL,
  integration: "spark",
  type: "",
  processing: "batch",
  updatedAt: "",
  state: "FAILED",
  planned: null,
  inferred: false,
  run: null,
  since: null,
  error: null,
};

test.each([
  ["RUNNING", "Running"],
  ["COMPLETED", "Completed"],
  ["FAILED", "Failed"],
  ["ABORTED", "Aborted"],
  ["PAUSED", "Paused"],
  ["STOPPED", "Stopped"],
] as const)("%s is told by a word, a shape and a colour", (state, word) => {
  const { container } = render(<StateBadge state={state} />);
  expect(screen.getByText(word).className).toContain(`state-${state.toLowerCase()}`);
  expect(container.querySelector("path")?.getAttribute("d")).toBeTruthy();
});

test("a run that the server gave up on says so", () => {
  render(<StateBadge state="ABORTED" inferred />);
  screen.getByText("Gone silent");
});

test.each([
  ["COMPLETED", "paused", "Paused"],
  ["ABORTED", "stopped", "Stopped"],
  ["ABORTED", null, "Aborted"],
] as const)("a job that is %s and %s reads %s", (state, planned, word) => {
  render(<JobRow job={{ ...JOB, state, planned, inferred: planned !== null }} />);
  expect(screen.getByText(word).className).toBe(`badge state-${word.toLowerCase()}`);
});

test("a job's name may be broken after its separators wherever it leads to the job", () => {
  const name = "stats.overwrite.default_supplier_stats";
  render(<JobLink job={{ namespace: "shop", name }} />);
  const link = screen.getByRole("link");
  expect(link.textContent).toBe(name);
  expect(link.innerHTML).toBe("stats.<wbr>overwrite.<wbr>default_<wbr>supplier_<wbr>stats");
});

test("names are text", () => {
  const { container } = render(
    <Rows label="Jobs">
      <JobRow job={JOB} />
    </Rows>,
  );
  expect(container.querySelector("img")).toBeNull();
  expect(screen.getByRole("link").textContent).toBe(EVIL);
});

test("marks that turn the direction of writing are shown, in texts and what is said of them", () => {
  const name = "report\u202egnp.exe\u2066";
  const { container } = render(
    <p title={name}>
      of {name}, {[name, <b key="b">{name}</b>]}
    </p>,
  );
  const seen = "report\\u202egnp.exe\\u2066";
  expect(container.textContent).toBe(`of ${seen}, ${seen}${seen}`);
  expect(container.querySelector("p")?.title).toBe(seen);
  render(<JobRow job={{ ...JOB, namespace: name, name }} />);
  expect(screen.getByRole("link").textContent).toBe(seen);
  expect(screen.getByRole("link").getAttribute("href")).toContain(encodeURIComponent(name));
});

test("a dataset that moved shows from where, to where and when", () => {
  const { container } = render(
    <Moves
      moves={[
        { from: { namespace: "s3://lake", name: EVIL }, at: "2026-01-01T00:00:20Z" },
        { to: { namespace: "s3://new", name: "orders" }, at: "2026-01-02T00:00:00Z" },
      ]}
    />,
  );
  expect(container.querySelector("img")).toBeNull();
  const [from, to] = [...container.querySelectorAll("li")];
  expect(from?.textContent).toContain(`from ${EVIL}s3://lake`);
  expect(to?.textContent).toContain("to orderss3://new");
  expect(container.querySelectorAll("time").length).toBe(2);
});

test("a tag that came along the data says from where, as text", () => {
  const { container } = render(
    <Propagated
      tagged={{
        tag: EVIL,
        namespace: "s3://lake",
        name: "orders",
        field: "mail",
        set: false,
        path: [
          { name: EVIL, field: "email", jobs: [] },
          { name: "orders", field: "mail", jobs: ["job:shop:copy"] },
        ],
      }}
    />,
  );
  expect(container.querySelector("img")).toBeNull();
  expect(container.textContent).toBe(`${EVIL}from ${EVIL}`);
  expect(container.querySelector(".propagated")?.getAttribute("title")).toBe(
    `propagated: ${EVIL}.email → orders.mail`,
  );
});

test("a disagreement on a schema shows both sides and since when", () => {
  const since = "2026-01-01T00:00:05Z";
  const { container } = render(
    <Findings
      findings={[
        {
          kind: "type",
          since,
          fields: ["id"],
          one: {
            job: { namespace: "jobs", name: EVIL },
            subject: null,
            since,
            fields: [{ name: "id", type: "int" }],
          },
          other: {
            job: null,
            subject: "registry orders-value",
            since,
            fields: [
              { name: "id", type: "long" },
              { name: "a", type: "int" },
            ],
          },
        },
      ]}
    />,
  );
  expect(container.querySelector("img")).toBeNull();
  const [, one, other] = [...container.querySelectorAll("li")];
  expect(one?.textContent).toBe(`${EVIL} id int`);
  expect(other?.textContent).toBe("registry orders-value id long");
  expect(container.textContent).toContain("id: different types");
});

test("facets and traces are text", () => {
  const { container } = render(
    <>
      <RawFacets facets={{ [EVIL]: { value: EVIL } }} />
      <Trace message={EVIL} trace={`${EVIL}\n\tat a.b(C.java:1)\n\tat d.e(F.java:2)`} />
      <Sql text={`SELECT '${EVIL}'`} />
    </>,
  );
  expect(container.querySelector("img")).toBeNull();
  screen.getByText("Stack trace, 3 lines (2 frames)");
});

test("SQL is cut into words that give the same text again", () => {
  const sql = "SELECT a, 'it''s' -- why\nFROM t WHERE n >= 1.5 /* x */";
  const found = tokens(sql);
  expect(found.map((token) => token.text).join("")).toBe(sql);
  expect(found.filter((token) => token.kind === "keyword").map((token) => token.text)).toEqual([
    "SELECT",
    "FROM",
    "WHERE",
  ]);
  expect(found.find((token) => token.kind === "string")?.text).toBe("'it''s'");
});

test("two schemas differ by what came, went and changed", () => {
  const old = [
    { name: "a", type: "int" },
    { name: "b", type: "int" },
  ];
  const fresh = [
    { name: "a", type: "long" },
    { name: "c", type: "int" },
  ];
  expect(difference(old, fresh).map((row) => [row.name, row.kind])).toEqual([
    ["a", "changed"],
    ["c", "added"],
    ["b", "removed"],
  ]);
});

test("the history compares the two newest versions first", () => {
  const versions = [
    { time: "2026-01-02T00:00:00Z", fields: [{ name: "a", type: "int" }] },
    { time: "2026-01-01T00:00:00Z", fields: [] },
  ];
  render(<History versions={versions} />);
  screen.getByText("1 of 1 columns differ");
});

test("how a column comes about is one word", () => {
  const step = { type: "DIRECT", subtype: "AGGREGATION", description: "", masking: false };
  expect(how({ how: [step] })).toBe("aggregation");
  expect(how({ how: [{ ...step, masking: true }] })).toBe("masked");
  expect(how({ how: [{ ...step, masking: true }, step] })).toBe("aggregation");
  expect(how({ how: [] })).toBe("unknown");
});

test("a heartbeat is a report and no write", () => {
  expect(lastWord("heartbeat")).toBe("Last reported");
  expect(["flow", "run", null].map(lastWord)).toEqual(Array(3).fill("Last written"));
});

test("a dataset of which no write was reported is not said to be never written", () => {
  render(<LastWritten time={null} />);
  screen.getByText("not known");
});

test("freshness says that nobody is known to write a dataset, as the command does", () => {
  expect(verdictText("unknown", 0)).toBe("No job that writes it is known");
  expect(verdictText("unknown", 1)).toBe("Not enough writes to say");
});

test("the list of events says how many are not in it", () => {
  const record = { seq: 93, receivedAt: "", event: null } as unknown as LogRecord;
  expect(shownText(4, [record])).toBe("4 of 1 shown, up to 92 older");
  expect(shownText(1, [{ ...record, seq: 1 }])).toBe("1 of 1 shown");
  expect(shownText(0, [])).toBe("0 of 0 shown");
});

test("runs that began together have short ids that differ", () => {
  const [one, other] = ["4dca-7001-8000-00000000000a", "4dcb-7002-8000-00000000000b"];
  expect(shortRun(`01a1ee2d-${one}`)).toBe("…0000000a");
  expect(shortRun(`01a1ee2d-${other}`)).toBe("…0000000b");
  expect(shortRun("01a1")).toBe("01a1");
});

test("what is not there offers names like it", () => {
  const near = [
    { kind: "job", namespace: "shop", name: "orders-sink" },
    { kind: "dataset", namespace: "s3://w", name: "orders" },
  ];
  render(<Problem error={new ApiError(404, "Job 'order-sink' not found.", "", near)} />);
  const links = screen.getAllByRole("link").map((one) => one.getAttribute("href"));
  expect(links.slice(0, 2)).toEqual(["/jobs/shop/orders-sink", "/datasets/s3%3A%2F%2Fw/orders"]);
  cleanup();
  const column = { kind: "column", namespace: "s3://w", name: "orders", field: "amount" };
  render(<Problem error={new ApiError(404, "no column 'amout'", "", [column])} />);
  expect(screen.getAllByRole("link")[0]?.textContent).toBe("orders.amount");
});

test.each([
  [400, "The server did not understand"],
  [422, "The server did not understand"],
  [500, "The server could not answer"],
])("an answer of %i is headed: %s", (status, heading) => {
  render(<Problem error={new ApiError(status, "the configuration has no connector.class", "")} />);
  screen.getByRole("heading", { name: heading });
});

test("of two datasets of one name a change says where each is", () => {
  const end = (namespace: string, name: string) => ({ direction: "input", namespace, name });
  const change = {
    change: "edges",
    time: "2026-01-08T11:00:00Z",
    job: { namespace: "shop", name: "copy" },
    added: [end("s3://a", "report"), end("s3://b", "report"), end("s3://b", "orders")],
    removed: [],
    more: 0,
  } as EdgeChange;
  render(<Changes changes={[change]} />);
  const ends = [...document.querySelectorAll(".change-ends li")].map((one) => one.textContent);
  expect(ends).toEqual(["+reads reports3://a", "+reads reports3://b", "+reads orders"]);
});

test("a schema of one column has one column", () => {
  const fields = [{ name: "a", type: "int", description: null, tags: [] }];
  const version = { time: "2026-01-08T11:00:00Z", fields };
  const { container } = render(<History versions={[version] as never} />);
  expect(container.textContent).toMatch(/, 1 column\.$/);
});

test("a command line survives any name", () => {
  expect(command("pause", "orders-source")).toBe(
    "headwater connect pause orders-source --url http://CONNECT:8083",
  );
  expect(command("delete", "a b'; rm -rf /")).toBe(
    "headwater connect delete 'a b'\\''; rm -rf /' --url http://CONNECT:8083",
  );
  expect(quoted("$HOME")).toBe("'$HOME'");
  expect(command("apply", "x")).toBe("headwater connect apply x.json --url http://CONNECT:8083");
});

test("a command line has the address of its cluster where that is known", () => {
  const address = (report: Record<string, unknown>) =>
    addressOf({ ...JOB, report, failure: null, inputs: [], outputs: [] });
  expect(address({ cluster: "127.0.0.1:20014", workerId: "w:8083" })).toBe("127.0.0.1:20014");
  expect(address({ cluster: "eu", tasks: [{ workerId: "connect-1:8083" }] })).toBe(
    "connect-1:8083",
  );
  expect(address({ cluster: "[::1]:8083" })).toBe("[::1]:8083");
  for (const cluster of ["eu-west", "user:secret@host:1", "x:80;rm", 7])
    expect(address({ cluster })).toBeUndefined();
  expect(command("restart", "x", "127.0.0.1:20014")).toBe(
    "headwater connect restart x --url http://127.0.0.1:20014",
  );
});

test("a connector's card says since when it is in its state, and how to act on it", () => {
  const report = { cluster: "127.0.0.1:20014" };
  const since = new Date(Date.now() - 104_000).toISOString();
  const running = { ...JOB, name: "sink", state: "RUNNING", since } as const;
  render(<Card connector={{ ...running, report, failure: null, inputs: [], outputs: [] }} />);
  const end = screen.getByRole("article", { name: "sink" }).querySelector(".row-end");
  expect(end?.textContent).toMatch(/^Runningfor 1 min 4\d s$/);
  screen.getByText("headwater connect restart sink --url http://127.0.0.1:20014");
});

test("connectors are grouped by their cluster, and by their namespace without one", () => {
  const connector = (report: Record<string, unknown>) => ({
    ...JOB,
    namespace: "shop",
    report,
    failure: null,
    inputs: [],
    outputs: [],
  });
  expect(clusterOf(connector({ cluster: "eu-west" }))).toBe("Cluster eu-west");
  expect(clusterOf(connector({ cluster: 7 }))).toBe("Namespace shop");
  expect(clusterOf(connector({}))).toBe("Namespace shop");
  const two = { tasks: [{ state: "RUNNING" }, { state: "FAILED" }] };
  expect(summary([connector(two), connector({})])).toBe("2 connectors, 2 tasks, 1 failed");
});

test("a preview says what is known of columns, and offers the clusters that are there", () => {
  expect(columnsOf(null)).toBe("columns unknown");
  expect(columnsOf([])).toBe("no columns");
  expect(
    columnsOf([
      ["id", "id"],
      ["price", "total"],
    ]),
  ).toBe("2 columns: id, price → total");
  const many = Array.from({ length: 14 }, (_, n) => [`c${n}`, `c${n}`] as [string, string]);
  expect(columnsOf(many)).toContain(" and 2 more");
  const connector = {
    ...JOB,
    namespace: "shop",
    report: {},
    failure: null,
    inputs: [{ namespace: "kafka://k:9092", name: "orders" }],
    outputs: [
      { namespace: "s3://raw", name: "topics/orders" },
      { namespace: "kafka://k:9092", name: "bids" },
    ],
  };
  expect(bootstraps([connector])).toEqual(["k:9092"]);
});

test("a pasted connector is shown with its edges, its doubts and its command line", () => {
  const named = { namespace: "kafka://k:9092", name: "orders" };
  const table = { namespace: "s3://lake", name: "orders" };
  const found: ConnectorPreview = {
    name: "sink one",
    family: "iceberg",
    type: "sink",
    inputs: [named],
    outputs: [table],
    edges: [
      { input: named, output: table, columns: [["id", "id"]], evidence: ["config key: topics"] },
    ],
    problems: [EVIL],
  };
  const { container } = render(
    <Previewed found={found} file="sink one.json" line={command("apply", found.name)} />,
  );
  for (const text of ["1 column: id", "config key: topics", EVIL])
    expect(container.textContent).toContain(text);
  expect(container.querySelector("img")).toBeNull();
  screen.getByText("headwater connect apply 'sink one.json' --url http://CONNECT:8083");
});

test("a pasted configuration is deployed from a file of its own kind", async () => {
  expect(fileFor("sink", ' \n{"name": "sink"}')).toBe("sink.json");
  const answer: ConnectorPreview = {
    name: "sink",
    family: "jdbc",
    type: "sink",
    inputs: [],
    outputs: [],
    edges: [],
    problems: [],
  };
  answering({ "POST /api/v2/connectors/preview": answer });
  render(<PreviewPanel connectors={[]} line={(file) => deploy(file, "k:8083")} />);
  const box = screen.getByLabelText(/configuration: JSON/);
  fireEvent.change(box, { target: { value: "name=sink\nconnector.class=a.B" } });
  fireEvent.click(screen.getByRole("button", { name: "Show its lineage" }));
  await screen.findByText("headwater connect apply sink.properties --url http://k:8083");
  // What is typed afterwards is not what was previewed.
  fireEvent.change(box, { target: { value: "{" } });
  screen.getByText("headwater connect apply sink.properties --url http://k:8083");
  screen.getByText("Save it as sink.properties, then");
});

test("tasks of any shape are read", () => {
  expect(tasks({})).toEqual([]);
  expect(tasks({ tasks: [null, { id: 2, state: "failed", workerId: "w" }] })).toEqual([
    { id: 0, state: "", worker: "" },
    { id: 2, state: "FAILED", worker: "w" },
  ]);
});

test("a record of the log is one line", () => {
  const base = { seq: 1, receivedAt: "", hash: "" };
  const event = {
    eventType: "start",
    run: { runId: "r" },
    job: { namespace: "n", name: "j" },
    inputs: [{ name: "a" }],
  };
  expect(readRecord({ ...base, event })).toEqual({
    type: "START",
    job: { namespace: "n", name: "j" },
    run: "r",
    what: "a → –",
  });
  expect(readRecord({ ...base, command: { command: "tag" } }).type).toBe("COMMAND");
  expect(readRecord({ ...base, event: { dataset: { name: "d" } } }).what).toBe("d");
});

test("a plot can be heard", () => {
  const points = [1, 3, 2].map((value, i) => ({ time: `2026-01-0${i + 1}T00:00:00Z`, value }));
  render(<Plot title="Rows" unit={count} points={points} />);
  expect(screen.getByRole("img").getAttribute("aria-label")).toBe(
    "Rows: 3 values, the last 2, the highest 3",
  );
});

test("the one value of a plot has its time once, below it", () => {
  render(<Plot title="Rows" unit={count} points={[{ time: "2026-01-01T00:00:00Z", value: 1 }]} />);
  const times = [...screen.getByRole("img").querySelectorAll(".plot-text")].slice(3);
  expect(times.map((text) => text.getAttribute("text-anchor"))).toEqual(["middle"]);
});

test.each([0, 1, 3, 5, 9, 21, 25, 130, 2_400])(
  "the axis of a count of %i has whole numbers",
  (value) => {
    const top = ceiling(value, true);
    expect(top).toBeGreaterThanOrEqual(value);
    expect(Number.isInteger(top / 2)).toBe(true);
  },
);

test("a plot is drawn at the width that it has", () => {
  class Wide {
    tell: (entries: unknown[]) => void;
    constructor(tell: (entries: unknown[]) => void) {
      this.tell = tell;
    }
    observe(): void {
      this.tell([{ contentRect: { width: 1_300 } }]);
    }
    disconnect(): void {}
  }
  vi.stubGlobal("ResizeObserver", Wide);
  render(<Plot title="Rows" unit={count} points={[{ time: "2026-01-01T00:00:00Z", value: 1 }]} />);
  vi.unstubAllGlobals();
  const drawn = screen.getByRole("img");
  expect(drawn.getAttribute("viewBox")).toBe("0 0 1300 150");
  expect(drawn.getAttribute("height")).toBe("150");
});

const ANSWER: ImpactAnswer = {
  dataset: "dataset:db:orders",
  changes: [{ column: "price", text: "price is dropped", judged: true }],
  verdict: "breaks",
  counts: { breaks: 1, changes: 1, rows: 0, unknown: 1, carries: 0, unaffected: 4 },
  jobs: [
    {
      id: "job:ns:sum",
      namespace: "ns",
      name: "sum",
      effect: "breaks",
      change: "price is dropped",
      why: "it names price",
      owners: [{ name: "team-a" }],
      stops: ["dataset:s3://lake:totals"],
      path: [
        {
          dataset: "dataset:db:orders",
          column: "price",
          job: "job:ns:sum",
          target: "dataset:s3://lake:totals",
          transformations: [{ type: "DIRECT", subtype: "AGGREGATION" }],
          evidence: [
            { source: "kafka options", observed: true },
            { source: "rule", observed: false },
            { source: "kafka options", observed: true },
          ],
        },
      ],
    },
    {
      id: `job:ns:${EVIL}`,
      namespace: "ns",
      name: EVIL,
      effect: "unknown",
      change: "price is dropped",
      why: "it has no column lineage",
      owners: [],
      stops: [],
      path: [],
    },
  ],
  columns: [
    { dataset: "dataset:s3://lake:totals", column: "total", effect: "changes" },
    { dataset: "dataset:s3://lake:totals", column: null, effect: "rows" },
  ],
  unaffected: [],
  coverage: {
    jobs: 6,
    columnsKnown: 5,
    columnsUnknown: ["job:jobs:blind"],
    complete: false,
    hidden: 2,
  },
  truncated: true,
};

test("an impact shows who is hit, the path, and how much is known", () => {
  const { container } = render(<Hits answer={ANSWER} />);
  expect(container.querySelector("img")).toBeNull();
  expect(screen.getByLabelText("breaks").textContent).toContain("sum it names price");
  screen.getByText("orders.price → sum (aggregation)");
  screen.getByText("known from kafka options (observed), rule (derived)");
  screen.getByText("writes totals");
  expect(screen.getByLabelText("unknown").textContent).toContain(EVIL);
  expect(screen.getByLabelText("Columns hit").textContent).toContain("changes totals.total");
  expect(container.textContent).toContain(
    "6 jobs looked at, the columns of 5 are known, not those of blind; 4 unaffected, 1 unknown; the answer was cut",
  );
  screen.getByText("2 downstream jobs or datasets are not visible to this token.");
});

test("what a limited token cannot see upstream is not called right", () => {
  const answer = { verdict: "stale", since: null, causes: [], recent: [], hidden: 3 };
  const { rerender, container } = render(<Upstream answer={answer} />);
  expect(container.textContent).not.toContain("Nothing is wrong upstream.");
  screen.getByText("3 upstream jobs or datasets are not visible to this token.");
  rerender(<Upstream answer={{ ...answer, hidden: 1 }} />);
  screen.getByText("1 upstream job or dataset is not visible to this token.");
  rerender(<Upstream answer={{ ...answer, hidden: 0 }} />);
  expect(container.textContent).toBe("Nothing is wrong upstream.");
  rerender(<Upstream answer={{ ...answer, hidden: 0, truncated: true }} />);
  screen.getByText("Nothing is wrong upstream, as far as was looked.");
  screen.getByText("There is more than was looked at.");
});

test("a schema that changed while nothing is wrong is news, with its time and a way to it", async () => {
  const node = "dataset:postgres://db:5432:shop.public.orders";
  const recent = [{ time: "2026-01-08T11:00:00Z", node, text: `price was removed ${EVIL}` }];
  const answer = { verdict: "fresh", since: null, causes: [], recent, hidden: 0 };
  answering({
    "/api/v2/datasets/db/changed/why": answer,
    "/api/v2/datasets/db/unchanged/why": { ...answer, recent: [] },
  });
  render(<Why dataset={{ namespace: "db", name: "unchanged" }} stale={false} />);
  const { container } = render(
    <Why dataset={{ namespace: "db", name: "changed" }} stale={false} />,
  );
  const list = await screen.findByRole("list", { name: "Changed recently" });
  expect(list.textContent).toMatch(/^shop\.public\.ordersprice was removed .* ago$/);
  expect(list.querySelector("time")?.dateTime).toBe("2026-01-08T11:00:00Z");
  const link = list.querySelector("a")?.getAttribute("href") ?? "";
  expect(new URLSearchParams(link.split("?")[1]).get("node")).toBe(node);
  screen.getByText("Nothing is wrong upstream.");
  expect(container.querySelector("img")).toBeNull();
  expect(screen.getAllByRole("region", { name: "Why" })).toHaveLength(1);
});

test("columns that come after the form do not undo what was chosen", () => {
  const asked: PlannedChange[] = [];
  const form = (columns: string[]) => (
    <ChangeForm
      columns={columns}
      chosen={{ kind: "delete", column: "", to: "" }}
      ask={(change) => asked.push(change)}
    />
  );
  const { rerender } = render(form([]));
  fireEvent.change(screen.getByLabelText("What if I"), { target: { value: "drop" } });
  rerender(form(["id", "price"]));
  fireEvent.click(screen.getByRole("button", { name: "Who is hit?" }));
  expect(asked).toEqual([{ kind: "drop", column: "id", to: "" }]);
});

test("the column that an address points at is the one to change, until another is chosen", () => {
  const asked: string[] = [];
  const form = (columns: string[], marked: string) => (
    <ChangeForm
      columns={columns}
      chosen={null}
      marked={marked}
      ask={(change) => asked.push(change.column)}
    />
  );
  const { rerender } = render(form([], "price"));
  const submit = screen.getByRole("button", { name: "Who is hit?" });
  rerender(form(["id", "price"], "price"));
  fireEvent.click(submit);
  rerender(form(["id", "price"], "gone"));
  fireEvent.click(submit);
  fireEvent.change(screen.getByLabelText("column"), { target: { value: "id" } });
  rerender(form(["id", "price"], "price"));
  fireEvent.click(submit);
  expect(asked).toEqual(["price", "id", "id"]);
});

test("a change is asked for once it is whole", () => {
  const asked: PlannedChange[] = [];
  render(
    <ChangeForm columns={["id", "price"]} chosen={null} ask={(change) => asked.push(change)} />,
  );
  const submit = screen.getByRole("button", { name: "Who is hit?" });
  fireEvent.change(screen.getByLabelText("column"), { target: { value: "price" } });
  fireEvent.click(submit);
  fireEvent.change(screen.getByLabelText("What if I"), { target: { value: "rename" } });
  expect(submit).toHaveProperty("disabled", true);
  fireEvent.change(screen.getByLabelText("to"), { target: { value: " cost " } });
  fireEvent.click(submit);
  fireEvent.change(screen.getByLabelText("What if I"), { target: { value: "delete" } });
  fireEvent.click(submit);
  expect(asked).toEqual([
    { kind: "drop", column: "price", to: "" },
    { kind: "rename", column: "price", to: "cost" },
    { kind: "delete", column: "", to: "" },
  ]);
});

test("a change survives its address", () => {
  const change: PlannedChange = { kind: "rename", column: "a&b=c|d", to: "ä" };
  expect(readChange(written("dataset:s3://lake:x", change))).toEqual({
    node: "dataset:s3://lake:x",
    change,
  });
  expect(readChange("kind=purge&node=x")).toBeNull();
  expect(readChange(null)).toBeNull();
});

test("a cause has its error, its way and what changed before; planned is said so", () => {
  const cause = {
    kind: "failed",
    planned: false,
    root: true,
    node: "job:shop:sink",
    named: { namespace: "shop", name: "sink" },
    since: "2026-01-08T11:26:00Z",
    detail: `permission denied ${EVIL}`,
    path: ["job:shop:sink", "dataset:kafka://k:9092:stats"],
    changes: [{ time: "2026-01-08T11:00:00Z", node: "dataset:db:a", text: "price was removed" }],
  } as const;
  const paused = { ...cause, kind: "paused", planned: true, node: "job:shop:source" } as const;
  const { container } = render(
    <Causes
      causes={[
        { ...cause, path: [...cause.path], changes: [...cause.changes] },
        { ...paused, root: false, path: [], changes: [], by: "ann" },
      ]}
    />,
  );
  const [first, second] = container.querySelectorAll("li");
  expect(first?.textContent).toContain("sink failed");
  expect(first?.textContent).toContain("sink → stats");
  expect(first?.textContent).toContain("before: a, price was removed");
  expect(first?.querySelector("a")?.getAttribute("href")).toBe("/jobs/shop/sink");
  expect(container.querySelector("img")).toBeNull();
  expect(second?.textContent).toContain("was paused by ann (planned), as a consequence");
});

const INCIDENT: Incident = {
  id: "4f1c",
  kind: "run-failed",
  title: `load ${EVIL} failed`,
  subject: { type: "job", namespace: "jobs", name: "load" },
  since: "2026-01-08T11:26:00Z",
  openedAt: "2026-01-08T11:26:04Z",
  detail: `no answer ${EVIL}`,
  rules: ["failures"],
  affected: { jobs: 1, datasets: 2, more: false },
  deliveries: [
    { channel: "chat", message: "opened", state: "sent", error: null },
    { channel: "pager", message: "opened", state: "waiting", error: `HTTP 503 ${EVIL}` },
  ],
};

test("an open incident leads to its job, and says what is downstream and not sent yet", () => {
  const { container } = render(
    <Alerts alerts={{ rules: 3, open: [INCIDENT], truncated: false }} />,
  );
  const row = container.querySelector("li");
  expect(row?.querySelector("a")?.getAttribute("href")).toBe("/jobs/jobs/load");
  expect(row?.textContent).toContain(`no answer ${EVIL}`);
  expect(row?.textContent).toContain("2 datasets and 1 job downstream");
  expect(row?.textContent).toContain("Not sent yet to pager: HTTP 503");
  expect(row?.textContent).not.toContain("chat");
  expect(container.querySelector("img")).toBeNull();
  screen.getByText("3 alert rules");
});

test("an incident of a dataset leads to it, one of a namespace nowhere", () => {
  const dataset = { type: "dataset", namespace: "s3://lake", name: "orders" } as const;
  const space = { type: "namespace", namespace: "agent-1", name: "" } as const;
  const { container } = render(
    <Alerts
      alerts={{
        rules: 1,
        open: [
          { ...INCIDENT, id: "a", subject: dataset },
          { ...INCIDENT, id: "b", subject: space },
        ],
        truncated: true,
      }}
    />,
  );
  const links = [...container.querySelectorAll("li a")].map((link) => link.getAttribute("href"));
  expect(links).toEqual(["/datasets/s3%3A%2F%2Flake/orders"]);
  screen.getByText("More are open: headwater alerts list.");
});

test("a server without rules and incidents shows no card", () => {
  const { container, rerender } = render(
    <Alerts alerts={{ rules: 0, open: [], truncated: false }} />,
  );
  expect(container.textContent).toBe("");
  rerender(<Alerts alerts={{ rules: 2, open: [], truncated: false }} />);
  screen.getByText("None is open.");
});

const DOCTOR: DoctorAnswer = {
  defaultScore: 0.8,
  pairs: [
    {
      alias: { namespace: "kafka://localhost:9092", name: EVIL },
      dataset: { namespace: "kafka://broker:9092", name: "orders" },
      score: 0.85,
      rule: "address",
      evidence: [{ kind: "schema", text: "the same 3 columns" }],
    },
    {
      alias: { namespace: "s3://a", name: "clicks" },
      dataset: { namespace: "s3://b", name: "clicks" },
      score: 0.6,
      rule: "catalog",
      evidence: [],
    },
  ],
  findings: [
    {
      kind: "orphan",
      node: "dataset:s3://lake:alone",
      named: { namespace: "s3://lake", name: "alone" },
      text: "no job reads or writes it",
      since: null,
      count: 1,
    },
    { kind: "refused", node: null, named: null, text: EVIL, since: null, count: 3 },
  ],
  counts: {
    pairs: 2,
    sure: 1,
    schema: 0,
    orphan: 30,
    "no outputs": 0,
    "external file": 0,
    "reported twice": 0,
    inferred: 0,
    silent: 0,
    clock: 0,
    refused: 1,
    assumed: 0,
  },
  recorded: [],
  hidden: 0,
  truncated: false,
};

test("doctor's pairs show why, and one that is chosen is applied", () => {
  const asked: unknown[] = [];
  const { container } = render(
    <Pairs pairs={DOCTOR.pairs} total={5} sure={0.8} act={(body) => asked.push(body)} />,
  );
  expect(container.textContent).toContain(
    `and ${5 - DOCTOR.pairs.length} more, none of them surer`,
  );
  expect(container.querySelector("img")).toBeNull();
  expect(container.textContent).toContain("the same 3 columns");
  expect(screen.getByText("0.85").className).toContain("sure");
  expect(screen.getByText("0.60").className).not.toContain("sure");
  fireEvent.click(screen.getByRole("button", { name: "Apply: clicks in s3://a" }));
  const { alias, dataset } = DOCTOR.pairs[1] ?? {};
  expect(asked).toEqual([{ action: "apply", pairs: [{ alias, dataset }] }]);
});

const FIGURES = {
  jobs: 1234,
  datasets: 56,
  owners: 7,
  readers: 2,
  unused: false,
  columns: 9,
  unusedColumns: 3,
};

test("datasets are ranked by their blast radius, each with its figures and its page", () => {
  const answer = {
    analysedAt: "2026-01-01T00:00:00Z",
    since: "2025-12-02T00:00:00Z",
    datasets: [{ namespace: "s3://lake", name: EVIL, ...FIGURES }],
    total: 1,
    unused: 0,
    hidden: 0,
    truncated: true,
    components: { total: 1, largest: [] },
  };
  const { container } = render(<Ranking answer={answer} json="/api/v2/analysis" />);
  expect(container.querySelector("img")).toBeNull();
  expect(screen.getAllByRole("cell").map((cell) => cell.textContent)).toEqual([
    `${EVIL}s3://lake`,
    "1,234",
    "56",
    "7",
    "2",
    "3 of 9",
  ]);
  expect(screen.getByRole("link", { name: /img/ }).getAttribute("href")).toMatch(/^\/datasets\//);
  expect(container.textContent).toContain("more than are shown");
});

test("the parts of an estate are listed, each with a dataset that is known; one alone is none", () => {
  const part = { datasets: 1_200, jobs: 34, columns: 5_600 };
  const largest = [
    { component: 1, ...part, around: { namespace: "s3://lake", name: EVIL } },
    { component: 2, ...part, around: null },
  ];
  const answer = { components: { total: 2_071, largest } } as RankedDatasets;
  const { container, rerender } = render(<Components answer={answer} json="/api/v2/analysis" />);
  expect(container.querySelector("img")).toBeNull();
  expect(screen.getAllByRole("row").map((row) => row.textContent)).toEqual([
    "AroundDatasetsJobsColumns",
    `${EVIL}s3://lake1,200345,600`,
    "nothing that is still known1,200345,600",
  ]);
  expect(container.textContent).toContain("The largest 2 of 2,071.");
  const alone = { components: { total: 1, largest: largest.slice(0, 1) } } as RankedDatasets;
  rerender(<Components answer={alone} json="/api/v2/analysis" />);
  expect(screen.queryByRole("table")).toBeNull();
});

test("a dataset's page lists its unused columns, and those with the most downstream first", () => {
  const columns = [
    { name: "id", columns: 2, datasets: 2, jobs: 2, unused: false },
    { name: "price", columns: 40, datasets: 9, jobs: 8, unused: false },
    { name: "note", columns: 0, datasets: 0, jobs: 0, unused: true },
    { name: "blob", columns: 0, datasets: 0, jobs: 0, unused: null },
  ];
  const at = "2026-01-01T00:00:00Z";
  const whole = { analysedAt: at, since: at, figures: FIGURES, columns };
  const { container, rerender } = render(<BlastRadius answer={whole} json="/api" />);
  expect(screen.getAllByRole("listitem").map((item) => item.textContent)).toEqual([
    "price 40 columns in 9 datasets, 8 jobs",
    "id 2 columns in 2 datasets, 2 jobs",
  ]);
  expect(screen.getByText("note")).toBeTruthy();
  expect(container.textContent).toContain("Read by 2 jobs");
  expect(container.textContent).not.toContain("blob");
  const unread = { ...whole, figures: { ...FIGURES, unused: true } };
  rerender(<BlastRadius answer={unread} json="/api" />);
  expect(container.textContent).toContain("read by nobody");
  rerender(<BlastRadius answer={{ ...whole, figures: null, columns: [] }} json="/api" />);
  expect(container.textContent).toBe("");
});

test("a role that may not write has nothing to apply", () => {
  render(<Pairs pairs={DOCTOR.pairs} total={DOCTOR.pairs.length} sure={0.8} act={null} />);
  expect(screen.queryByRole("button")).toBeNull();
});

test("what makes answers doubtful stands by its kind, with how many there are", () => {
  const { container } = render(<Doubts answer={DOCTOR} />);
  expect(container.querySelector("img")).toBeNull();
  const orphans = screen.getByRole("region", { name: "Datasets that no job reads or writes" });
  expect(orphans.textContent).toContain("and 10 more");
  expect(screen.getByRole("link", { name: "alone" }).getAttribute("href")).toBe(
    "/datasets/s3%3A%2F%2Flake/alone",
  );
  expect(container.textContent).toContain("3 events");
  expect(screen.queryByText("Clocks that are off")).toBeNull();
});

test("a stale dataset has the causes that nothing else explains, and no planned ones", () => {
  const cause = (name: string, more: object) => ({
    kind: "failed" as const,
    planned: false,
    root: true,
    node: `job:shop:${name}`,
    named: { namespace: "shop", name },
    since: "2026-01-08T11:26:00Z",
    detail: null,
    path: [],
    changes: [],
    ...more,
  });
  const causes = [
    cause("sink", { detail: `denied ${EVIL}` }),
    cause("follower", { root: false }),
    cause("paused", { kind: "paused", planned: true }),
    cause("second", { kind: "aborted" }),
    cause("third", {}),
  ];
  const { container } = render(
    <StaleDataset
      dataset={{ namespace: "db", name: "stats" }}
      answer={{ verdict: "stale", since: "2026-01-08T11:26:00Z", causes, recent: [], hidden: 0 }}
    />,
  );
  const text = container.textContent ?? "";
  expect(text).toContain("stats is stale");
  expect(text).toContain(`because sink faileddenied ${EVIL}`);
  expect(text).toContain("because second was aborted");
  expect(text).toContain("and 1 more cause");
  for (const name of ["follower", "paused", "third"]) expect(text).not.toContain(name);
  expect(container.querySelector("img")).toBeNull();
});

test("a difference is listed in the order and the words of the command", () => {
  const edge = { origin: "job:ns:load", destination: "dataset:s3://lake:t" };
  const column = {
    origin: "datasetField:db:a:x",
    destination: "datasetField:s3://lake:t:y",
    originName: "db:a.x",
    destinationName: "s3://lake:t.y",
  };
  const found = listed({
    appeared: ["job:ns:load"],
    vanished: ["dataset:db:old"],
    added: [edge],
    removed: [],
    columnsAdded: [],
    columnsRemoved: [column],
    schemas: [{ dataset: "dataset:db:a", compatible: false, changes: ["x was removed"] }],
    states: [{ job: "job:ns:sink", before: "RUNNING", after: "FAILED" }],
    hidden: 0,
    truncated: false,
  });
  expect(found.map((one) => `${one.sign} ${one.kind} ${one.text}`)).toEqual([
    "+ job ns:load",
    "+ edge ns:load → s3://lake:t",
    "− dataset db:old",
    "− column db:a.x → s3://lake:t.y",
    "~ schema db:a: x was removed",
    "~ state ns:sink: RUNNING → FAILED",
  ]);
  expect(found.map((one) => one.node ?? "")).toEqual([
    "job:ns:load",
    "",
    "dataset:db:old",
    "",
    "dataset:db:a",
    "job:ns:sink",
  ]);
  expect(found[4]?.breaks).toBe(true);
});
