/** A build in words: every candidate of its pool with what it says, and its fate with the reason. */

import type { Build, BuildInputs, Pool } from "./openapi";
import { shown } from "./format";

export interface Candidate {
  name: string;
  kind: string;
  section: string;
  text: string;
  who?: string;
  ts?: string;
  sources: string[];
  parts?: Record<string, number>;
  why?: string[];
}

export interface Taken extends Candidate {
  score: number;
  rules: string[];
  marks: string[];
}

export interface Left extends Candidate {
  reason: string;
  detail: [string, string][];
}

const SECTION: Record<string, string> = {
  state: "working_state",
  fact: "facts",
  procedure: "procedures",
  summary: "short_term_summary",
  profile: "short_term_summary",
  quote: "short_term_summary",
  loop: "short_term_summary",
  turn: "short_term_summary",
  tool: "short_term_summary",
  episode: "episodes",
  insight: "insights",
};

export const SECTIONS = ["working_state", "facts", "procedures", "short_term_summary", "episodes", "insights"] as const;

type Said = Omit<Candidate, "name" | "kind" | "section">;

/** Names as the explanation has them: an id that stands twice gets a number. */
function named(kind: string, items: [string, Said][]): Candidate[] {
  const taken = new Set<string>();
  return items.map(([id, said]) => {
    let name = `${kind}:${id}`;
    for (let number = 2; taken.has(name); number++) name = `${kind}:${id}#${number}`;
    taken.add(name);
    return { name, kind, section: SECTION[kind] ?? kind, ...said };
  });
}

export function candidates(pool: Pool): Map<string, Candidate> {
  const turn = (each: Pool["window"][number]): Said => ({
    text: each.text,
    who: each.speaker ?? each.role,
    ts: each.ts,
    sources: [each.id],
  });
  const all = [
    ...named(
      "fact",
      pool.facts.map(({ fact, since, recorded_at }) => [
        fact.fact_id,
        { text: `${fact.fact_key} = ${shown(fact.value)}`, ts: since ?? recorded_at, sources: fact.sources },
      ]),
    ),
    ...named(
      "procedure",
      pool.procedures.map(({ procedure, recorded_at }) => [
        procedure.procedure_id,
        { text: shown(procedure.content), ts: recorded_at, sources: procedure.sources ?? [] },
      ]),
    ),
    ...named(
      "summary",
      pool.summary.map((line) => [line.evidence_id, { text: line.text, ts: line.ts, sources: [line.evidence_id] }]),
    ),
    ...named(
      "profile",
      (pool.profile ?? []).map((each) => [
        each.turn.id,
        { ...turn(each.turn), text: [...each.turn.text].slice(each.start, each.end).join("") },
      ]),
    ),
    ...named(
      "quote",
      pool.hits.map((hit) => [hit.turn.id, { ...turn(hit.turn), parts: hit.parts, why: hit.reasons }]),
    ),
    ...named(
      "loop",
      pool.loops.map((loop, at) => [
        String(at),
        { text: loop.question, sources: loop.evidence_id ? [loop.evidence_id] : [] },
      ]),
    ),
    ...named(
      "turn",
      pool.window.map((each) => [each.id, turn(each)]),
    ),
    ...named(
      "tool",
      pool.tools.map((tool) => [tool.ref, { text: tool.summary, ts: tool.ts, sources: [tool.ref] }]),
    ),
    ...named(
      "episode",
      pool.episodes.map((each) => [
        each.episode_id,
        {
          text: `${each.session_id}: ${each.lines[0]?.text ?? ""}`,
          ts: each.start,
          sources: each.lines.map((line) => line.evidence_id),
        },
      ]),
    ),
    ...named(
      "insight",
      pool.insights.map(({ insight, recorded_at }) => [
        insight.id,
        { text: insight.statement, ts: recorded_at, sources: insight.sources ?? [] },
      ]),
    ),
  ];
  return new Map(all.map((each) => [each.name, each]));
}

/** A unit of the working state: `state:goal`, `state:slots.city`, `state:plan.0`. */
function stateUnit(name: string, pool: Pool): Candidate {
  const [part = "", key = ""] = name.replace(/^state:/, "").split(/\.(.*)/s);
  const state = (pool.working_state ?? {}) as Record<string, unknown>;
  const stored = { hints: "memory_hints", claims: "claims" }[part] ?? part;
  const isWhole = part === "goal" || part === "objective" || part === "done_definition";
  const value = isWhole ? state[part] : part === "extra" ? state[key] : within(state[stored], key);
  const record = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  const evidence = record?.["evidence_id"] ?? record?.["ref"];
  const label = part === "goal" ? part : `${part} ${/^\d+$/.test(key) ? "" : key}`.trim();
  return {
    name,
    kind: "state",
    section: "working_state",
    text: `${label}: ${record ? stateText(record) : shown(value ?? "")}`,
    sources: typeof evidence === "string" ? [evidence] : [],
  };
}

function within(held: unknown, key: string): unknown {
  return typeof held === "object" && held !== null && Object.hasOwn(held, key)
    ? (held as Record<string, unknown>)[key]
    : undefined;
}

function stateText(record: Record<string, unknown>): string {
  const said = record["step"] ?? record["statement"] ?? record["risk"] ?? record["summary"];
  const status = typeof record["status"] === "string" ? ` (${record["status"]})` : "";
  return said === undefined ? shown(record) : `${shown(said)}${status}`;
}

function found(known: Map<string, Candidate>, name: string, pool: Pool): Candidate {
  if (name.startsWith("state:")) return stateUnit(name, pool);
  const kind = name.split(":")[0] ?? "";
  return known.get(name) ?? { name, kind, section: SECTION[kind] ?? kind, text: name, sources: [] };
}

/** Rules are joined by commas; a space in one was written as `_`. */
function rulesOf(told: string): string[] {
  return told.split(/,(?!_)/).map((rule) => rule.replaceAll("_", " "));
}

export function taken(build: Build, inputs: BuildInputs): Taken[] {
  const known = candidates(inputs.pool);
  const marks = new Map(Object.entries(build.marks).map(([mark, evidence]) => [evidence, mark]));
  return build.packet.explain.selected.map((line) => {
    const cut = line.lastIndexOf(" score=");
    const [score = "", rules = ""] = line.slice(cut + 7).split(/ rules=(.*)/s);
    const candidate = found(known, line.slice(0, cut), inputs.pool);
    const shownMarks = candidate.sources.flatMap((source) => marks.get(source) ?? []);
    return { ...candidate, score: Number(score), rules: rulesOf(rules), marks: shownMarks };
  });
}

export function leftOut(build: Build, inputs: BuildInputs): Left[] {
  const known = candidates(inputs.pool);
  return build.packet.explain.omitted.map(({ item, reason, ...detail }) => ({
    ...found(known, item, inputs.pool),
    reason,
    detail: Object.entries(detail as Record<string, unknown>).map(([name, value]) => [name, shown(value)]),
  }));
}
