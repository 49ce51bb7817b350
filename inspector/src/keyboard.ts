/** Keys: `/` to the field, j and k along the rows, g and a letter to a page. */

import { go, href } from "./route";
import { choices, choose } from "./store";

export const GOES: Record<string, string> = {
  runs: "r",
  packets: "p",
  search: "s",
  facts: "f",
  episodes: "e",
  lessons: "l",
  rules: "u",
  flow: "m",
  research: "t",
};

const PENDING_MS = 1200;

interface Around {
  place: { tenant: string; user: string };
  help: () => void;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input:not([type=checkbox]), textarea, select");
}

function walk(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  if (rows.length === 0) return;
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.max(0, Math.min(rows.length - 1, here < 0 ? (by > 0 ? 0 : rows.length - 1) : here + by))];
  const target = next?.matches("a, button") ? next : (next?.querySelector<HTMLElement>("a, button") ?? next);
  target?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

export function onKey({ place, help }: Around): () => void {
  let pendingUntil = 0;

  function pressed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    if (Date.now() < pendingUntil) {
      pendingUntil = 0;
      const page = Object.keys(GOES).find((name) => GOES[name] === event.key);
      if (page && place.tenant) go(href(place, page));
      return;
    }
    act(event);
  }

  function act(event: KeyboardEvent): void {
    switch (event.key) {
      case "/":
        event.preventDefault();
        document.querySelector<HTMLElement>("main [data-first-field]")?.focus();
        break;
      case "j":
        walk(1);
        break;
      case "k":
        walk(-1);
        break;
      case "g":
        pendingUntil = Date.now() + PENDING_MS;
        break;
      case "t":
        choose({ theme: { auto: "light", light: "dark", dark: "auto" }[choices().theme] as "auto" });
        break;
      case "l":
        choose({ language: choices().language === "zh" ? "en" : "zh" });
        break;
      case "?":
        help();
    }
  }

  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}
