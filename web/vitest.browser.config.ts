import { defineConfig } from "vitest/config";

/** What is held to a time has the machine for itself; the rest shares its two cores. */
const TIMED = ["browser/scale.test.ts", "browser/responsive.test.ts"];

export default defineConfig({
  test: {
    // Long, since a busy machine is no fault of the page; how quick it is has tests of its own.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Each worker loads the browser's driver and axe once for all of its files.
    isolate: false,
    expect: { poll: { timeout: 60_000, interval: 50 } },
    projects: [
      {
        extends: true,
        test: {
          name: "pages",
          include: ["browser/*.test.ts"],
          exclude: TIMED,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: "timed", include: TIMED, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
