/** A packet composed again as its settings are moved, beside what it was. Nothing is written; the address has it all. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Build, Preview } from "../openapi";
import { bundle, post } from "../api";
import { SECTIONS } from "../explain";
import { useAsked, useGet, type Loaded } from "../loading";
import { Await, clip, Head, Id, own, Trouble, Waiting } from "../parts";
import { href, type Place } from "../route";
import { Share } from "../share";
import { SideBySide } from "../side_by_side";
import { w, wordFor } from "../words";
import { Purpose } from "./packet";

const REST_MS = 250;
const TOKENS_MIN = 256;
const TOKENS_SHOWN = 4096;
const WINDOW_SHOWN = 20;
const PURPOSES = ["planner", "tool", "responder"];

type Set = Record<string, string>;

export function WhatIfPage({ place }: { place: Place }) {
  const [id = ""] = place.ids;
  const build = useGet<Build>(own(place, "builds", id));
  return (
    <>
      <Head title={w("what_if_of")}>
        <p class="quiet">
          <Id id={id} to={href(place, "packet", [id])} />
        </p>
      </Head>
      <Await of={build}>{(found) => <Asked build={found} place={place} />}</Await>
    </>
  );
}

/** What the server is sent: what is named in the address, in one order, so that the same settings are the same text. */
export function previewBody(set: Set): Record<string, unknown> {
  const number = (name: string) => (set[name] ? { [name]: Number(set[name]) } : {});
  const limits = SECTIONS.filter((name) => set[name]).map((name) => [name, Number(set[name])]);
  return {
    ...(set["purpose"] ? { purpose: set["purpose"] } : {}),
    ...(set["query"] !== undefined ? { query: set["query"] } : {}),
    ...number("max_tokens"),
    ...(limits.length ? { per_section: Object.fromEntries(limits) } : {}),
    ...number("window_turns"),
    ...(set["basis"] ? { basis: set["basis"] } : {}),
  };
}

function Asked({ build, place }: { build: Build; place: Place }) {
  const [set, change] = useSettings(place);
  const named = Object.fromEntries(place.query);
  const body = previewBody(named);
  const path = own(place, "builds", build.id, "preview");
  const asked = useAsked<Preview>(`${path} ${JSON.stringify(body)}`, (signal) => post<Preview>(path, body, signal));
  const last = useLast(asked);
  return (
    <>
      <p class="lead">
        <Purpose of={build.packet.meta.purpose} /> {clip(build.request.query, 200)}
      </p>
      <p class="quiet">{w("what_if_hint")}</p>
      {bundle ? <Saved body={body} /> : <Settings build={build} last={last} set={set} change={change} />}
      <div class="bar">
        {bundle ? null : (
          <a class="button" href={href(place, "whatif", [build.id])}>
            {w("reset")}
          </a>
        )}
        <Share runId={build.packet.meta.scope.run_id} tenant={place.tenant} />
        <span class="quiet" role="status">
          {asked.loading ? w("recomposing") : last ? wordFor("basis", last.basis) : ""}
        </span>
      </div>
      {asked.problem ? <Trouble problem={asked.problem} /> : null}
      {last ? (
        <div aria-busy={asked.loading}>
          <SideBySide diff={last.diff} place={place} heads={[w("original"), w("preview")]} isFolded />
        </div>
      ) : asked.problem ? null : (
        <Waiting />
      )}
    </>
  );
}

/** The settings of a view that was saved: there is nobody to ask for others. */
function Saved({ body }: { body: Record<string, unknown> }) {
  const { per_section: limits, ...rest } = body;
  const settings = Object.entries({ ...rest, ...(limits as Record<string, unknown> | undefined) });
  return (
    <>
      <dl class="fields">
        {settings.map(([name, value]) => (
          <div key={name} class="field">
            <dt>{(SECTIONS as readonly string[]).includes(name) ? wordFor("s", name) : name.replaceAll("_", " ")}</dt>
            <dd>{String(value)}</dd>
          </div>
        ))}
      </dl>
      <p class="note">{w("no_preview_here")}</p>
    </>
  );
}

/** What was answered last stays until there is something newer. */
function useLast<T>(of: Loaded<T>): T | undefined {
  const held = useRef<T | undefined>(undefined);
  if (of.data !== undefined) held.current = of.data;
  return held.current;
}

/** The settings as they are moved; the address follows once they rest. */
function useSettings(place: Place): [Set, (change: Set) => void] {
  const said = place.query.toString();
  const [set, setSet] = useState<Set>(() => Object.fromEntries(place.query));
  const due = useRef(0);
  useEffect(() => {
    if (!due.current) setSet(Object.fromEntries(new URLSearchParams(said)));
  }, [said]);
  useEffect(() => () => clearTimeout(due.current), []);
  function change(more: Set): void {
    const next = Object.fromEntries(Object.entries({ ...set, ...more }).filter(([name, value]) => value !== "" || name === "query"));
    setSet(next);
    clearTimeout(due.current);
    due.current = window.setTimeout(() => {
      due.current = 0;
      const { row: _row, ...kept } = next;
      location.replace(href(place, "whatif", place.ids, kept));
    }, REST_MS);
  }
  return [set, change];
}

function Settings(props: { build: Build; last: Preview | undefined; set: Set; change: (change: Set) => void }) {
  const { build, last, set, change } = props;
  const report = build.packet.budget_report.max_tokens;
  const most = Math.max(TOKENS_SHOWN, 2 * report, Number(set["max_tokens"] ?? 0));
  const tokens = Number(set["max_tokens"] ?? report);
  const caps = (last ?? build).request.budget.per_section as unknown as Record<string, number>;
  const window = build.packet.explain.filters["top_k"] as { window_turns?: number } | undefined;
  const turns = Number(set["window_turns"] ?? window?.window_turns ?? 0);
  return (
    <form class="what-if" onSubmit={(event) => event.preventDefault()}>
      <label class="wide">
        {w("query")}
        <input
          data-first-field
          value={set["query"] ?? build.request.query}
          onInput={(event) => change({ query: event.currentTarget.value })}
        />
      </label>
      <label>
        {w("purpose")}
        <select value={set["purpose"] ?? build.packet.meta.purpose} onChange={(event) => change({ purpose: event.currentTarget.value })}>
          {PURPOSES.map((each) => (
            <option key={each} value={each} selected={each === (set["purpose"] ?? build.packet.meta.purpose)}>
              {each}
            </option>
          ))}
        </select>
      </label>
      <label>
        {w("setting_basis")}
        <select value={set["basis"] ?? "then"} onChange={(event) => change({ basis: event.currentTarget.value })}>
          {(["then", "now"] as const).map((each) => (
            <option key={each} value={each} selected={each === (set["basis"] ?? "then")}>
              {w(`basis_${each}_choice`)}
            </option>
          ))}
        </select>
      </label>
      <Slider name={w("setting_tokens")} value={tokens} least={TOKENS_MIN} most={most} step={16} onMove={(value) => change({ max_tokens: value })} />
      <Slider name={w("setting_window")} value={turns} least={0} most={Math.max(WINDOW_SHOWN, turns)} step={1} onMove={(value) => change({ window_turns: value })} />
      <fieldset>
        <legend>{w("setting_sections")}</legend>
        {SECTIONS.map((name) => (
          <SectionSetting key={name} name={name} cap={Number(set[name] ?? caps[name] ?? 0)} most={Math.max(tokens, caps[name] ?? 0)} onSet={(value) => change({ [name]: value })} />
        ))}
      </fieldset>
    </form>
  );
}

/** A section's limit, and a switch that leaves it out. */
function SectionSetting(props: { name: string; cap: number; most: number; onSet: (value: string) => void }) {
  const { name, cap, most, onSet } = props;
  const said = wordFor("s", name);
  return (
    <div class={cap ? "section-setting" : "section-setting off"}>
      <label class="switch">
        <input type="checkbox" checked={cap > 0} onChange={(event) => onSet(event.currentTarget.checked ? "" : "0")} /> {said}
        {cap ? null : ` (${w("setting_off")})`}
      </label>
      <Slider name={`${said}, ${w("setting_limit")}`} value={cap} least={0} most={most} step={16} onMove={onSet} isQuiet />
    </div>
  );
}

function Slider(props: { name: string; value: number; least: number; most: number; step: number; onMove: (value: string) => void; isQuiet?: boolean }) {
  const { name, value, least, most, step, onMove } = props;
  return (
    <label class="slider">
      <span class={props.isQuiet ? "hidden" : ""}>{name}</span>
      <input type="range" min={least} max={most} step={step} value={value} onInput={(event) => onMove(event.currentTarget.value)} />
      <output>{value}</output>
    </label>
  );
}
