const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text in which the marks that turn the direction of writing are seen, as the commands show them. */
export function shown(text: string): string {
  return text.replace(TURNING, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
