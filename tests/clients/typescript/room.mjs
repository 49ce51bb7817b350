/** What the tests share: the server that pytest started, and ways to stand between it and the client. */

import { createServer } from "node:http";
import { Muniment } from "@muniment/client";

export const { MUNIMENT_URL: URL_, MUNIMENT_KEY: KEY, MUNIMENT_CONTROL: CONTROL, MUNIMENT_SLOW_KEY: SLOW_KEY } = process.env;

let users = 0;

/** A client of the real server, or of something before it, and a user of its own. */
export function opened(options = {}) {
  const m = new Muniment({ baseUrl: URL_, apiKey: KEY, retryDelayMs: 2, ...options });
  return { m, user: m.user(`u${process.pid}-${users++}`) };
}

export async function all(list) {
  const items = [];
  for await (const item of list) items.push(item);
  return items;
}

/** Words of a user, in order. */
export async function said(user) {
  return (await all(user.events({ kind: "message" }))).map((entry) => entry.body.content);
}

/** A fetch that counts, and lets something happen first: what `first` answers is the answer, unless it is nothing. */
export function counted(first = () => undefined) {
  const calls = [];
  const asked = async (url, init) => {
    calls.push({ url, ...init });
    return (await first(calls.length, url, init)) ?? fetch(url, init);
  };
  return { calls, fetch: asked };
}

/** A server of a few lines. */
export async function stood(handler) {
  const server = createServer(handler);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

/** A proxy that passes a request on, waits for the answer, and drops it as often as `times` says. */
export async function dropping(times) {
  const seen = [];
  const proxy = await stood(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
    const body = parts.length > 0 ? Buffer.concat(parts) : undefined;
    const answer = await fetch(URL_ + request.url, { method: request.method, headers, body });
    const text = await answer.text();
    seen.push({ status: answer.status, key: headers["idempotency-key"] });
    if (seen.length <= times) return request.socket.destroy();
    return response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") }).end(text);
  });
  return { ...proxy, seen };
}

export function problem(status, code, headers = {}) {
  const told = { type: `urn:muniment:error:${code}`, title: "", status, detail: "not now", code, request_id: "req_1" };
  return new Response(JSON.stringify(told), { status, headers: { "content-type": "application/problem+json", ...headers } });
}

/** The waits that a piece of work asks for, none of which is waited for. */
export async function hurried(work) {
  const real = globalThis.setTimeout;
  const waits = [];
  globalThis.setTimeout = (call, ms) => (waits.push(ms), real(call, 0));
  try {
    await work();
  } finally {
    globalThis.setTimeout = real;
  }
  return waits;
}
