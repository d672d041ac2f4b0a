import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

export const JSX = "#jsx";
/** The page's own way to make elements: see src/jsx/jsx-runtime.ts. */
export const alias = { [JSX]: fileURLToPath(new URL("src/jsx", import.meta.url)) };
const server = process.env.HEADWATER_URL ?? "http://127.0.0.1:5000";

/**
 * The built files hold other people's code, so their licences stand beside them. Not Vite's
 * `build.license`: it leaves out what only a worker imports.
 */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle() {
      const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
      const texts: string[] = [];
      for (const [path, { dev, version, license }] of Object.entries<Record<string, string>>(
        lock.packages,
      )) {
        if (!path || dev || path.includes("/@types/")) continue;
        const file = readdirSync(path).find((name) => /^licen[cs]e(\.\w+)?$/i.test(name));
        if (!file) this.error(`${path} has no licence text`);
        const name = path.replace(/^.*node_modules\//, "");
        const text = readFileSync(`${path}/${file}`, "utf8").trim();
        texts.push(`${name} ${version} (${license})\n\n${text}\n`);
      }
      const source = texts.join(`\n${"-".repeat(80)}\n\n`);
      this.emitFile({ type: "asset", fileName: "licences.txt", source });
    },
  };
}

export default defineConfig({
  plugins: [react({ jsxImportSource: JSX }), licences()],
  resolve: { alias },
  // Relative, because the server may be below a path that only it knows: see src/lib/root.ts.
  base: "./",
  build: {
    outDir: "../src/headwater/server/page",
    emptyOutDir: true,
    target: "es2022",
    // Everything stays a file of its own: the policy allows no inline script, style or data font.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // A slow machine is no fault of the build: not a word about how long each plugin took.
    rolldownOptions: { checks: { pluginTimings: false, bundlerTimings: false } },
  },
  worker: { format: "es" },
  server: { proxy: { "/api": server } },
});
