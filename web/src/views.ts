import type { Component } from "svelte";
import type { Model } from "./lib/models.svelte";

/** The description of a view, in its `<script module>`: `export const view: View = {…}`. */
export interface View {
  name: string; // in the URL: #/name
  title: string; // in the navigation
  group: "" | "Build" | "Explore" | "Use";
  order: number; // within all views
  can?: string[]; // abilities of the models that it shows
}

interface Module {
  view: View;
  default: Component;
}

/** To add a view, add a file to views/. */
export const views = Object.values(import.meta.glob<Module>("./views/*.svelte", { eager: true }))
  .map((module) => ({ ...module.view, component: module.default }))
  .sort((a, b) => a.order - b.order);

/** The views that support a model. */
export function looks(model: Model): { name: string; title: string }[] {
  const drawn = Object.values(model.tables).some((size) => size.rows >= 4 && size.dim >= 2); // the server's limits
  return views.filter((view) => view.can?.some((one) => model.can.includes(one)) && (view.name !== "map" || drawn));
}
