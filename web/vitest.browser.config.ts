import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"],
    // The pages share two cores with the server and the browser: one file after the other.
    fileParallelism: false,
    // Long, since a busy machine is no fault of the page; how quick it is has tests of its own.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000, interval: 50 } },
  },
});
