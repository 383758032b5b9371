// Methods, and the commands that train them.

import type { Option } from "./OptionField.svelte";
import { command, keywords, python } from "./shell";

/** A field that describes how a data file is read. */
export interface Field {
  name: string; // of the flag
  keyword: string; // of the Python class
  help: string;
  role: "column" | "columns" | "choice" | "flag" | "source";
  default: string | string[] | boolean | null;
  choices: string[];
  needed: boolean; // in records; text has no columns
  empty: string; // meaning of an empty value
}

export interface Method {
  name: string;
  class: string;
  summary: string;
  family: string;
  data: { module: string; class: string }; // the type of its data, in Python
  needs_start: boolean;
  options: Option[];
  fields: Field[];
}

export type Value = string | number | boolean;
export type Values = Record<string, Value>;

/** The request for a training run. */
export interface Training {
  method: Method;
  name: string;
  options: Values;
  run: Values;
  data: Values;
  start: string | null;
}

const USUAL = ["dim", "epochs", "window", "learning_rate", "min_count", "layers", "heads", "factors"]; // options that are shown first

/** Families in display order, with their purpose. */
export const FAMILIES: Record<string, string> = {
  words: "Word vectors",
  documents: "Documents",
  tables: "Rows of a table",
  graphs: "Nodes of a graph",
  recommenders: "Users and items",
  transformers: "Texts, by transformers (slower)",
  finetuning: "A pre-trained BERT or GPT, fine-tuned",
};

export function usualFirst(options: Option[]): Option[] {
  const position = (option: Option) => (USUAL.includes(option.name) ? USUAL.indexOf(option.name) : USUAL.length);
  return [...options].sort((a, b) => position(a) - position(b));
}

/** The entered values with their types, without empty ones. */
export function values(options: Option[], typed: Record<string, string>): Values {
  return Object.fromEntries(
    options.flatMap((option) => {
      const text = typed[option.name];
      if (!text) return [];
      const number = option.kind === "whole" || option.kind === "number";
      return [[option.name, number ? Number(text) : option.kind === "flag" ? text === "true" : text]];
    }),
  );
}

/** The paths of the files and models of a run. */
export interface Paths {
  data: string;
  source: (id: string) => string;
  model: (name: string) => string;
}

export function trainCommand(run: Training, paths: Paths): string {
  const sources = new Set(run.method.fields.filter((field) => field.role === "source").map((field) => field.name));
  const flags = Object.entries({ ...run.data, ...run.options, ...run.run }).map(([name, value]) => {
    const flag = name.replaceAll("_", "-");
    if (typeof value === "boolean") return `--${value ? "" : "no-"}${flag}`;
    return `--${flag}=${sources.has(name) ? paths.source(String(value)) : value}`;
  });
  const verb = run.method.family === "finetuning" ? "finetune" : "train";
  const start = run.start ? [paths.model(run.start)] : [];
  const [base, continued] = run.method.needs_start ? [start, []] : [[], start.length ? ["--start", ...start] : []];
  return command("firth", verb, run.method.name, ...base, paths.data, ...flags, ...continued, "-o", run.name);
}

/** The value of a field as the Python class takes it. A flag stands for the opposite of the default. */
function argument(field: Field, value: Value, paths: Paths): Value | string[] {
  if (field.role === "flag") return !field.default;
  if (field.role === "source") return paths.source(String(value));
  if (field.role !== "columns") return value;
  return String(value)
    .split(",")
    .map((name) => name.trim());
}

/** The lines after `import firth`. */
export function trainPython(run: Training, paths: Paths): string {
  const data = run.method.fields.flatMap((field) => {
    const value = run.data[field.name];
    return value === undefined ? [] : [[field.keyword, argument(field, value, paths)]];
  });
  const opened = [python(paths.data), keywords(Object.fromEntries(data))].filter(Boolean).join(", ");
  const { module, class: name } = run.method.data;
  const how = [
    ...(Object.keys(run.run).length ? [`run=firth.Run(${keywords(run.run)})`] : []),
    ...(run.start ? [`start=firth.load(${python(paths.model(run.start))})`] : []),
  ];
  return (
    (module === "firth" ? "" : `import ${module}\n\n`) +
    `data = ${module}.${name}(${opened})\n` +
    `firth.train(${[`firth.${run.method.class}(${keywords(run.options)})`, "data", python(run.name), ...how].join(", ")})`
  );
}
