/** What the reader chose: language, theme, live updates. Kept in this browser, and nowhere else. */

import { useEffect, useState } from "preact/hooks";

export type Theme = "auto" | "light" | "dark";
export type Language = "en" | "zh";

interface Choices {
  language: Language;
  theme: Theme;
  live: boolean;
}

const NAME = "muniment.inspector";

function stored(): Partial<Choices> {
  try {
    return JSON.parse(localStorage.getItem(NAME) ?? "{}") as Partial<Choices>;
  } catch {
    return {};
  }
}

const spoken: Language = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
let chosen: Choices = { language: spoken, theme: "auto", live: true, ...stored() };
const watchers = new Set<() => void>();

export function choices(): Choices {
  return chosen;
}

export function choose(change: Partial<Choices>): void {
  chosen = { ...chosen, ...change };
  try {
    localStorage.setItem(NAME, JSON.stringify(chosen));
  } catch {
    // a browser that keeps nothing still shows everything
  }
  show();
  watchers.forEach((tell) => tell());
}

export function useChoices(): Choices {
  const [, again] = useState(0);
  useEffect(() => {
    const tell = () => again((n) => n + 1);
    watchers.add(tell);
    return () => void watchers.delete(tell);
  }, []);
  return chosen;
}

/** Puts the choices on the page itself. */
export function show(): void {
  const root = document.documentElement;
  root.lang = chosen.language === "zh" ? "zh-Hans" : "en";
  if (chosen.theme === "auto") delete root.dataset["theme"];
  else root.dataset["theme"] = chosen.theme;
}
