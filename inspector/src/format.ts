/** Values as a person reads them. */

import { choices } from "./store";

function locale(): string {
  return choices().language === "zh" ? "zh-CN" : "en-GB";
}

export function when(ts: string | null | undefined, seconds = false): string {
  if (!ts) return "";
  const date = new Date(ts);
  if (Number.isNaN(date.getTime())) return ts;
  const timeStyle = seconds ? "medium" : "short";
  return date.toLocaleString(locale(), { dateStyle: "medium", timeStyle, timeZone: "UTC" });
}

/** A number with its thousands apart. */
export function number(value: number): string {
  return value.toLocaleString(locale());
}

/** A size in bytes. */
export function size(bytes: number): string {
  return bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

/** Whether two moments are so far apart that both are worth telling. */
export function areApart(a: string | null | undefined, b: string | null | undefined): boolean {
  return Boolean(a && b) && Math.abs(Date.parse(a as string) - Date.parse(b as string)) > 10 * 60_000;
}

export function day(ts: string | null | undefined): string {
  if (!ts) return "";
  const date = new Date(ts);
  return Number.isNaN(date.getTime())
    ? ts
    : date.toLocaleDateString(locale(), { dateStyle: "medium", timeZone: "UTC" });
}

export function between(from: string, to: string): string {
  const seconds = Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000);
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** An id or a hash, short enough to stand in a line; the whole of it goes into the title. Ids differ at their ends. */
export function short(id: string, most = 14): string {
  if (id.length <= most + 1) return id;
  const end = Math.min(8, Math.floor(most / 2));
  return `${id.slice(0, most - end)}…${id.slice(-end)}`;
}

export function percent(share: number | null | undefined): string {
  return share === null || share === undefined ? "–" : `${Math.round(share * 100)} %`;
}

export function signed(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
}

/** A JSON value: text as it is, the rest as JSON. */
export function shown(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.map(shown).join(", ");
  return JSON.stringify(value);
}

export function clip(text: string, most = 160): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

export function fits(needle: string, ...texts: (string | null | undefined)[]): boolean {
  const wanted = needle.trim().toLowerCase();
  return wanted === "" || texts.some((text) => text?.replace(/\s+/g, " ").toLowerCase().includes(wanted));
}
