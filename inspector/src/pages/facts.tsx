/** Facts by their key: versions, when each held, what they rest on, where two contradict. */

import { useState } from "preact/hooks";
import type { Fact, LedgerEntry } from "../openapi";
import { get, withQuery } from "../api";
import { Candidates } from "../attention";
import { Rest, useRested } from "../feed_parts";
import { day, number, percent, shown } from "../format";
import { useAsked, useList } from "../loading";
import { Await, Badge, Empty, Filter, fits, Head, own, Status } from "../parts";
import type { Place } from "../route";
import { Sources } from "../sources";
import { w } from "../words";

/** Keys that are shown at once, and facts that are read. */
const STEP = 60;
const READ_MAX = 2000;

interface Dated extends Fact {
  from: string | undefined;
  to: string | undefined;
}

export function FactsPage({ place }: { place: Place }) {
  const [needle, setNeedle] = useState(place.query.get("q") ?? "");
  const [only, setOnly] = useState(false);
  const [most, setMost] = useState(STEP);
  const path = withQuery(own(place, "facts"), { include_all: true });
  const rested = useRested(needle);
  const all = useList<Fact>(path, true, READ_MAX);
  // Of more than are read here those that fit are asked of the server.
  const asked = useList<Fact>(all.data?.more && rested ? withQuery(path, { q: rested }) : null, true, READ_MAX);
  const facts = all.data?.more && rested ? asked : all;
  return (
    <>
      <Head title={w("facts")} aside={<Filter value={needle} onInput={setNeedle} />} />
      <Candidates place={place} needle={needle} />
      <Rest of={facts.data} />
      <Await of={facts}>
        {(found) => {
          const keys = [...new Set(found.map((fact) => fact.fact_key))].sort();
          const byKey = new Map<string, Fact[]>(keys.map((key) => [key, []]));
          for (const fact of found) byKey.get(fact.fact_key)?.push(fact);
          const groups = [...byKey.values()];
          const wanted = groups.filter(
            (group) =>
              group.some((fact) => fits(needle, fact.fact_key, shown(fact.value))) && (!only || hasConflict(group)),
          );
          return (
            <>
              <div class="bar">
                <button type="button" class="chip" aria-pressed={only} onClick={() => setOnly(!only)}>
                  {w("only_conflicts")}
                </button>
                <span class="quiet">
                  {number(wanted.length)} {w("facts")}
                </span>
              </div>
              {wanted.length === 0 ? <Empty needle={needle} how="run.remember(…), run.extract()" /> : null}
              {wanted.slice(0, most).map((group) => (
                <Group key={group[0]?.fact_key} group={group} place={place} />
              ))}
              {wanted.length > most ? (
                <p class="ways">
                  <button type="button" onClick={() => setMost(most + STEP)}>
                    {w("more")}
                  </button>
                  <span class="quiet small">
                    {number(wanted.length - most)} {w("not_shown")}
                  </span>
                </p>
              ) : null}
            </>
          );
        }}
      </Await>
    </>
  );
}

/** Disputed, or two that are active with different values. */
function hasConflict(group: Fact[]): boolean {
  const active = group.filter((fact) => fact.status === "active" && !fact.validity?.valid_to);
  const values = new Set(active.map((fact) => `${fact.scope_level} ${JSON.stringify(fact.value)}`));
  const levels = new Set(active.map((fact) => fact.scope_level));
  return group.some((fact) => fact.status === "disputed") || values.size > levels.size;
}

function Group({ group, place }: { group: Fact[]; place: Place }) {
  const starts = useAsked(group.map((fact) => fact.fact_id).join(" "), () => starting(group, place));
  const dated: Dated[] = group.map((fact) => ({
    ...fact,
    from: fact.validity?.valid_from ?? starts.data?.[fact.fact_id],
    to: fact.validity?.valid_to ?? undefined,
  }));
  const current = group.findLast((fact) => fact.status === "active") ?? group.at(-1);
  return (
    <article class="card fact" data-row tabIndex={-1}>
      <header>
        <h2>
          <code>{group[0]?.fact_key}</code>
        </h2>
        <span class="now">{current ? shown(current.value) : ""}</span>
        {hasConflict(group) ? <Badge tone="bad">{w("fact_conflict")}</Badge> : null}
      </header>
      <Timeline facts={dated} />
      <details open={hasConflict(group)}>
        <summary>
          {w("versions")} <span class="count">{group.length}</span>
        </summary>
        <ol class="versions">
          {dated.map((fact) => (
            <li key={fact.fact_id}>
              <p class="said">{shown(fact.value)}</p>
              <p class="meta">
                <Status of={fact.status} />
                {fact.from ? (
                  <span>
                    {w("since")} {day(fact.from)}
                  </span>
                ) : null}
                {fact.to ? (
                  <span>
                    {w("until")} {day(fact.to)}
                  </span>
                ) : null}
                {fact.confidence !== undefined ? (
                  <span>
                    {w("confidence")} {percent(fact.confidence)}
                  </span>
                ) : null}
                {fact.scope_level && fact.scope_level !== "user" ? <Badge tone="info">{fact.scope_level}</Badge> : null}
              </p>
              {fact.notes ? <p class="quiet">{fact.notes}</p> : null}
              <Sources
                scope={place}
                ids={fact.sources}
                {...(typeof fact.value === "string" ? { quote: fact.value } : {})}
              />
            </li>
          ))}
        </ol>
      </details>
    </article>
  );
}

/** When the first source of each was said: a fact that names no beginning holds since then. */
async function starting(group: Fact[], place: Place): Promise<Record<string, string>> {
  const found = await Promise.all(
    group.map(async (fact): Promise<[string, string]> => {
      const source = fact.sources[0];
      if (fact.validity?.valid_from || source === undefined) return [fact.fact_id, ""];
      const entry = await get<LedgerEntry>(own(place, "events", source)).catch(() => null);
      return [fact.fact_id, entry?.ts ?? ""];
    }),
  );
  return Object.fromEntries(found.filter(([, ts]) => ts !== ""));
}

const LANE = 22;

function Timeline({ facts }: { facts: Dated[] }) {
  const times = facts
    .flatMap((fact) => [fact.from, fact.to])
    .filter((ts): ts is string => ts !== undefined)
    .map((ts) => Date.parse(ts));
  if (times.length === 0) return null;
  const now = Date.now();
  const first = Math.min(...times);
  const last = Math.max(now, ...times);
  const width = Math.max(last - first, 1);
  const x = (ms: number) => ((ms - first) / width) * 100;
  return (
    <div
      class="timeline"
      aria-label={`${w("timeline")}: ${facts.map((fact) => `${shown(fact.value)} ${fact.from ? day(fact.from) : ""}–${fact.to ? day(fact.to) : ""}`).join("; ")}`}
      role="img"
    >
      <div class="lanes" style={{ height: `${facts.length * LANE}px` }}>
        {facts.map((fact, lane) => {
          const from = fact.from ? Date.parse(fact.from) : first;
          const to = fact.to ? Date.parse(fact.to) : last;
          return (
            <div
              key={fact.fact_id}
              class={`span ${fact.status}`}
              style={{ left: `${x(from)}%`, width: `max(${x(to) - x(from)}%, 4px)`, top: `${lane * LANE}px` }}
              title={`${shown(fact.value)} · ${fact.status}`}
            >
              <span>{shown(fact.value)}</span>
            </div>
          );
        })}
        <i class="now-line" style={{ left: `${x(now)}%` }} />
      </div>
      <p class="ends quiet small">
        <span>{day(new Date(first).toISOString())}</span>
        <span>{w("now")}</span>
      </p>
    </div>
  );
}
