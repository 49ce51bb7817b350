import { defineConfig } from "vite";

// One script and one style sheet, so that `muniment run view` can write them into a single file.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/muniment/surfaces/inspector/dist",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    license: { fileName: "licenses.json" }, // what was bundled, for tools/make_licenses.py
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8765" } },
});
