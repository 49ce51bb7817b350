/**
 * Changes of the user who is looked at, as the server tells them: one stream for the page, while it is seen and live.
 * Where there is no stream, and for what it does not tell of, pages look again every few seconds.
 */

import { useEffect, useState } from "preact/hooks";
import type { Changes } from "./openapi";
import { at, bundle, openStream } from "./api";
import { choices } from "./store";

/** Whether a change is one that a page shows. */
export type About = (changes: Changes) => boolean;
type Listener = (changes: Changes) => void;
export type Pulse = "off" | "stream" | "poll";

export const POLL_MS = 3000;
const AGAIN_MS = [1000, 2000, 5000, 15000, 30000];

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let followed = "";
let position = "";
let stopped: AbortController | null = null;
let timer = 0;
let failures = 0;
let pulse: Pulse = "off";

function feel(next: Pulse): void {
  if (pulse === next) return;
  pulse = next;
  watchers.forEach((tell) => tell());
}

/** How the page is kept up to date. */
export function usePulse(): Pulse {
  const [, again] = useState(0);
  useEffect(() => {
    const tell = () => again((n) => n + 1);
    watchers.add(tell);
    return () => void watchers.delete(tell);
  }, []);
  return pulse;
}

/** Follow this user from now on; nobody where there is none. */
export function follow(tenant: string, user: string): void {
  const address = tenant && user ? at("tenants", tenant, "users", user, "changes") : "";
  if (address === followed) return;
  followed = address;
  position = "";
  failures = 0;
  settle();
}

/** Whether the stream tells of what an address answers: the user's own alone. */
export function isTold(address: string): boolean {
  return pulse === "stream" && address.startsWith(followed.slice(0, -"changes".length));
}

export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Open or close the stream, as it is wanted: a hidden page holds none, since a browser has few connections. */
export function settle(): void {
  const isWanted = followed !== "" && choices().live && !document.hidden && !bundle;
  clearTimeout(timer);
  stopped?.abort();
  stopped = null;
  if (!isWanted) {
    feel("off");
    return;
  }
  stopped = new AbortController();
  void listen(followed, stopped.signal);
}

async function listen(address: string, signal: AbortSignal): Promise<void> {
  try {
    for await (const event of events(await openStream(address, position, signal))) {
      if (signal.aborted) return;
      // What the pages show may be older than where a new stream begins: then they look once more.
      const isNews = event.name !== "here" || position === "";
      failures = 0;
      position = event.id;
      feel("stream");
      if (isNews) listeners.forEach((tell) => tell(event.name === "here" ? { ...event.data, reset: true } : event.data));
    }
  } catch {
    if (signal.aborted) return;
    position = failures > 0 ? "" : position; // one that is not taken twice is not asked for again
  }
  if (signal.aborted) return;
  feel("poll");
  timer = window.setTimeout(settle, AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)]);
  failures += 1;
}

interface Told {
  name: string;
  id: string;
  data: Changes;
}

/** The events of a stream, each once it is whole. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Told> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let held = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (held + value).split("\n\n");
      held = blocks.pop() ?? "";
      for (const block of blocks) {
        const said = new Map(block.split("\n").map((line) => [line.split(": ", 1)[0] ?? "", line.replace(/^\w+: /, "")]));
        const data = said.get("data");
        if (data !== undefined)
          yield { name: said.get("event") ?? "", id: said.get("id") ?? "", data: JSON.parse(data) as Changes };
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

/** What was committed concerns this run. */
export function ofRun(runId: string): About {
  return (changes) =>
    Boolean(changes.reset) ||
    (changes.receipts ?? []).length > 0 ||
    (changes.entries ?? []).some((each) => each.run_id === runId) ||
    (changes.builds ?? []).some((each) => each.run_id === runId);
}

document.addEventListener("visibilitychange", settle);
