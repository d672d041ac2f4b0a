import { plural } from "../lib/format";
import { Copy } from "./basics";

const WORDS = new Set(
  (
    "select from where and or not in is null as on using join inner left right full outer cross " +
    "group by order having limit offset union all distinct case when then else end with insert into " +
    "values update set delete create table view replace merge matched over partition rows between " +
    "cast exists like lateral unnest interval asc desc true false overwrite if"
  ).split(" "),
);
const TOKEN =
  /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`)|(\b\d+(?:\.\d+)?\b)|([A-Za-z_][\w$]*)|([\s\S])/g;

export interface Token {
  kind: "comment" | "string" | "number" | "keyword" | "plain";
  text: string;
}

/** SQL as words with a kind; neighbours of one kind are joined. */
export function tokens(sql: string): Token[] {
  const found: Token[] = [];
  for (const match of sql.matchAll(TOKEN)) {
    const [text, comment, string, number, word] = match;
    const kind: Token["kind"] = comment
      ? "comment"
      : string
        ? "string"
        : number
          ? "number"
          : word && WORDS.has(word.toLowerCase())
            ? "keyword"
            : "plain";
    const last = found.at(-1);
    if (last && last.kind === kind) last.text += text;
    else found.push({ kind, text });
  }
  return found;
}

export function Sql({ text }: { text: string }) {
  return (
    <div className="code">
      <Copy text={text} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable */}
      <pre tabIndex={0}>
        <code>
          {tokens(text).map((token, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the tokens of one text never move
            <span key={i} className={`sql-${token.kind}`}>
              {token.text}
            </span>
          ))}
        </code>
      </pre>
    </div>
  );
}

/** Plain text that scrolls in a region of its own. */
export function Code({ text, label = "Text" }: { text: string; label?: string }) {
  return (
    <section className="code" aria-label={label}>
      <Copy text={text} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </section>
  );
}

/** What went wrong first, the frames folded below it. */
export function Trace({ message, trace }: { message: string; trace?: string | undefined }) {
  const lines = (trace ?? "").split("\n").filter((line) => line.trim());
  const frames = lines.filter((line) => /^\s*(at |\.\.\. |File )/.test(line)).length;
  return (
    <div className="trace">
      <p className="trace-message wrap">{message}</p>
      {lines.length > 0 ? (
        <details>
          <summary>
            Stack trace, {plural(lines.length, "line")}
            {frames ? ` (${plural(frames, "frame")})` : ""}
          </summary>
          <Code text={lines.join("\n")} label="Stack trace" />
        </details>
      ) : null}
    </div>
  );
}

/** Facets as they were sent, each folded under its name. */
export function RawFacets({ facets }: { facets: Record<string, unknown> }) {
  const names = Object.keys(facets).sort();
  if (names.length === 0) return <p className="muted">No facets.</p>;
  return (
    <div className="facets">
      {names.map((name) => (
        <details key={name}>
          <summary className="mono">{name}</summary>
          <Code text={JSON.stringify(facets[name], null, 2)} label={`Facet ${name}`} />
        </details>
      ))}
    </div>
  );
}
