import type { Component } from "svelte";
import type { Model } from "./lib/models.svelte";

/** What a view says of itself, in its `<script module>`: `export const view: View = {…}`. */
export interface View {
  name: string; // in the address: #/name
  title: string; // in the navigation
  group: "" | "Make" | "Look" | "Use";
  order: number; // within all views
  can?: string[]; // models that can do one of these are looked at here
}

interface Module {
  view: View;
  default: Component;
}

/** Adding a view is adding a file to views/. */
export const views = Object.values(import.meta.glob<Module>("./views/*.svelte", { eager: true }))
  .map((module) => ({ ...module.view, component: module.default }))
  .sort((a, b) => a.order - b.order);

/** The views that can look at a model. */
export function looks(model: Model): { name: string; title: string }[] {
  const drawn = Object.values(model.tables).some((size) => size.rows >= 4 && size.dim >= 2); // as the server has it
  return views.filter((view) => view.can?.some((one) => model.can.includes(one)) && (view.name !== "map" || drawn));
}
