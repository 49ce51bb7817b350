/**
 * Changes as they are committed: a stream of server-sent events that is taken up again where it broke off.
 *
 * Each event has the position behind it. What is handed out moves the position, and a connection that is lost, by the
 * server or on the way, is opened again at it: nothing is lost, nothing comes twice. Half an event is none.
 */

import { ConnectionFailed, MunimentError } from "./errors.js";
import { mayPass, sleep, waitMs, type Asking, type Transport } from "./transport.js";
import type { Changes } from "./types.js";

export interface ChangesOptions {
  /** The position after which to begin: `position` of what was handed out last. Without it, from now on. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
  /** A connection on which nothing comes for so long is taken for lost. The server says every 15 seconds that it is there. */
  idleMs?: number | undefined;
  /** How often it is tried again in a row before it is given up; without end unless given. */
  maxRetries?: number | undefined;
}

const IDLE_MS = 45_000;

export async function* followed(
  transport: Transport,
  asking: Pick<Asking, "template" | "names">,
  options: ChangesOptions,
): AsyncGenerator<Changes, void, undefined> {
  const { signal, idleMs = IDLE_MS, maxRetries = Infinity } = options;
  // Where it begins is asked first: a stream that breaks before its first event would not know.
  const begin = { ...asking, method: "get" };
  let position = options.after ?? ((await transport.ask(begin, { signal, maxRetries })) as Changes).position;
  for (let retries = 0; ; ) {
    try {
      const accept = "text/event-stream";
      const opening = { ...begin, query: { after: position }, accept };
      const once = { signal, maxRetries: 0, timeoutMs: idleMs };
      const body = await transport.send(opening, once, (response) => Promise.resolve(response.body));
      for await (const changes of eventsOf(body, idleMs, signal)) {
        retries = 0;
        position = changes.position;
        if (!isEmpty(changes)) yield changes;
      }
      signal?.throwIfAborted();
      throw new ConnectionFailed("the stream has ended");
    } catch (error) {
      if (!(error instanceof MunimentError) || retries >= maxRetries || !mayPass(error, true)) throw error;
      await sleep(waitMs(error, retries++, transport.retryDelayMs), signal);
    }
  }
}

/** The events of one connection, until it ends. */
async function* eventsOf(
  body: ReadableStream<Uint8Array> | null,
  idleMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Changes, void, undefined> {
  if (body === null) throw new ConnectionFailed("the answer has no body");
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), idleMs, signal);
      if (done) return;
      const events = (held + decoder.decode(value, { stream: true })).split("\n\n");
      held = events.pop() ?? "";
      for (const event of events) {
        const data = event.split("\n").filter((line) => line.startsWith("data: "));
        if (data.length > 0) yield JSON.parse(data.map((line) => line.slice(6)).join("\n")) as Changes;
      }
    }
  } finally {
    // However it ends, by a broken connection too, the server is told that nobody listens any longer.
    await reader.cancel().catch(() => undefined);
  }
}

/** What comes, if it comes in time. */
async function within<T>(coming: Promise<T>, ms: number, signal: AbortSignal | undefined): Promise<T> {
  const waiting = new AbortController();
  const end = (): void => waiting.abort(signal?.reason);
  signal?.addEventListener("abort", end);
  try {
    signal?.throwIfAborted();
    const late = sleep(ms, waiting.signal).then((): never => {
      throw new ConnectionFailed(`nothing came for ${ms} ms`);
    });
    return await Promise.race([coming, late]);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof MunimentError) throw error;
    throw new ConnectionFailed("the connection broke", { cause: error });
  } finally {
    signal?.removeEventListener("abort", end);
    waiting.abort();
  }
}

function isEmpty({ reset, entries, builds, receipts }: Changes): boolean {
  return !(reset || entries?.length || builds?.length || receipts?.length);
}
