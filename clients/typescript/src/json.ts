/** What is sent, checked while it is still known where it stands: JSON would turn NaN into null and a Map into nothing. */

import { InvalidInput } from "./error_classes.js";

const DEPTH_MAX = 100;

/** The JSON of a value; refused where something of it would be lost without a word. */
export function jsonOf(value: unknown): string {
  return JSON.stringify(plain(value, "$", 0));
}

function plain(value: unknown, path: string, depth: number): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw refusal(`${value} is no JSON`, path, "give a finite number, or null");
  }
  if (typeof value !== "object") {
    throw refusal(`a ${typeof value} is no JSON`, path, "give a number, text, a list or an object");
  }
  if (depth > DEPTH_MAX) throw refusal("this is nested too deep, or in itself", path, "give less of it");
  if ("toJSON" in value && typeof value.toJSON === "function") {
    const told: unknown = value.toJSON();
    if (value instanceof Date && told === null) throw refusal("this is no point in time", path, "give a valid Date");
    return plain(told, path, depth + 1);
  }
  if (Array.isArray(value)) return value.map((each: unknown, at) => plain(each, `${path}[${at}]`, depth + 1));
  if (value instanceof Map || value instanceof Set) {
    throw refusal(`a ${value.constructor.name} is no JSON`, path, "Object.fromEntries(map), [...set]");
  }
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries.map(([name, each]) => [name, plain(each, `${path}.${name}`, depth + 1)]));
}

function refusal(message: string, path: string, hint: string): InvalidInput {
  return new InvalidInput(message, { path, hint });
}
