/** The path below which a proxy serves the page, as the server's document says: empty, or `/lineage`. */
export const root =
  document.querySelector<HTMLMetaElement>('meta[name="headwater-root"]')?.content ?? "";

/** A path of the address bar as the page knows it, without that part. */
export function below(pathname: string): string {
  return root && `${pathname}/`.startsWith(`${root}/`)
    ? pathname.slice(root.length) || "/"
    : pathname;
}
