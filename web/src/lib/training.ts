// Methods, and the commands that train them.

import type { Option } from "./OptionField.svelte";
import { command, keywords, python } from "./shell";

/** A field that describes how a data file is read. */
export interface Field {
  name: string;
  help: string;
  kind: "column" | "columns" | "choice" | "flag" | "source";
  choices: string[];
  needed: boolean;
  empty: string; // meaning of an empty value
}

export interface Method {
  name: string;
  class: string;
  summary: string;
  family: string;
  kind: string; // of data
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

const OPENED: Record<string, string> = {
  labelled: "LabeledTexts",
  table: "Table",
  graph: "Graph",
  ratings: "Interactions",
  pairs: "TranslationPairs",
  alike: "SimilarPairs",
  examples: "Examples",
  questions: "Questions",
  "tagged words": "TaggedSentences",
};

/** Kinds of data whose classes call the column of texts `text`. */
const TEXT_COLUMN = new Set(["alike", "examples", "tagged words"]);

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
  const sources = new Set(run.method.fields.filter((field) => field.kind === "source").map((field) => field.name));
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

/** The lines after `import firth`. */
export function trainPython(run: Training, paths: Paths): string {
  const kinds = new Map(run.method.fields.map((field) => [field.name, field.kind]));
  const data = Object.entries(run.data).map(([name, value]) => {
    const kind = kinds.get(name);
    const read =
      kind === "columns"
        ? String(value)
            .split(",")
            .map((one) => one.trim())
        : kind === "source"
          ? paths.source(String(value))
          : value;
    return [name === "column" && TEXT_COLUMN.has(run.method.kind) ? "text" : name.replace("-column", ""), read];
  });
  const opened = [python(paths.data), keywords(Object.fromEntries(data))].filter(Boolean).join(", ");
  const how = [
    ...(Object.keys(run.run).length ? [`run=firth.Run(${keywords(run.run)})`] : []),
    ...(run.start ? [`start=firth.load(${python(paths.model(run.start))})`] : []),
  ];
  return (
    `data = firth.${OPENED[run.method.kind] ?? "Corpus"}(${opened})\n` +
    `firth.train(${[`firth.${run.method.class}(${keywords(run.options)})`, "data", python(run.name), ...how].join(", ")})`
  );
}
