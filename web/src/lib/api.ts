// Calls of the server that this page came from. Each carries the token that the server wrote into the page.

const token = document.querySelector<HTMLMetaElement>('meta[name="firth-token"]')?.content ?? "";

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
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
  headers.set("X-Firth-Token", token);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer. Is `firth studio` still running?", 0);
  }
  if (!answer.ok) throw new ApiError(await problem(answer), answer.status);
  return answer;
}

/** What went wrong in words: servers of this kind say it under several names. */
async function problem(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    const said = JSON.parse(text);
    const detail = said.error?.message ?? said.error ?? said.detail ?? said.message;
    if (Array.isArray(detail)) return detail.map((one) => `${one.loc?.at(-1) ?? "input"}: ${one.msg}`).join("; ");
    if (typeof detail === "string") return detail;
  } catch {
    // not JSON
  }
  return answer.status === 403 || answer.status === 401
    ? "The server was started anew: load this page again."
    : `The server answered ${answer.status} ${answer.statusText}.`;
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

/** A file as the body, as it is: nothing is parsed on the way. */
export async function upload<T>(path: string, file: Blob, query: Query = {}): Promise<T> {
  const headers = { "Content-Type": "application/octet-stream" };
  return (await call(address(path, query), { method: "POST", body: file, headers })).json() as Promise<T>;
}

/** Numbers as they lie in memory, with what the server says of them in its headers. While they are made, `soFar` is told. */
export async function bytes<T>(path: string, query: Query, signal: AbortSignal, soFar: (told: T) => void): Promise<[ArrayBuffer, Headers]> {
  for (;;) {
    const answer = await call(address(path, query), { signal });
    if (answer.status !== 202) return [await answer.arrayBuffer(), answer.headers];
    soFar((await answer.json()) as T);
  }
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
