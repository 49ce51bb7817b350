/**
 * A list of any length, of which a stretch is held: it goes on in both directions, and lets go at the other end of
 * what would be too much. What is looked for is asked of the server, never of the stretch that happens to be here.
 */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { bundle, get, Problem, withQuery, type Page, type Query } from "./api";
import { fits } from "./format";
import type { About } from "./live";
import { useLive } from "./loading";

export type Order = "asc" | "desc";

/** How many are asked for at once, and how many are held at most. */
const STEP = 100;
const HELD_MAX = 300;
/** Between two looks for words because something changed: each goes through the whole list. */
const SEARCH_REST_MS = 6000;

export interface Asked<T> {
  path: string;
  order: Order;
  key: (item: T) => string;
  /** Words that are looked for, and whatever else is asked of the list. */
  q?: string;
  query?: Query;
  /** A list that goes one way only, from its beginning. */
  oneWay?: boolean;
  /** One in the midst of what is shown first. */
  around?: string | null;
  /** What is shown of what is answered, where the server cannot be asked for it. */
  keep?: (item: T) => boolean;
  live?: boolean | About;
  /** In a bundle, where everything is here: in which order the list was written down, and the words of an item. */
  written?: Order;
  words?: (item: T) => (string | null | undefined)[];
}

interface End {
  done: boolean;
  cursor?: string | undefined;
}

interface Stretch<T> {
  items: T[];
  before: End;
  after: End;
  count?: number | undefined;
}

export type Doing = "start" | "before" | "after" | null;

export interface Feed<T> extends Stretch<T> {
  doing: Doing;
  problem?: Problem | undefined;
  isFiltered: boolean;
  isOneWay: boolean;
  earlier: () => void;
  later: () => void;
  first: () => void;
  last: () => void;
}

type From = { cursor?: string | undefined; around?: string };
type Hear<T> = (items: T[]) => void;

const NOTHING = { items: [], before: { done: true }, after: { done: true } };

function turned(order: Order): Order {
  return order === "asc" ? "desc" : "asc";
}

async function page<T>(asked: Asked<T>, order: Order, from: From, limit: number, signal: AbortSignal): Promise<Page<T>> {
  if (!bundle)
    return get<Page<T>>(
      withQuery(asked.path, { ...asked.query, q: asked.q, order: asked.oneWay ? undefined : order, limit, ...from }),
      signal,
    );
  const { items } = await get<Page<T>>(asked.path);
  const kind = asked.query?.["kind"];
  const wanted = items.filter(
    (each) =>
      fits(asked.q ?? "", ...(asked.words?.(each) ?? [])) && (!kind || (each as { kind?: string }).kind === kind),
  );
  if (order !== (asked.written ?? "asc")) wanted.reverse();
  const middle = from.around === undefined ? -1 : wanted.findIndex((each) => asked.key(each) === from.around);
  const start = middle < 0 ? Number(from.cursor ?? 0) : Math.max(0, middle - Math.floor(limit / 2));
  const end = start + limit;
  return {
    items: wanted.slice(start, end),
    ...(end < wanted.length ? { next: String(end) } : {}),
    ...(asked.q ? {} : { count: wanted.length }),
  };
}

/** At least so many from a place, unless the list ends: a page may hold few where few of those looked at fit. */
async function pull<T>(
  asked: Asked<T>,
  order: Order,
  from: From,
  wanted: number,
  signal: AbortSignal,
  hear: Hear<T> = () => undefined,
): Promise<Page<T>> {
  const items: T[] = [];
  let next: From = from;
  let count: number | undefined;
  for (;;) {
    const found = await page(asked, order, next, wanted, signal);
    items.push(...(asked.keep ? found.items.filter(asked.keep) : found.items));
    count ??= found.count;
    if (found.next === undefined || items.length >= wanted)
      return { items, ...(found.next ? { next: found.next } : {}), ...(count === undefined ? {} : { count }) };
    hear([...items]);
    next = { cursor: found.next };
  }
}

function end(next: string | undefined): End {
  return { done: next === undefined, cursor: next };
}

async function begin<T>(asked: Asked<T>, at: "first" | "last", signal: AbortSignal, hear: Hear<T>): Promise<Stretch<T>> {
  if (asked.around) {
    const found = await page(asked, asked.order, { around: asked.around }, STEP, signal);
    const middle = found.items.findIndex((each) => asked.key(each) === asked.around);
    // Where less than half came before it, the list begins there; else the next look says so.
    const isFirst = !asked.q && middle < Math.floor(STEP / 2);
    return { items: found.items, before: { done: isFirst }, after: end(found.next), count: found.count };
  }
  if (at === "last") {
    const found = await pull(asked, turned(asked.order), {}, STEP, signal);
    return { items: found.items.reverse(), before: end(found.next), after: { done: true }, count: found.count };
  }
  const found = await pull(asked, asked.order, {}, STEP, signal, hear);
  return { items: found.items, before: { done: true }, after: end(found.next), count: found.count };
}

/** The place to go on from at an end: its cursor or, where it was let go of, that of the item that stands there. */
async function edge<T>(asked: Asked<T>, held: Stretch<T>, side: "before" | "after", signal: AbortSignal): Promise<End> {
  const { cursor } = held[side];
  const item = side === "before" ? held.items[0] : held.items.at(-1);
  if (cursor !== undefined || item === undefined) return held[side];
  const order = side === "before" ? turned(asked.order) : asked.order;
  return end((await page(asked, order, { around: asked.key(item) }, 1, signal)).next);
}

async function extend<T>(asked: Asked<T>, held: Stretch<T>, side: "before" | "after", signal: AbortSignal) {
  const at = await edge(asked, held, side, signal);
  if (at.done) return { ...held, [side]: at };
  const order = side === "before" ? turned(asked.order) : asked.order;
  const found = await pull(asked, order, { cursor: at.cursor }, STEP, signal);
  if (side === "after") {
    const items = [...held.items, ...found.items];
    const cut = asked.oneWay ? 0 : Math.max(0, items.length - HELD_MAX);
    return { ...held, items: items.slice(cut), after: end(found.next), before: cut ? { done: false } : held.before };
  }
  const items = [...found.items.reverse(), ...held.items];
  const isCut = items.length > HELD_MAX;
  return { ...held, items: items.slice(0, HELD_MAX), before: end(found.next), after: isCut ? { done: false } : held.after };
}

/** The same stretch once more, and what was added at its end where that was seen. */
async function look<T>(asked: Asked<T>, held: Stretch<T>, signal: AbortSignal): Promise<Stretch<T>> {
  const more = held.after.done ? STEP : 0;
  const size = Math.min(HELD_MAX, Math.max(STEP, held.items.length + more));
  if (held.before.done) {
    const found = await pull(asked, asked.order, {}, size, signal);
    return { items: found.items, before: { done: true }, after: end(found.next), count: found.count };
  }
  if (held.after.done) {
    const found = await pull(asked, turned(asked.order), {}, held.items.length, signal);
    return { items: found.items.reverse(), before: end(found.next), after: { done: true }, count: found.count };
  }
  const middle = held.items[Math.floor(held.items.length / 2)];
  if (middle === undefined) return held;
  const found = await page(asked, asked.order, { around: asked.key(middle) }, held.items.length, signal);
  return { items: found.items, before: { done: false }, after: end(found.next), count: found.count };
}

/** The list that is asked for; null where there is nothing to ask yet. */
export function useFeed<T>(asked: Asked<T> | null): Feed<T> {
  const name = asked && JSON.stringify([asked.path, asked.order, asked.q, asked.query, asked.around]);
  const [state, setState] = useState<{ name: string | null; held: Stretch<T>; doing: Doing; problem?: Problem }>({
    name: null,
    held: NOTHING,
    doing: "start",
  });
  const now = useRef({ asked, state, stop: new AbortController() });
  now.current.asked = asked;
  now.current.state = state;

  const act = useCallback(
    (doing: Doing, work: (asked: Asked<T>, held: Stretch<T>, signal: AbortSignal) => Promise<Stretch<T>>) => {
      const { asked, stop: old } = now.current;
      if (!asked || name === null) return;
      old.abort();
      const stop = (now.current.stop = new AbortController());
      setState((was) => ({ name, held: was.name === name ? was.held : NOTHING, doing }));
      work(asked, now.current.state.name === name ? now.current.state.held : NOTHING, stop.signal).then(
        (held) => stop.signal.aborted || setState({ name, held, doing: null }),
        (error: unknown) => {
          if (stop.signal.aborted) return;
          const problem = error instanceof Problem ? error : new Problem(0, "defect", String(error));
          setState((was) => ({ name, held: was.held, doing: null, problem }));
        },
      );
    },
    [name],
  );
  const start = useCallback(
    (at: "first" | "last", around: boolean) =>
      act("start", (asked, _held, signal) =>
        begin(around ? asked : { ...asked, around: null }, at, signal, (items) => {
          if (!signal.aborted)
            setState({ name, held: { items, before: { done: true }, after: { done: false } }, doing: "start" });
        }),
      ),
    [act],
  );
  useEffect(() => {
    start("first", true);
    return () => now.current.stop.abort();
  }, [start]);

  const again = useCallback(() => {
    const { state, asked } = now.current;
    if (!asked || state.name !== name || state.doing !== null) return;
    if (state.problem) return start("first", true);
    const stop = (now.current.stop = new AbortController());
    look(asked, state.held, stop.signal).then(
      (held) => {
        if (stop.signal.aborted || JSON.stringify(held) === JSON.stringify(state.held)) return;
        setState({ name, held, doing: null });
      },
      () => stop.signal.aborted || start("first", true), // what it went by is gone
    );
  }, [name, start]);
  useLive(asked ? asked.path : null, asked?.live ?? false, again, asked?.q ? SEARCH_REST_MS : undefined);

  const isThis = state.name === name;
  return {
    ...(isThis ? state.held : NOTHING),
    doing: isThis ? state.doing : "start",
    problem: isThis ? state.problem : undefined,
    isOneWay: Boolean(asked?.oneWay),
    isFiltered: Boolean(asked?.q || asked?.query?.["kind"] || asked?.keep),
    earlier: () => act("before", (asked, held, signal) => extend(asked, held, "before", signal)),
    later: () => act("after", (asked, held, signal) => extend(asked, held, "after", signal)),
    first: () => start("first", false),
    last: () => start("last", false),
  };
}
