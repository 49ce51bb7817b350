/** The exact prompt of a packet, line by line: which section each stands in, what it cites, what it came from. */

import type { Build, BuildInputs } from "./openapi";
import { leftOut, taken, type Left, type Taken } from "./explain";

export interface PromptLine {
  number: number;
  text: string;
  section: string;
  /** Marks as the line has them, without brackets. */
  marks: string[];
  evidence: string[];
  item: Taken | undefined;
  /** What contradicts it or took its place, as the packet tells. */
  notes: string[];
  isHeading: boolean;
}

const HEADINGS = new Map([
  ["## The user asked: follow this", "facts"],
  ["## Task", "working_state"],
  ["## State", "working_state"],
  ["## Facts", "facts"],
  ["## Procedures", "procedures"],
  ["## So far", "short_term_summary"],
  ["## Open questions", "short_term_summary"],
  ["## Tool results", "short_term_summary"],
  ["## Last turns", "short_term_summary"],
  ["## Said", "short_term_summary"],
  ["## Episodes", "episodes"],
  ["## Hypotheses, not facts", "insights"],
]);
const MARK = /\[(\d{1,6})\]/g;

export function marksIn(text: string): string[] {
  return [...text.matchAll(MARK)].map((found) => found[1] ?? "");
}

function sectionOf(heading: string, before: string): string {
  return HEADINGS.get(heading.trim()) ?? before;
}

function folded(text: string): string {
  return text.replace(MARK, " ").replace(/\s+/g, " ").trim().toLowerCase();
}

/** The item that a line shows: by what it cites, in its section first; else by its words. */
function itemOf(line: string, section: string, evidence: string[], items: Taken[]): Taken | undefined {
  const near = [...items.filter((each) => each.section === section), ...items.filter((each) => each.section !== section)];
  const cited = near.find((each) => each.sources.some((source) => evidence.includes(source)));
  if (cited) return cited;
  const words = folded(line);
  if (words.length < 4) return undefined;
  return near.find((each) => {
    const said = folded(each.text);
    const value = said.slice(said.indexOf(": ") + 2);
    return words.includes(said) || (value.length > 3 && words.includes(value));
  });
}

/** Whether a line goes on with what the one before it says: a text of several lines has its mark at the first. */
function goesOn(text: string, before: PromptLine): boolean {
  const words = folded(text);
  if (!before.item || before.evidence.length === 0) return false;
  return words === "" || words.includes("…") || folded(before.item.text).includes(words);
}

export function promptLines(build: Build, inputs: BuildInputs | undefined): PromptLine[] {
  const items = inputs ? taken(build, inputs) : [];
  let section = build.rules?.text ? "rules" : "overhead";
  let last: PromptLine | undefined;
  return build.text.split("\n").map((text, number) => {
    const isHeading = text.startsWith("## ");
    if (isHeading) section = sectionOf(text, section);
    const marks = marksIn(text).filter((mark) => Object.hasOwn(build.marks, mark));
    const isOn = !isHeading && marks.length === 0 && last !== undefined && goesOn(text, last);
    const evidence = isOn && last ? last.evidence : marks.map((mark) => build.marks[mark] ?? "");
    const item = isHeading || !text.trim() ? undefined : itemOf(text, section, evidence, items);
    last = { number, text, section, marks, evidence, item, notes: notesOn(build, evidence, item), isHeading };
    return last;
  });
}

function notesOn(build: Build, evidence: string[], item: Taken | undefined): string[] {
  const ids = new Set([...evidence, ...(item?.sources ?? []), item?.name.replace(/^[a-z]+:/, "") ?? ""]);
  return build.packet.explain.conflicts
    .filter((note) => {
      const told = note as Record<string, unknown>;
      return [told["evidence_id"], told["superseded_by"], ...(note.fact_ids ?? [])].some((id) => ids.has(String(id)));
    })
    .map((note) => `${note.type.replaceAll("_", " ")}: ${note.detail}`);
}

/** Why something was left out that might as well have been taken, those that came nearest first. */
const NEAR = ["over_budget", "count_limit", "near_duplicate", "superseded", "disputed", "low_confidence", "weak_evidence"];

/** What of the same section was left out and stood nearest to being taken. */
export function nearestLeft(build: Build, inputs: BuildInputs, section: string): Left[] {
  return leftOut(build, inputs)
    .filter((each) => each.section === section && NEAR.includes(each.reason))
    .sort((a, b) => NEAR.indexOf(a.reason) - NEAR.indexOf(b.reason))
    .slice(0, 3);
}

/** The line that tells most of what was asked for. */
export function bestLine(lines: PromptLine[]): PromptLine | undefined {
  const told = lines.filter((line) => line.item);
  return told.reduce<PromptLine | undefined>(
    (best, line) => ((line.marks.length ? (line.item?.score ?? 0) : -1) > (best?.item?.score ?? -1) ? line : best),
    undefined,
  ) ?? told[0];
}
