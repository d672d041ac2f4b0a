/** The answers of the server's API, as far as the page reads them. */

export type State = "NEW" | "RUNNING" | "COMPLETED" | "FAILED" | "ABORTED";
/** How somebody ended a run on purpose. */
export type Planned = "paused" | "stopped";
/** A state as it is counted: what somebody wanted so has a word of its own. */
export type CountedState = State | Uppercase<Planned>;
/** A state as it is shown: so has what is deleted in the system that ran it. */
export type ShownState = CountedState | "DELETED";

export interface Named {
  namespace: string;
  name: string;
}

export interface Reach {
  jobs: number;
  datasets: number;
  more: boolean;
}

export interface More {
  upstream: number;
  downstream: number;
}

export interface JobFacts extends Named {
  id: string;
  kind: "job";
  integration: string;
  type: string;
  processing: string;
  updatedAt: string;
  state: State;
  planned: Planned | null;
  /** Since when the job is deleted in the system that ran it. */
  deleted?: string | null;
  inferred: boolean;
  run: string | null;
  since: string | null;
  error: string | null;
}

export type Change = "" | "added" | "removed";

export interface JobNode extends JobFacts {
  distance: number;
  more: More;
  /** Which datasets feed which through the job; null where every input feeds every output. */
  pairs?: { origin: string; destination: string }[] | null;
  /** Whether several inputs and outputs are paired only because the job lists them. */
  assumed?: boolean;
  /** The job that its newest run names as its parent. */
  parent?: string | null;
  /** The actions that an application is drawn for. */
  actions?: JobNode[];
  /** The ids of its other actions, which only look at a table or make one. */
  asides?: string[];
  change?: Change;
}

export interface Field {
  name: string;
  type: string | null;
  description?: string | null;
  level?: number;
  tags?: string[];
}

export interface DatasetNode extends Named {
  id: string;
  kind: "dataset";
  store: string;
  type: string;
  updatedAt: string;
  distance: number;
  more: More;
  fields?: Field[];
  change?: Change;
}

export type MapNode = JobNode | DatasetNode;

export interface MapEdge {
  origin: string;
  destination: string;
  change?: Change;
  count?: number;
  /** The edge that it stands for, where it is drawn between other nodes. */
  of?: MapEdge;
}

export interface Step {
  type: string | null;
  subtype: string | null;
  description: string | null;
  masking: boolean;
}

export interface Evidence {
  source?: string;
  detail?: string;
  observed?: boolean;
}

export interface EdgeProof {
  current: boolean;
  intervals: { since: string; until: string | null }[];
  runs: { id: string; state: State; lastHeardAt: string | null }[];
  evidence: Evidence[];
}

export interface ColumnEdge {
  origin: string;
  destination: string;
  from: string;
  to: string;
  source: Named & { field: string };
  target: Named & { field: string };
  jobs: string[];
  how: Step[];
  evidence: Evidence[];
}

export interface Group {
  id: string;
  namespace: string;
  jobs: number;
  datasets: number;
  states: Partial<Record<ShownState, number>>;
}

export interface EstateMap {
  at: string | null;
  from?: string;
  to?: string | null;
  nodes: MapNode[];
  edges: MapEdge[];
  /** Parents of the jobs among the nodes that are no nodes themselves. */
  parents?: JobFacts[];
  truncated: boolean;
  groups?: Group[];
  total?: { jobs: number; datasets: number };
  columns?: { edges: ColumnEdge[]; truncated: boolean };
  /** Of a moment older than the server keeps. */
  source?: "lake";
}

export interface ColumnPath {
  columns: { id: string; dataset: string; field: string; distance: number }[];
  edges: ColumnEdge[];
  truncated: boolean;
}

export interface EdgeChange {
  change: "edges";
  time: string;
  job: Named;
  added: (Named & { direction: string })[];
  removed: (Named & { direction: string })[];
  more: number;
}

export interface SchemaChange {
  change: "schema";
  time: string;
  dataset: Named;
  added: string[];
  removed: string[];
}

export interface Incident {
  id: string;
  kind: string;
  title: string;
  subject: Named & { type: "job" | "dataset" | "namespace" };
  since: string;
  openedAt: string;
  detail: string | null;
  rules: string[];
  affected: Reach;
  deliveries: { channel: string; message: string; state: string; error: string | null }[];
}

export interface Overview {
  now: string;
  records: number;
  firstEventAt: string | null;
  jobs: Record<CountedState | "total", number>;
  datasets: number;
  troubles: {
    jobs: (JobFacts & { affected: Reach; with: (Named & { id: string })[] })[];
    truncated: boolean;
  };
  stale: (JobFacts & { affected: Reach; usualSeconds: number; silentSeconds: number })[];
  /** Running jobs whose lag has grown over their last reports. */
  lagging: (JobFacts & {
    affected: Reach;
    dataset: Named;
    lag: number;
    lagBefore: number;
    since: string;
  })[];
  /** A few of the datasets that jobs in trouble write. */
  halted: Named[];
  perMinute: { minute: string; events: number }[];
  changes: (EdgeChange | SchemaChange)[];
  alerts: { rules: number; open: Incident[]; truncated: boolean };
}

export type Facets = Record<string, unknown>;

export interface Write {
  time: string;
  run: string;
  job: Named | null;
  state: State;
  rows: number | null;
  bytes: number | null;
  files: number | null;
  quality: Record<string, Record<string, unknown>>;
}

export interface Freshness {
  verdict: "live" | "fresh" | "stale" | "unknown";
  since: string | null;
  lastWrittenAt: string | null;
  /** What that time is known from; by a heartbeat a job only says that it runs. */
  lastWrittenFrom: "flow" | "run" | "heartbeat" | null;
  usualSeconds: number | null;
  dueAt: string | null;
  causes: { job: Named; trouble: string; since: string; distance: number; root: boolean }[];
  truncated: boolean;
}

/** What a job, or the subject of a registry, reports of a schema. */
export interface SchemaClaim {
  job: Named | null;
  subject: string | null;
  since: string;
  fields: { name: string; type: string }[];
}

export interface SchemaFinding {
  kind: "type" | "writers" | "source";
  since: string;
  fields: string[];
  one: SchemaClaim;
  other: SchemaClaim;
}

export interface DatasetPage extends Named {
  type: string;
  store: string;
  description: string | null;
  createdAt: string;
  updatedAt: string;
  tags: string[];
  facets: Facets;
  columns: Field[];
  history: { time: string; fields: Field[] }[];
  /** Claims on the schema that cannot both be right. */
  findings: SchemaFinding[];
  aliases: Named[];
  /** From where or to where it moved under a name that both declared, and when. */
  moves: { from?: Named; to?: Named; at: string }[];
  producers: JobFacts[];
  consumers: JobFacts[];
  freshness: Freshness;
  writes: Write[];
  truncated: boolean;
}

export interface JobPage extends JobFacts {
  description: string | null;
  location: string | null;
  tags: string[];
  facets: Facets;
  inputs: Named[];
  outputs: Named[];
  parent: (Named & { run: string | null }) | null;
  children: JobFacts[];
  /** What an application does by its actions: how many those are, and the rows of its runs by id. */
  actions?: { jobs: number; rows: Record<string, RunRows> } | null;
  affected: Reach;
  /** Those of its latest runs that somebody ended on purpose, by id. */
  plannedEnds: Record<string, Planned>;
}

export interface RunRows {
  read: number | null;
  written: number | null;
}

export interface RunUse {
  datasetVersionId: Named & { version: string | null };
  facets: Facets;
}

export interface Run {
  id: string;
  createdAt: string;
  updatedAt: string;
  nominalStartTime: string | null;
  nominalEndTime: string | null;
  state: State;
  startedAt: string | null;
  endedAt: string | null;
  durationMs: number | null;
  jobVersion: (Named & { version: string | null }) | null;
  inputDatasetVersions: RunUse[];
  outputDatasetVersions: RunUse[];
  facets: Facets;
}

export interface Connector extends JobFacts {
  report: Record<string, unknown>;
  failure: Record<string, unknown> | null;
  inputs: Named[];
  outputs: Named[];
}

export interface LogRecord {
  seq: number;
  receivedAt: string;
  hash: string;
  event?: Record<string, unknown>;
  command?: Record<string, unknown>;
}

export interface Found extends Named {
  kind: "job" | "dataset" | "column" | "tag";
  node: string;
  field?: string;
  tag?: string;
}

export interface FlowSample {
  run: string;
  time: string;
  dataset: Named;
  direction: "input" | "output";
  recordsPerSecond: number | null;
  bytesPerSecond?: number | null;
  lag: number | null;
  lastRecordAt: string | null;
}

export type ImpactEffect = "breaks" | "changes" | "rows" | "unknown" | "carries" | "unaffected";

/** A change of a dataset that somebody thinks about. */
export interface PlannedChange {
  kind: "drop" | "rename" | "type" | "delete";
  column: string;
  to: string;
}

export interface ImpactStep {
  dataset: string;
  column: string | null;
  job: string;
  target: string | null;
  transformations?: { type: string | null; subtype: string | null }[];
  evidence?: { source?: string; observed?: boolean }[];
}

export interface ImpactJob extends Named {
  id: string;
  effect: ImpactEffect;
  change: string;
  why: string;
  owners: { name: string }[];
  stops: string[];
  path: ImpactStep[];
}

export interface ImpactColumn {
  dataset: string;
  column: string | null;
  effect: ImpactEffect;
}

export interface ImpactAnswer {
  dataset: string;
  changes: { column: string; text: string; judged: boolean }[];
  verdict: ImpactEffect;
  counts: Record<ImpactEffect, number>;
  jobs: ImpactJob[];
  columns: ImpactColumn[];
  unaffected: string[];
  coverage: {
    jobs: number;
    columnsKnown: number;
    /** The jobs whose columns are not known. */
    columnsUnknown?: string[];
    complete: boolean;
    hidden: number;
  };
  truncated: boolean;
}

/** What became different about a job or a dataset. */
export interface Changed {
  time: string;
  node: string;
  text: string;
}

export interface Cause {
  kind:
    | "failed"
    | "aborted"
    | "late"
    | "lagging"
    | "schema"
    | "ended"
    | "quality"
    | "paused"
    | "stopped";
  planned: boolean;
  root: boolean;
  node: string;
  named: Named;
  since: string | null;
  detail: string | null;
  by?: string | null;
  path: string[];
  changes: Changed[];
}

/** A tag on a column: set there, or brought there along a path. */
export interface TaggedColumn extends Named {
  tag: string;
  field: string | null;
  set: boolean;
  path: { name: string; field: string; jobs: string[] }[];
}

export interface TagsAnswer {
  columns: TaggedColumn[];
  stopped: {
    tag: string;
    source: Named & { field: string };
    target: Named & { field: string };
    jobs: string[];
  }[];
}

/** A column that another one comes from, and when it last became a different one. */
export interface ColumnInput extends Named {
  field: string;
  node: string;
  changedAt: string | null;
  change: string | null;
  lastWrittenAt: string | null;
}

export interface WhyAnswer {
  verdict: string;
  since: string | null;
  causes: Cause[];
  /** Schemas upstream that changed in the last day, while nothing is wrong. */
  recent: Changed[];
  /** Of a column: what it comes from, the one that changed last first. */
  inputs?: ColumnInput[] | null;
  /** Of a column: jobs that write its dataset and do not report from which columns. */
  unknown?: { job: string }[] | null;
  /** Whether there is more than was looked at. */
  truncated?: boolean;
  /** Upstream jobs and datasets that a limited token cannot see. */
  hidden: number;
}

/** Two datasets that may be one: `alias` would stand for `dataset`. */
export interface ProposedPair {
  alias: Named;
  dataset: Named;
  score: number;
  rule: string;
  evidence: { kind: string; text: string }[];
}

export type DoubtKind =
  | "schema"
  | "external file"
  | "orphan"
  | "no outputs"
  | "reported twice"
  | "inferred"
  | "silent"
  | "clock"
  | "refused"
  | "assumed";

export interface DoctorFinding {
  kind: DoubtKind;
  node: string | null;
  named: Named | null;
  text: string;
  since: string | null;
  count: number;
}

export interface DoctorAnswer {
  defaultScore: number;
  pairs: ProposedPair[];
  findings: DoctorFinding[];
  counts: Record<"pairs" | "sure" | DoubtKind, number>;
  recorded: { alias: Named; dataset: Named; at: string }[];
  hidden: number;
  truncated: boolean;
}

/** How much lies behind a dataset in the whole estate, as the lake last found it. */
export interface AnalysedFigures {
  jobs: number;
  datasets: number;
  owners: number;
  readers: number;
  unused: boolean;
  columns: number;
  unusedColumns: number;
}

export interface RankedDatasets {
  analysedAt: string | null;
  since: string | null;
  datasets: (Named & AnalysedFigures)[];
  total: number;
  unused: number;
  hidden: number;
  truncated: boolean;
  /** The parts of the estate that no edge joins, the largest first. */
  components: {
    total: number;
    largest: {
      component: number;
      datasets: number;
      jobs: number;
      columns: number;
      around: Named | null;
    }[];
  };
}

/** What the server says of itself, and of what the token may do. */
export interface Health {
  may: string[];
  /** Whether it has a lake with what an analysis of the whole estate found. */
  analysis: boolean;
}

export interface DatasetAnalysis {
  analysedAt: string | null;
  since: string | null;
  figures: AnalysedFigures | null;
  columns: {
    name: string;
    columns: number;
    datasets: number;
    jobs: number;
    unused: boolean | null;
  }[];
}

/** Values go from one column to another: their ids, and their names as they are typed. */
export interface ChangedColumnEdge {
  origin: string;
  destination: string;
  originName: string;
  destinationName: string;
}

/** What came, went and changed between two moments, as `headwater diff` lists it. */
export interface DifferenceAnswer {
  appeared: string[];
  vanished: string[];
  added: { origin: string; destination: string }[];
  removed: { origin: string; destination: string }[];
  columnsAdded: ChangedColumnEdge[];
  columnsRemoved: ChangedColumnEdge[];
  schemas: { dataset: string; compatible: boolean; changes: string[] }[];
  states: { job: string; before: string; after: string }[];
  hidden: number;
  truncated: boolean;
  source?: "lake";
}

/** The lineage of a connector that is not deployed. */
export interface ConnectorPreview {
  name: string;
  family: string;
  type: string | null;
  inputs: Named[];
  outputs: Named[];
  edges: {
    input: Named;
    output: Named;
    columns: [string, string][] | null;
    evidence: string[];
  }[];
  problems: string[];
}
