import type { Component } from "svelte";

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
