import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// File names carry no hashes and chunks are cut the same way each time: the output is committed, and a fresh build must
// give the same bytes.
export default defineConfig({
  base: "./",
  plugins: [svelte()],
  build: {
    outDir: "../src/firth/server/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's policy allows no data: but for pictures
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
