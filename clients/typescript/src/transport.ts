/**
 * One request and, where that does no harm, the same again: the only module that calls `fetch`.
 *
 * A request is sent again after a refusal that looked at nothing (429, an overloaded or closing server); and after a
 * lost connection or a failing store only if it can be carried out twice: a read, or a write under an idempotency key,
 * which every attempt repeats. Nothing here needs more than a browser, an edge runtime or Node 18 has.
 */

import { InvalidInput } from "./error_classes.js";
import { ConnectionFailed, MunimentError, TimedOut } from "./errors.js";
import { jsonOf } from "./json.js";
import { KEYED, READS } from "./operations.js";
import { errorOf } from "./problems.js";

/** What may be said of one call, beside its arguments. */
export interface CallOptions {
  /** Ends the call, and any waiting of it; its `reason` is what is thrown. */
  signal?: AbortSignal | undefined;
  /** How long one attempt may take. */
  timeoutMs?: number | undefined;
  /** How often it is sent again at most. */
  maxRetries?: number | undefined;
  /** A name of your own for a write: sent again under it, by whomever, it is carried out once. One is made unless given. */
  idempotencyKey?: string | undefined;
}

export interface ClientOptions {
  /** Where the server is: `https://memory.example.com`. */
  baseUrl: string;
  /** An API key, where the server asks for one. */
  apiKey?: string | undefined;
  /** The tenant; `default` unless given. */
  tenant?: string | undefined;
  /** What to send with, in place of the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** How long one attempt may take; a minute unless given. */
  timeoutMs?: number | undefined;
  /** How often a call is sent again at most; 3 unless given. */
  maxRetries?: number | undefined;
  /** About how long to wait before the first retry; it doubles with each. 250 unless given. */
  retryDelayMs?: number | undefined;
}

/** A request: an address with its names put in, and what goes with it. */
export interface Asking {
  method: string;
  /** The address as the document has it, with `{…}` for the names. */
  template: string;
  names: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, unknown>> | undefined;
  body?: unknown;
  accept?: string;
  /** Does asking twice no harm, though it writes? */
  repeats?: boolean;
}

type Reading<T> = (response: Response) => Promise<T>;

const TIMEOUT_MS = 60_000;
const RETRIES = 3;
const DELAY_MS = 250;
const DELAY_MS_MAX = 8_000;
/** A server that wants to be asked later than that is not waited for. */
const RETRY_AFTER_MS_MAX = 60_000;
const KEY = /^[!-~]{1,256}$/;

/** The server did not look at the request: it can be sent again, whatever it is. */
const UNSEEN = new Set(["rate_limited", "queue_full", "overloaded", "closed", "too_slow"]);
/** It may go better the next time; whether something was written is not known of all of these. */
const PASSING = new Set([
  "storage_busy", "storage_failure", "storage_lost", "embedder_unreachable", "model_unreachable",
]); // prettier-ignore

export class Transport {
  readonly baseUrl: string;
  readonly #fetch: typeof fetch;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    if (!/^https?:\/\/[^/]/.test(options.baseUrl)) {
      throw new InvalidInput("a server is named by its URL", { path: "$.baseUrl", hint: "https://…" });
    }
    if (options.apiKey !== undefined && !KEY.test(options.apiKey)) {
      throw new InvalidInput("this is no API key", { path: "$.apiKey", hint: "`muniment store keys create` makes one" });
    }
    this.baseUrl = options.baseUrl.replace(/\/$/, "");
    this.#options = options;
    this.#fetch = options.fetch ?? ((...given) => globalThis.fetch(...given));
    this.#headers = options.apiKey === undefined ? {} : { Authorization: `Bearer ${options.apiKey}` };
  }

  get retryDelayMs(): number {
    return this.#options.retryDelayMs ?? DELAY_MS;
  }

  /** The answer: what its JSON says, the text of anything else, or nothing. */
  ask(asking: Asking, options: CallOptions = {}): Promise<unknown> {
    return this.send(asking, options, answerOf);
  }

  /** Send it, read the answer, and try again where that does no harm. */
  async send<T>(asking: Asking, options: CallOptions, read: Reading<T>): Promise<T> {
    const address = `${asking.method} ${asking.template}`;
    const key = keyOf(asking, options, KEYED.has(address));
    const isRepeatable = asking.method === "get" || asking.repeats === true || key !== undefined || READS.has(address);
    const url = `${this.baseUrl}${pathOf(asking)}`;
    const init = this.#init(asking, key);
    const retriesMax = options.maxRetries ?? this.#options.maxRetries ?? RETRIES;
    for (let retries = 0; ; retries++) {
      try {
        return await this.#attempt(url, init, options, read);
      } catch (error) {
        if (!(error instanceof MunimentError) || retries >= retriesMax || !mayPass(error, isRepeatable)) throw error;
        await sleep(waitMs(error, retries, this.retryDelayMs), options.signal);
      }
    }
  }

  async #attempt<T>(url: string, init: RequestInit, options: CallOptions, read: Reading<T>): Promise<T> {
    const { signal } = options;
    const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS;
    const attempt = new AbortController();
    const end = (): void => attempt.abort(signal?.reason);
    let isLate = false;
    signal?.throwIfAborted();
    signal?.addEventListener("abort", end);
    const timer = Number.isFinite(timeoutMs) ? setTimeout(() => attempt.abort((isLate = true)), timeoutMs) : undefined;
    try {
      const response = await this.#fetch(url, { ...init, signal: attempt.signal });
      if (!response.ok) throw errorOf(response, await response.text());
      return await read(response);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof MunimentError) throw error;
      if (isLate) {
        const hint = "ask for less, or give it more time with timeoutMs";
        throw new TimedOut(`no answer within ${timeoutMs} ms`, { hint, cause: error });
      }
      throw new ConnectionFailed("the server cannot be reached, or the connection broke", {
        hint: "check that it runs, and its address",
        cause: error,
      });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    }
  }

  #init(asking: Asking, key: string | undefined): RequestInit {
    const headers: Record<string, string> = { ...this.#headers, Accept: asking.accept ?? "application/json" };
    if (key !== undefined) headers["Idempotency-Key"] = key;
    const init: RequestInit = { method: asking.method.toUpperCase(), headers };
    if (asking.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = jsonOf(asking.body);
    }
    return init;
  }
}

/** An address: names percent-encoded, so that one may hold a slash; the query behind it. */
export function pathOf(asking: Pick<Asking, "template" | "names" | "query">): string {
  const path = asking.template.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, asking.names[name]));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asking.query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) query.append(name, each instanceof Date ? each.toJSON() : String(each));
    }
  }
  const said = query.toString();
  return said === "" ? path : `${path}?${said}`;
}

function segment(name: string, value: string | undefined): string {
  const path = `$.${name}`;
  if (typeof value !== "string" || value === "") throw new InvalidInput(`${name} should be a non-empty text`, { path });
  if (value === "." || value === "..") {
    throw new InvalidInput(`${name} cannot be ${JSON.stringify(value)}`, { path, hint: "addresses take it for a folder" });
  }
  try {
    return encodeURIComponent(value);
  } catch {
    throw new InvalidInput(`${name} holds half a character`, { path, hint: "text is well-formed Unicode" });
  }
}

function keyOf(asking: Asking, options: CallOptions, isKeyed: boolean): string | undefined {
  const own = (asking.body as { idempotency_key?: string } | undefined)?.idempotency_key;
  const key = options.idempotencyKey ?? own ?? (isKeyed ? newId("key") : undefined);
  if (key !== undefined && !KEY.test(key)) {
    throw new InvalidInput("an idempotency key is 1 to 256 printable ASCII characters", { path: "$.idempotencyKey" });
  }
  return key;
}

/** An id of 128 random bits. */
export function newId(kind: string): string {
  const bytes = new Uint8Array(16);
  // Node 18 has no global `crypto`; what is named here need only be unique, not secret.
  if (globalThis.crypto === undefined) bytes.forEach((_, at) => (bytes[at] = Math.floor(Math.random() * 256)));
  else globalThis.crypto.getRandomValues(bytes);
  return `${kind}_${Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("")}`;
}

async function answerOf(response: Response): Promise<unknown> {
  const text = await response.text();
  if (response.status === 204) return undefined;
  if (!/[/+]json\b/.test(response.headers.get("content-type") ?? "")) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new ConnectionFailed("the answer is no JSON", { status: response.status, hint: "check any proxy", cause: error });
  }
}

/** Is it worth, and without harm, to ask again? */
export function mayPass(error: MunimentError, isRepeatable: boolean): boolean {
  if ((error.retryAfterMs ?? 0) > RETRY_AFTER_MS_MAX) return false;
  if (UNSEEN.has(error.code)) return true;
  if (!isRepeatable) return false;
  if (error instanceof ConnectionFailed) return error.status === undefined || error.status >= 500 || error.status === 429;
  return PASSING.has(error.code);
}

/** How long to wait: as long as the server says, or longer each time, never all callers at once. */
export function waitMs(error: MunimentError, retries: number, delayMs: number): number {
  const backOff = Math.min(DELAY_MS_MAX, delayMs * 2 ** retries) * (0.5 + Math.random() / 2);
  return error.retryAfterMs === undefined ? backOff : error.retryAfterMs * (1 + Math.random() / 10);
}

/** Wait, unless that is ended. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const end = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
