import { message } from "./api";

/** Something the server is asked, again whenever the question changes. */
export interface Resource<T> {
  readonly data: T | undefined; // the last answer, also while the next is awaited
  readonly error: string;
  readonly busy: boolean;
  again(): void;
}

/**
 * Called while a component starts. `question` is tracked: null asks nothing; an equal question is not asked twice, and
 * an answer to an older question is dropped.
 */
export function resource<Q, T>(
  question: () => Q | null | undefined,
  ask: (question: Q, signal: AbortSignal) => Promise<T>,
  delay = 0,
): Resource<T> {
  let data = $state.raw<T | undefined>();
  let error = $state("");
  let busy = $state(false);
  let turn = $state(0);
  const key = $derived(JSON.stringify(question() ?? null));

  $effect(() => {
    void turn;
    const asked = JSON.parse(key) as Q | null;
    error = "";
    if (asked === null) {
      data = undefined;
      busy = false;
      return;
    }
    const stop = new AbortController();
    busy = true;
    const timer = setTimeout(async () => {
      try {
        const answer = await ask(asked, stop.signal);
        if (!stop.signal.aborted) data = answer;
      } catch (problem) {
        if (stop.signal.aborted) return;
        data = undefined;
        error = message(problem);
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
    get busy() {
      return busy;
    },
    again: () => void turn++,
  };
}
