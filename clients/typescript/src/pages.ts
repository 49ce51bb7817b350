/** A list that is asked for page by page, while somebody goes through it. */

import type { Asking, CallOptions, Transport } from "./transport.js";

interface Page<T> {
  items: T[];
  next?: string;
}

/** How many items a server puts on a page at most. */
const PAGE_MAX = 1000;

/** The items of a list, of as many pages as it takes: all, or as many as `limit` says. */
export async function* listed<T>(
  transport: Transport,
  asking: Omit<Asking, "method">,
  options: CallOptions = {},
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  const limit = asking.query?.["limit"];
  let left = typeof limit === "number" ? limit : Infinity;
  do {
    const query = { ...asking.query, limit: limit === undefined ? undefined : Math.min(left, PAGE_MAX), cursor };
    const page = (await transport.ask({ ...asking, method: "get", query }, options)) as Page<T>;
    for (const item of page.items) {
      if (left-- <= 0) return;
      yield item;
    }
    cursor = page.next;
  } while (cursor !== undefined && left > 0);
}
