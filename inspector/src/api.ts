/** The HTTP API as the pages ask it, or the answers that a bundle carries in its place. */

export interface Page<T> {
  items: T[];
  next?: string;
  /** How many the whole list has, where that is known. */
  count?: number;
}

/** An error in the one shape that the server has (RFC 9457). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint?: string,
  ) {
    super(message);
  }
}

export interface Bundle {
  version: 1;
  made_at: string;
  tenant_id: string;
  user_id: string;
  run_id: string;
  /** The view that it opens at. */
  start?: string;
  /** By "GET /v1/…" or "POST /v1/… {body}". */
  answers: Record<string, unknown>;
}

function readBundle(): Bundle | null {
  const held = document.getElementById("bundle");
  return held?.textContent ? (JSON.parse(held.textContent) as Bundle) : null;
}

export const bundle = readBundle();

const KEY = "muniment.key";

export const key = {
  get: (): string => sessionStorage.getItem(KEY) ?? "",
  set: (value: string): void => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

export type Query = Record<string, string | number | boolean | undefined>;

/** A path of parts that are encoded one by one; an id may hold a slash. */
export function at(...parts: (string | number)[]): string {
  return "/v1/" + parts.map((part) => encodeURIComponent(String(part))).join("/");
}

export function withQuery(path: string, query: Query): string {
  const said = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  if (said.length === 0) return path;
  return (
    path +
    (path.includes("?") ? "&" : "?") +
    said.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")
  );
}

function fromBundle(asked: string): unknown {
  if (bundle && Object.hasOwn(bundle.answers, asked)) return bundle.answers[asked];
  const [path = "", query = ""] = asked.split(/\?(.*)/s);
  const around = new URLSearchParams(query).get("around");
  if (bundle && around !== null && Object.hasOwn(bundle.answers, path))
    return { items: nearTo(around, (bundle.answers[path] as Page<{ id?: string }>).items, query) };
  throw new Problem(404, "not_in_bundle", "This is not part of the bundle.");
}

/** What stands around an item of a list that the bundle has whole. */
function nearTo<T extends { id?: string }>(id: string, items: T[], query: string): T[] {
  const at = items.findIndex((each) => each.id === id);
  const size = Number(new URLSearchParams(query).get("limit") ?? 1);
  const start = Math.max(0, at - Math.floor(size / 2));
  return at < 0 ? [] : items.slice(start, start + size);
}

async function request(
  method: "GET" | "POST",
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  more: Record<string, string> = {},
): Promise<Response> {
  const headers: Record<string, string> = { ...more };
  if (key.get()) headers["Authorization"] = `Bearer ${key.get()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  let response: Response;
  try {
    // Below wherever the page itself stands, so that a proxy may serve it under a prefix.
    response = await fetch("." + path, { method, headers, cache: "no-store", ...sent, ...(signal ? { signal } : {}) });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "no_answer", "The server does not answer.");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** The body of a stream of events, from after the event that was the last. */
export async function openStream(path: string, last: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const more: Record<string, string> = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
  const response = await request("GET", path, undefined, signal, more);
  const isStream = (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream");
  if (!isStream || !response.body) throw new Problem(0, "no_stream", "The server does not stream.");
  return response.body;
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    const said = (await response.json()) as { code?: string; detail?: string; title?: string; hint?: string };
    return new Problem(response.status, said.code ?? "error", said.detail ?? said.title ?? "error", said.hint);
  } catch {
    return new Problem(response.status, "error", `HTTP ${response.status}`);
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  if (bundle) return fromBundle(`GET ${path}`) as T;
  const response = await request("GET", path, undefined, signal);
  const isJson = (response.headers.get("Content-Type") ?? "").includes("json");
  return (isJson ? await response.json() : await response.text()) as T;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  if (bundle) return fromBundle(`POST ${path} ${JSON.stringify(body)}`) as T;
  return (await request("POST", path, body, signal)).json() as Promise<T>;
}

/** The bytes as they were sent, for a digest. */
export async function getBytes(path: string): Promise<ArrayBuffer> {
  return (await request("GET", path)).arrayBuffer();
}

/** What was read of a list; `more` where it goes on. */
export type Read<T> = T[] & { more?: boolean; count?: number };

/** A list, page after page, up to so many. */
export async function getAll<T>(path: string, max = 5000, signal?: AbortSignal): Promise<Read<T>> {
  if (bundle) return get<Page<T>>(path).then((page) => page.items);
  const items: Read<T> = [];
  let cursor: string | undefined;
  do {
    const more: Query = { limit: Math.min(1000, max), cursor };
    const page: Page<T> = await get(withQuery(path, more), signal);
    items.push(...page.items);
    if (page.count !== undefined) items.count = page.count;
    cursor = page.next;
  } while (cursor !== undefined && items.length < max);
  items.more = cursor !== undefined;
  return items;
}
