import { ApiError, message } from "./api";

/** A server response that is fetched again whenever its request changes. */
export interface Resource<T> {
  readonly data: T | undefined; // the last response, also while the next is loading
  readonly error: string;
  readonly code: string; // of the error, as the server states it
  readonly busy: boolean;
  again(): void;
}

/**
 * Must be called during component initialization. `question` is tracked: null sends nothing; equal requests are not repeated,
 * and responses to outdated requests are dropped.
 */
export function resource<Q, T>(
  question: () => Q | null | undefined,
  ask: (question: Q, signal: AbortSignal) => Promise<T>,
  delay = 0,
): Resource<T> {
  let data = $state.raw<T | undefined>();
  let error = $state("");
  let code = $state("");
  let busy = $state(false);
  let turn = $state(0);
  const key = $derived(JSON.stringify(question() ?? null));

  $effect(() => {
    void turn;
    const request = JSON.parse(key) as Q | null;
    error = code = "";
    if (request === null) {
      data = undefined;
      busy = false;
      return;
    }
    const stop = new AbortController();
    busy = true;
    const timer = setTimeout(async () => {
      try {
        const answer = await ask(request, stop.signal);
        if (!stop.signal.aborted) data = answer;
      } catch (problem) {
        if (stop.signal.aborted) return;
        data = undefined;
        error = message(problem);
        code = problem instanceof ApiError ? problem.code : "";
      }
      if (!stop.signal.aborted) busy = false;
    }, delay);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  });

  return {
    get data() {
      return data;
    },
    get error() {
      return error;
    },
    get code() {
      return code;
    },
    get busy() {
      return busy;
    },
    again: () => void turn++,
  };
}
