// @ts-check
/** Real parts for the browser tests and the pictures: the server as a process, Chromium, events. */

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(HERE, "../..");
const FIXTURES = join(ROOT, "tests/fixtures/page");
const PYTHON = process.env.HEADWATER_PYTHON ?? join(ROOT, ".venv/bin/python");
const PROGRAM =
  "import typer; from headwater.cli.server import register; app = typer.Typer(); register(app); app()";
const RECORDED = Date.parse("2026-01-08T12:00:00Z");
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((done, fail) => {
    const probe = createServer();
    probe.on("error", fail);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => done(typeof address === "object" && address ? address.port : 0));
    });
  });
}

/** `headwater server` on a store of its own; it can be stopped and started again. */
export class Server {
  /**
   * @param {number} port @param {string} home @param {Record<string, string>} environment
   * @param {string[]} options
   */
  constructor(port, home, environment, options) {
    this.port = port;
    this.home = home;
    this.environment = environment;
    this.options = options;
    this.url = `http://127.0.0.1:${port}`;
    /** @type {import("node:child_process").ChildProcess | null} */
    this.process = null;
    this.log = "";
  }

  /** @param {Record<string, string>} [environment] @param {string[]} [options] */
  static async start(environment = {}, options = []) {
    const home = mkdtempSync(join(tmpdir(), "headwater-page-"));
    const server = new Server(await freePort(), home, environment, options);
    await server.up();
    return server;
  }

  get store() {
    return `sqlite:///${this.home}/page.db`;
  }

  async up() {
    const { HEADWATER_TOKEN: _, ...rest } = process.env;
    const child = spawn(
      PYTHON,
      [
        "-c",
        PROGRAM,
        "server",
        "--port",
        String(this.port),
        "--store",
        this.store,
        ...this.options,
      ],
      { cwd: ROOT, env: { ...rest, ...this.environment }, stdio: ["ignore", "pipe", "pipe"] },
    );
    this.process = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (/** @type {Buffer} */ part) => {
        this.log = (this.log + part.toString()).slice(-4_000);
      });
    const deadline = Date.now() + 120_000;
    for (;;) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the server ended: ${this.log}`);
      if (Date.now() > deadline) throw new Error(`the server does not answer: ${this.log}`);
      try {
        if ((await fetch(`${this.url}/api/v2/health`)).ok) return;
      } catch {
        // Not yet.
      }
      await new Promise((done) => setTimeout(done, 60));
    }
  }

  async down() {
    const child = this.process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await ended;
    clearTimeout(timer);
  }

  async remove() {
    await this.down();
    rmSync(this.home, { recursive: true, force: true });
  }

  /** A token made by the command line. @param {"read" | "write" | "admin"} role */
  async token(role) {
    const words = ["-c", PROGRAM, "token", "create", "test", "--role", role, "--store", this.store];
    const { stdout } = await promisify(execFile)(PYTHON, words, { cwd: ROOT });
    const token = stdout.trim();
    // The server looks for new tokens every two seconds.
    for (;;) {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${this.url}/api/v2/health`, { headers });
      if ((await answer.json()).may.length > 0) return token;
      await new Promise((done) => setTimeout(done, 60));
    }
  }

  /** @returns {Record<string, string>} */
  get headers() {
    const token = this.environment.HEADWATER_TOKEN;
    return token ? { authorization: `Bearer ${token}` } : {};
  }

  /** @param {string} path @param {string | object} body */
  async post(path, body) {
    const response = await fetch(this.url + path, {
      method: "POST",
      headers: { ...this.headers, "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await this.said(path, response));
    return response;
  }

  /** @param {string} path @returns {Promise<any>} */
  async get(path) {
    const response = await fetch(this.url + path, { headers: this.headers });
    if (!response.ok) throw new Error(await this.said(path, response));
    return response.json();
  }

  /** A refusal in the server's words, with the end of its log. @param {string} path @param {Response} answer */
  async said(path, answer) {
    return `${path}: ${answer.status} ${(await answer.text()).slice(0, 600)}\nlog: ${this.log}`;
  }

  /** The recorded demo, moved in time so that it ends now. */
  async loadDemo() {
    await this.load("demo.ndjson");
    await this.flow();
  }

  /** Recorded events, moved in time as the demo is. @param {string} name */
  async load(name) {
    const shift = Date.now() - RECORDED;
    const text = readFileSync(join(FIXTURES, name), "utf8");
    const moved = text.replace(/20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (time) =>
      new Date(Date.parse(time) + shift).toISOString(),
    );
    await this.post("/api/v2/events", moved);
  }

  /** What flows in the demo, as of now. */
  async flow() {
    const { samples } = JSON.parse(readFileSync(join(FIXTURES, "flow.json"), "utf8"));
    const time = new Date().toISOString();
    for (const sample of samples) Object.assign(sample, { time, lastRecordAt: time });
    await this.post("/api/v2/flow", { samples });
  }

  /** Many jobs in chains of ten, a namespace for each hundred. @param {number} count */
  async loadEstate(count) {
    let lines = [];
    for (let i = 0; i < count; i++) {
      lines.push(JSON.stringify(estateEvent(i)));
      if (lines.length === 500 || i === count - 1) {
        await this.post("/api/v2/events", lines.join("\n"));
        lines = [];
      }
    }
  }
}

/** @param {number} i */
function estateEvent(i) {
  const chain = Math.floor(i / 10);
  const team = `team-${String(Math.floor(i / 100)).padStart(3, "0")}`;
  const topic = (/** @type {number} */ step) => ({
    namespace: `kafka://cluster-${Math.floor(i / 2_000)}:9092`,
    name: `chain${chain}.step${step}`,
  });
  return {
    eventType: i % 97 === 0 ? "FAIL" : i % 3 === 0 ? "COMPLETE" : "START",
    eventTime: new Date(Date.now() - (i % 600) * 1_000).toISOString(),
    producer: "https://example.com/estate",
    run: { runId: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}` },
    job: { namespace: team, name: `job-${String(i).padStart(5, "0")}` },
    inputs: [topic(i % 10)],
    outputs: [topic((i % 10) + 1)],
  };
}

/** @param {number} jobs @param {number} fan A graph of one hub, so that one neighbourhood holds it all. */
export function denseEvents(jobs, fan) {
  const dataset = (/** @type {number} */ n) => ({ namespace: "s3://dense", name: `table-${n}` });
  return Array.from({ length: jobs }, (_, i) => ({
    eventType: "START",
    eventTime: new Date().toISOString(),
    producer: "https://example.com/dense",
    run: { runId: `00000000-0000-4000-9000-${String(i).padStart(12, "0")}` },
    job: { namespace: "dense", name: `step-${i}` },
    inputs: Array.from({ length: fan }, (_, k) => dataset(Math.floor((i + k * 7) / 3) % 90)),
    outputs: [dataset(100 + i), ...(i % 3 === 0 ? [dataset((Math.floor(i / 3) + 31) % 90)] : [])],
  }));
}

function systemChromium() {
  const known = [
    process.env.CHROMIUM,
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
  ];
  return known.find((path) => path && existsSync(path));
}

/**
 * The Chromium inside the npm package, unpacked once. The package unpacks into the shared folder for temporary
 * files, and takes a file there that another process is still writing, or that anybody put there, for its own.
 */
async function packedChromium() {
  const unpacked = join(HERE, "../node_modules/.chromium");
  const executable = join(unpacked, "chromium");
  if (existsSync(executable)) return executable;
  const fresh = mkdtempSync(`${unpacked}-`);
  const code = 'await (await import("@sparticuz/chromium")).default.executablePath()';
  const words = ["--input-type=module", "-e", code];
  await promisify(execFile)(process.execPath, words, {
    cwd: HERE,
    env: { ...process.env, TMPDIR: fresh },
  });
  try {
    renameSync(fresh, unpacked);
  } catch (error) {
    rmSync(fresh, { recursive: true });
    if (!existsSync(executable)) throw error; // else another process was first
  }
  return executable;
}

/** A Chromium that this machine has, else the one inside the npm package. */
export async function openBrowser() {
  const executablePath = systemChromium() ?? (await packedChromium());
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}
