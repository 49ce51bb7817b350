/** Asking, while a page stands: once, or again whenever something changed while it is live and seen. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { bundle, get, getAll, Problem, type Read } from "./api";
import { isTold, onChange, POLL_MS, type About } from "./live";
import { choices } from "./store";

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  again: () => void;
}

/** Between two times that a list is asked for because something changed. */
const REST_MS = 800;

/** Has `again` called whenever something changed that is looked at, while the page is live and seen. */
export function useLive(name: string | null, live: boolean | About, again: () => void, restMs = REST_MS): void {
  const about = useRef(live);
  about.current = live;
  useEffect(() => {
    if (!about.current || bundle || name === null) return;
    let due = 0;
    let free = 0;
    const stop = onChange((changes) => {
      if (due || (typeof about.current === "function" && !about.current(changes))) return;
      due = window.setTimeout(
        () => {
          due = 0;
          free = Date.now() + restMs;
          again();
        },
        Math.max(0, free - Date.now()),
      );
    });
    const timer = setInterval(() => {
      if (choices().live && !document.hidden && !isTold(name)) again();
    }, POLL_MS);
    return () => {
      stop();
      clearTimeout(due);
      clearInterval(timer);
    };
  }, [Boolean(live), name, again, restMs]);
}

/** What `ask` answers; asked anew when `name` changes and, where it is `live`, when something did that it is about. */
export function useAsked<T>(
  name: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  live: boolean | About = false,
): Loaded<T> {
  const [state, setState] = useState<{ name: string | null; data?: T; problem?: Problem }>({ name: null });
  const [turn, setTurn] = useState(0);
  const held = useRef("");
  const asking = useRef(ask);
  asking.current = ask;
  const again = useCallback(() => setTurn((n) => n + 1), []);

  useEffect(() => {
    if (name === null) return;
    const stop = new AbortController();
    asking.current(stop.signal).then(
      (data) => {
        const said = `${name}\n${JSON.stringify(data)}`;
        if (stop.signal.aborted || said === held.current) return;
        held.current = said;
        setState({ name, data });
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        held.current = "";
        setState({ name, problem: error instanceof Problem ? error : new Problem(0, "defect", String(error)) });
      },
    );
    return () => stop.abort();
  }, [name, turn]);

  useLive(name, live, again);

  const isThis = state.name === name;
  return {
    data: isThis ? state.data : undefined,
    problem: isThis ? state.problem : undefined,
    loading: name !== null && !isThis,
    again,
  };
}

export function useGet<T>(path: string | null, live: boolean | About = false): Loaded<T> {
  return useAsked<T>(path, (signal) => get<T>(path as string, signal), live);
}

export function useList<T>(path: string | null, live: boolean | About = false, max = 5000): Loaded<Read<T>> {
  return useAsked<Read<T>>(path, (signal) => getAll<T>(path as string, max, signal), live);
}
