/** Asking, while a page stands: once, or again and again while it is live and seen. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { bundle, get, getAll, Problem } from "./api";
import { choices } from "./store";

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  again: () => void;
}

const EVERY_MS = 3000;

/** What `ask` answers; asked anew when `name` changes, and every few seconds where it is `live`. */
export function useAsked<T>(name: string | null, ask: (signal: AbortSignal) => Promise<T>, live = false): Loaded<T> {
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

  useEffect(() => {
    if (!live || bundle || name === null) return;
    const timer = setInterval(() => {
      if (choices().live && !document.hidden) again();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [live, name, again]);

  const isThis = state.name === name;
  return {
    data: isThis ? state.data : undefined,
    problem: isThis ? state.problem : undefined,
    loading: name !== null && !isThis,
    again,
  };
}

export function useGet<T>(path: string | null, live = false): Loaded<T> {
  return useAsked<T>(path, (signal) => get<T>(path as string, signal), live);
}

export function useList<T>(path: string | null, live = false, max = 5000): Loaded<T[]> {
  return useAsked<T[]>(path, (signal) => getAll<T>(path as string, max, signal), live);
}
