// Shows /openapi.json: each route with its fields, its answers, and a form to try it. No library, nothing from elsewhere.
"use strict";

function made(tag, text, parent) {
  const node = document.createElement(tag);
  if (text) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

function typed(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(typed).join(" | ");
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.type === "array") return `list of (${schema.items ? typed(schema.items) : "any"})`;
  return schema.type || "any";
}

function fields(schema, parent) {
  const table = made("table", "", parent);
  const head = made("tr", "", made("thead", "", table));
  for (const name of ["field", "type", "meaning"]) made("th", name, head).scope = "col";
  const body = made("tbody", "", table);
  for (const [name, field] of Object.entries(schema.properties || {})) {
    const row = made("tr", "", body);
    made("code", name, made("td", "", row));
    made("td", typed(field), row);
    const fixed = (schema.required || []).includes(name) ? "needed. " : "";
    const other = field.default === undefined || field.default === null ? "" : `Else ${JSON.stringify(field.default)}. `;
    made("td", fixed + other + (field.description || ""), row);
  }
}

const EXAMPLES = {
  "/v1/embeddings": (model) => ({ model, input: ["a first text", "a second one"] }),
  "/embed": () => ({ inputs: "a text" }),
  "/embed_all": () => ({ inputs: "a text" }),
  "/similarity": () => ({ inputs: { source_sentence: "a text", sentences: ["another text", "and one more"] } }),
  "/tokenize": () => ({ inputs: "a text" }),
  "/predict": () => ({ inputs: "a text" }),
  "/search": () => ({ query: "a text", k: 5 }),
};

function form(method, path, model, parent) {
  const input = made("textarea");
  if (method === "post") {
    const label = made("label", "Body", parent);
    input.value = JSON.stringify((EXAMPLES[path] || (() => ({})))(model), null, 1);
    label.append(input);
  }
  const button = made("button", "Try it", parent);
  const output = made("pre", "", parent);
  output.hidden = true;
  button.addEventListener("click", async () => {
    const post = { method: "POST", body: input.value, headers: { "content-type": "application/json" } };
    const answer = await fetch(path, method === "post" ? post : {});
    const text = await answer.text();
    output.hidden = false;
    output.textContent = `${answer.status}\n${text.length > 4000 ? text.slice(0, 4000) + "…" : text}`;
  });
}

async function show() {
  const place = document.getElementById("routes");
  const [described, served] = await Promise.all(["/openapi.json", "/v1/models"].map((path) => fetch(path).then((a) => a.json())));
  const model = served.data.length ? served.data[0].id : "";
  place.textContent = "";
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      const section = made("section", "", place);
      made("h2", `${method.toUpperCase()} ${path}`, section);
      made("p", route.description || route.summary, section);
      const content = route.requestBody && route.requestBody.content["application/json"];
      if (content) fields(content.schema, section);
      const answers = Object.entries(route.responses).map(([status, told]) => `${status} ${told.description}`);
      made("p", `Answers: ${answers.join(" · ")}`, section);
      if (!path.includes("{")) form(method, path, model, section);
    }
  }
}

show().catch((error) => {
  document.getElementById("routes").textContent = `This can't be shown: ${error}`;
});
