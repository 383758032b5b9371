import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// File names have no hashes and chunking is deterministic, because the output is committed and a fresh build must be
// identical.
export default defineConfig({
  base: "./",
  plugins: [svelte()],
  build: {
    outDir: "../src/firth/server/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's content security policy allows data: URLs for images only
    modulePreload: { polyfill: false }, // it would be an inline script
    chunkSizeWarningLimit: 1500,
    license: { fileName: "licenses.md" },
    rolldownOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
