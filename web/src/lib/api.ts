// Requests to the server of this page, with the token.

import { access } from "./access.svelte";

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code = "",
  ) {
    super(message);
  }
}

type Query = Record<string, string | number | boolean | string[] | null | undefined>;

function address(path: string, query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    for (const one of [value].flat()) params.append(name, String(one));
  }
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

async function call(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("X-Firth-Token", access.token);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError("The server does not respond. Is `firth studio` still running?", 0);
  }
  if (answer.ok) return answer;
  const error = await problem(answer);
  if (error.code === "invalid_token") {
    if (access.renewed()) return call(path, init);
    access.refused = true;
  }
  throw error;
}

/** The message of an error response, in any of several formats. */
async function problem(answer: Response): Promise<ApiError> {
  let [text, code] = [`The server answered ${answer.status} ${answer.statusText}.`, ""];
  try {
    const body = JSON.parse(await answer.text());
    const detail = body.error?.message ?? body.error ?? body.detail ?? body.message;
    code = String(body.code ?? "");
    if (Array.isArray(detail)) text = detail.map((one) => `${one.loc?.at(-1) ?? "input"}: ${one.msg}`).join("; ");
    else if (typeof detail === "string") text = detail;
  } catch {
    // not JSON
  }
  return new ApiError(text, answer.status, code);
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await call(address(path, query), { signal })).json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  const init = { method: "POST", body: JSON.stringify(body), headers, signal };
  return (await call(path, init)).json() as Promise<T>;
}

export async function remove<T>(path: string): Promise<T> {
  return (await call(path, { method: "DELETE" })).json() as Promise<T>;
}

/** Uploads a file as the request body. */
export async function upload<T>(path: string, file: Blob, query: Query = {}): Promise<T> {
  const headers = { "Content-Type": "application/octet-stream" };
  return (await call(address(path, query), { method: "POST", body: file, headers })).json() as Promise<T>;
}

/** Downloads a file that the server generates, with its headers. */
export async function file(path: string, body: unknown): Promise<[Blob, Headers]> {
  const headers = { "Content-Type": "application/json" };
  const answer = await call(path, { method: "POST", body: JSON.stringify(body), headers });
  return [await answer.blob(), answer.headers];
}

/** Downloads binary numbers with the response headers; `soFar` gets the progress while they are computed. */
export async function bytes<T>(
  path: string,
  query: Query,
  signal: AbortSignal,
  soFar: (progress: T) => void,
): Promise<[ArrayBuffer, Headers]> {
  for (;;) {
    const answer = await call(address(path, query), { signal });
    if (answer.status !== 202) return [await answer.arrayBuffer(), answer.headers];
    soFar((await answer.json()) as T);
  }
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
