import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env.HEADWATER_URL ?? "http://127.0.0.1:5000";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/headwater/server/page",
    emptyOutDir: true,
    target: "es2022",
    // Everything stays a file of its own: the policy allows no inline script, style or data font.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: "es" },
  server: { proxy: { "/api": server } },
});
