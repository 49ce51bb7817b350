/** An answer that is a problem, as the error it tells of. */

import * as classes from "./error_classes.js";
import { ConnectionFailed, MunimentError } from "./errors.js";

/** There may be codes that are not here yet: they are `MunimentError`s. */
const CLASSES = new Map<string, typeof MunimentError>(Object.values(classes).map((each) => [each.code, each]));

/** The error of an answer that is none; `text` is its body. */
export function errorOf(response: Response, text: string): MunimentError {
  const told = parsed(text);
  const retryAfterMs = waitOf(response.headers.get("retry-after"));
  if (typeof told["code"] !== "string") {
    return new ConnectionFailed(`what answers there is no muniment: HTTP ${response.status}`, {
      status: response.status,
      hint: "check the address, and any proxy",
      retryAfterMs,
    });
  }
  const found = CLASSES.get(told["code"]) ?? MunimentError;
  return new found(textOf(told["detail"]) ?? "the server failed", {
    code: told["code"],
    status: response.status,
    path: textOf(told["path"]),
    hint: textOf(told["hint"]),
    details: isObject(told["details"]) ? told["details"] : undefined,
    requestId: textOf(told["request_id"]) ?? response.headers.get("x-request-id") ?? undefined,
    retryAfterMs,
  });
}

/** `Retry-After`: seconds, or a date. */
function waitOf(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

function parsed(text: string): Record<string, unknown> {
  try {
    const told: unknown = JSON.parse(text);
    return isObject(told) ? told : {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
