/** Server-sent events out of a byte stream: ours, so that a token can go along as a header. */

export interface Message {
  id: string;
  event: string;
  data: string;
}

export class Parser {
  private rest = "";
  private id = "";
  private event = "";
  private data: string[] = [];

  /** The messages that this piece of text completes. */
  take(text: string): Message[] {
    const found: Message[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0)
          found.push({ id: this.id, event: this.event || "message", data: this.data.join("\n") });
        this.event = "";
        this.data = [];
        continue;
      }
      if (line.startsWith(":")) continue;
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") this.data.push(value);
      else if (field === "event") this.event = value;
      else if (field === "id" && !value.includes("\0")) this.id = value;
    }
    return found;
  }
}
