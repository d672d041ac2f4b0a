import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { alias, JSX } from "./vite.config.ts";

export default defineConfig({
  plugins: [react({ jsxImportSource: JSX })],
  resolve: { alias },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    // Each worker makes a document and loads the page's modules once for all of its files.
    isolate: false,
  },
});
