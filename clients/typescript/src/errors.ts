/**
 * What every error of this client is. The classes by code are in `error_classes.ts`, made from the library's own tree;
 * here is what they share, and what can go wrong before a server has answered.
 */

/** What is known of an error besides its words. */
export interface ErrorParts {
  code?: string | undefined;
  status?: number | undefined;
  path?: string | undefined;
  hint?: string | undefined;
  details?: Readonly<Record<string, unknown>> | undefined;
  requestId?: string | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** The root of the tree: catch this to catch everything that the client throws on purpose, except an abort of yours. */
export class MunimentError extends Error {
  /** The code of the class; an instance may have one that this version of the client does not know. */
  static readonly code: string = "error";

  /** Stable, the same in the library, on the command line and over HTTP. */
  readonly code: string;
  /** The HTTP status; absent where no server answered. */
  readonly status: number | undefined;
  /** Where in what was given, as a JSONPath such as `$.max_tokens`. */
  readonly path: string | undefined;
  /** What to do. */
  readonly hint: string | undefined;
  /** More, by code. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Names the request in the server's log. */
  readonly requestId: string | undefined;
  /** After how long the server wants to be asked again, where it says so. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, parts: ErrorParts = {}) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.code = parts.code ?? new.target.code;
    this.name = nameOf(this.code);
    this.status = parts.status;
    this.path = parts.path;
    this.hint = parts.hint;
    this.details = parts.details ?? {};
    this.requestId = parts.requestId;
    this.retryAfterMs = parts.retryAfterMs;
  }

  /** The shape that every surface of muniment shows; absent parts are absent. */
  toJSON(): Record<string, unknown> {
    const { code, message, path, hint, details, status, requestId } = this;
    const shape = { code, message, path, hint, details, status, request_id: requestId };
    return Object.fromEntries(
      Object.entries(shape).filter(([name, value]) => value !== undefined && !(name === "details" && isEmpty(value))),
    );
  }
}

/** No answer came, or none of a muniment's. Whether a write was carried out is not known; under its key it can be sent again. */
export class ConnectionFailed extends MunimentError {
  static override readonly code: string = "connection_failed";
}

/** An answer did not come within `timeoutMs`. */
export class TimedOut extends ConnectionFailed {
  static override readonly code: string = "timed_out";
}

/** `NotFound` of `not_found`: the name of a class does not outlast a minifier. */
function nameOf(code: string): string {
  return code === "error" ? "MunimentError" : code.replace(/(?:^|_)([a-z])/g, (_, first: string) => first.toUpperCase());
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
