import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { apiPath, segments } from "../lib/api";
import {
  ago,
  bytes,
  compact,
  duration,
  fromLocal,
  lasting,
  momentOf,
  toLocal,
} from "../lib/format";
import { jobKind, storeKind } from "../lib/kinds";
import { feed, onChanges, take } from "../lib/live";
import { graphUrl, nameIn, ShownNames, shortName } from "../lib/names";
import { change, settings } from "../lib/settings";
import { Parser } from "../lib/sse";

describe("server-sent events", () => {
  test("come out whole however the bytes are cut", () => {
    const text =
      ': hi\nretry: 2000\n\nid: 7\nevent: run\ndata: {"a":1}\n\nevent: x\ndata: one\ndata: two\n\n';
    for (let cut = 1; cut < text.length; cut++) {
      const parser = new Parser();
      const found = [...parser.take(text.slice(0, cut)), ...parser.take(text.slice(cut))];
      expect(found).toEqual([
        { id: "7", event: "run", data: '{"a":1}' },
        { id: "7", event: "x", data: "one\ntwo" },
      ]);
    }
  });

  test("a message without data is none", () => {
    expect(new Parser().take("event: run\n\n")).toEqual([]);
  });
});

describe("changes", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test("go out together, a few times a second", () => {
    const heard: number[] = [];
    const leave = onChanges((changes) => heard.push(changes.length));
    for (let i = 0; i < 500; i++)
      take({ id: String(i), event: "run", data: JSON.stringify({ name: `j${i}` }) });
    vi.advanceTimersByTime(300);
    leave();
    expect(heard).toEqual([500]);
    expect(feed.get()).toHaveLength(100);
    expect(feed.get()[0]?.data.name).toBe("j499");
  });

  test("what is not JSON is passed over", () => {
    const heard: number[] = [];
    const leave = onChanges((changes) => heard.push(changes.length));
    take({ id: "1", event: "run", data: "{" });
    vi.advanceTimersByTime(300);
    leave();
    expect(heard).toEqual([]);
  });
});

test("a token never reaches local storage", () => {
  change({ token: "hw_secret", theme: "dark" });
  expect(settings.get().token).toBe("hw_secret");
  expect(sessionStorage.getItem("headwater.token")).toBe("hw_secret");
  expect(JSON.stringify({ ...localStorage })).not.toContain("hw_secret");
  change({ token: "" });
  expect(sessionStorage.getItem("headwater.token")).toBeNull();
});

test("addresses keep any name whole", () => {
  expect(segments("s3://a", "b/c d?")).toBe("s3%3A%2F%2Fa/b%2Fc%20d%3F");
  expect(apiPath("/x", { a: "1&2", b: null, c: false, d: "" })).toBe("/x?a=1%262");
  expect(graphUrl("job:a:b&c")).toBe("/graph?node=job%3Aa%3Ab%26c&select=job%3Aa%3Ab%26c");
});

test.each([
  [0.25, "250 ms"],
  [4.2, "4.2 s"],
  [59, "59 s"],
  [200, "3 min 20 s"],
  [7_260, "2 h 1 min"],
  [864_000, "10 d"],
])("%f seconds are %s", (seconds, text) => expect(duration(seconds)).toBe(text));

test("times and figures read well", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  expect(ago("2026-01-01T11:59:15Z", now)).toBe("45 s ago");
  expect(ago("2026-01-01T10:00:00Z", now)).toBe("2 h ago");
  expect(ago(null)).toBe("never");
  expect(compact(9_999)).toBe("9,999");
  expect(compact(1_250_000)).toBe("1.3M");
  expect(bytes(1_234_567)).toBe("1.2 MB");
  expect(fromLocal(toLocal("2026-01-01T12:34:56.000Z"))).toBe("2026-01-01T12:34:56.000Z");
  expect(fromLocal("no time")).toBeNull();
});

test("a long name keeps the part that tells it apart", () => {
  expect(shortName("orders")).toBe("orders");
  expect(shortName("warehouse/finance/reports/monthly/suppliers", 24)).toBe("warehouse/…suppliers");
  // Two statements on one table are told apart.
  expect(shortName("supplier_stats.create_table.default_supplier_stats")).toBe(
    "supplier_stats.create_…supplier_stats",
  );
  expect(shortName("supplier_stats.overwrite_data.default_supplier_stats")).toBe(
    "supplier_stats.overwrite_…supplier_stats",
  );
  expect(shortName("x".repeat(80), 21)).toHaveLength(21);
});

test("every kind has an icon and a word", () => {
  expect(storeKind("kafka")).toEqual({ icon: "topic", label: "Kafka topic" });
  expect(storeKind("iceberg").label).toBe("Iceberg table");
  expect(storeKind("something-else").label).toBe("Dataset");
  const job = { integration: "kafka_connect", type: "sink", processing: "streaming" };
  expect(jobKind(job)).toEqual({ icon: "plug", label: "Sink connector", short: "Sink" });
  expect(jobKind({ integration: "spark", type: "", processing: "streaming" }).label).toBe(
    "Spark stream",
  );
  expect(
    jobKind({ integration: "kafka", type: "transactional_producer", processing: "service" }).label,
  ).toBe("Transactional producer");
  expect(
    jobKind({ integration: "kafka", type: "consumer_group", processing: "streaming" }).label,
  ).toBe("Consumer group");
  expect(jobKind({ integration: "", type: "", processing: "batch" }).label).toBe("Job");
});

test("a name in an id keeps its colons", () => {
  expect(nameIn("job:lab:etl:daily:load")).toBe("etl:daily:load");
  expect(nameIn("dataset:odd://ns:1:col:victim:t")).toBe("col:victim:t");
  expect(nameIn("dataset:kafka://a:9092,b:9092:orders")).toBe("orders");
  expect(nameIn("dataset:s3://lake:orders")).toBe("orders");
});

test("a moment of an address may be how long ago", () => {
  const now = Date.parse("2026-01-08T12:00:00Z");
  const found = ["now", "90m", "2D", "2026-01-08T11:00:00Z", "2026-01-08"].map((text) =>
    new Date(momentOf(text, now)).toISOString().slice(0, 16),
  );
  expect(found).toEqual([
    "2026-01-08T12:00",
    "2026-01-08T10:30",
    "2026-01-06T12:00",
    "2026-01-08T11:00",
    "2026-01-08T00:00",
  ]);
  for (const text of ["yesterday", "10x", "", `${"9".repeat(30)}d`])
    expect(momentOf(text)).toBeNaN();
});

test("no two names of one answer look alike", () => {
  const [here, there] = ["job:here:load", "job:there:load"];
  const names = new ShownNames([
    here,
    there,
    here,
    "dataset:s3://lake:load",
    "dataset:s3://lake:x",
  ]);
  expect(names.of(here)).toBe("here:load");
  expect(names.of("dataset:s3://lake:load")).toBe("load");
  expect(names.of("job:odd:name:x", "name:x")).toBe("name:x");
  expect(names.path([there, "dataset:s3://lake:x"])).toBe("there:load → x");
  const same = new ShownNames([here, "dataset:s3://lake:load"]);
  expect(same.path([here, "dataset:s3://lake:load"])).toBe("job load → dataset load");
});

test("what lasts is told by how long it has, not since how long ago", () => {
  const now = Date.parse("2026-01-08T12:00:00Z");
  expect(lasting(now - 138_000, now)).toBe("for 2 min 18 s");
  expect(lasting(now, now)).toBe("since now");
  expect(lasting(null, now)).toBe("since never");
});
