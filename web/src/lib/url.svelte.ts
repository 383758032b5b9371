// The URL is the state: #/view?model=a&model=b&word=king. A view keeps its parameters when another is
// opened; the selected models and data are shared.

const SHARED = ["model", "data", "column"];
const PAUSE = 120; // minimum milliseconds between two changes of the URL

class Route {
  view = $state("");
  params = $state(new URLSearchParams());
  #last = new Map<string, URLSearchParams>();
  #written = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.#read();
    addEventListener("hashchange", () => this.#read());
  }

  #read(): void {
    clearTimeout(this.#timer);
    const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    this.view = path;
    this.params = new URLSearchParams(query);
    this.#last.set(path, this.params);
  }

  get(name: string): string | null {
    return this.params.get(name);
  }

  all(name: string): string[] {
    return this.params.getAll(name);
  }

  /** Changes parameters of the current view; null or an empty list removes one. */
  set(changes: Record<string, string | string[] | null>): void {
    const params = new URLSearchParams(this.params);
    for (const [name, value] of Object.entries(changes)) {
      params.delete(name);
      for (const one of value === null ? [] : [value].flat()) params.append(name, one);
    }
    this.params = params;
    this.#last.set(this.view, params);
    this.#write();
  }

  /** Browsers limit URL changes per second, so some are skipped while dragging. */
  #write(): void {
    const wait = this.#written + PAUSE - performance.now();
    clearTimeout(this.#timer);
    if (wait > 0) {
      this.#timer = setTimeout(() => this.#write(), wait);
      return;
    }
    this.#written = performance.now();
    history.replaceState(null, "", this.#hash(this.view, this.params));
  }

  /** The URL of a view with its last parameters, the selected models, and `changes`. */
  to(view: string, changes: Record<string, string | string[]> = {}): string {
    const params = new URLSearchParams(this.#last.get(view));
    for (const name of SHARED) {
      params.delete(name);
      for (const value of this.params.getAll(name)) params.append(name, value);
    }
    for (const [name, value] of Object.entries(changes)) {
      params.delete(name);
      for (const one of [value].flat()) params.append(name, one);
    }
    return this.#hash(view, params);
  }

  #hash(view: string, params: URLSearchParams): string {
    const query = params.toString();
    return `#/${view}${query ? `?${query}` : ""}`;
  }
}

export const route = new Route();

/** An input of a view, stored in the URL: `const word = param("word", "king")`, `bind:value={word.value}`. */
export function param(name: string, fallback = ""): { value: string } {
  return {
    get value() {
      return route.get(name) ?? fallback;
    },
    set value(value: string) {
      route.set({ [name]: value === fallback ? null : value });
    },
  };
}

/** The same for a number. */
export function numberParam(name: string, fallback: number): { value: number } {
  return {
    get value() {
      const given = Number(route.get(name) ?? Number.NaN);
      return Number.isFinite(given) ? given : fallback;
    },
    set value(value: number) {
      route.set({ [name]: value === fallback || !Number.isFinite(value) ? null : String(value) });
    },
  };
}
