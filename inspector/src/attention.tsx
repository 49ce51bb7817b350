/** What a tenant holds in numbers, and what of it waits for a person: each row leads to its place. */

import type { ComponentChildren } from "preact";
import type { Candidate, Overview, Waiting } from "./openapi";
import { at, bundle, withQuery, type Page } from "./api";
import { fits, number, shown } from "./format";
import { useGet } from "./loading";
import { Await, clip, Empty, own, Time } from "./parts";
import { href, type Place } from "./route";
import { Sources } from "./sources";
import { w, wordFor } from "./words";

/** What was proposed of a user and nobody has judged yet. */
export function Candidates({ place, needle }: { place: Place; needle: string }) {
  const waiting = useGet<Page<Candidate>>(
    bundle ? null : withQuery(own(place, "candidates"), { status: "proposed", limit: 50 }),
    true,
  );
  const items = (waiting.data?.items ?? []).filter((each) => fits(needle, each.key, shown(each.value)));
  if (items.length === 0) return null;
  return (
    <section aria-label={w("k_candidate_waiting")}>
      <h2>
        {w("k_candidate_waiting")} <span class="count">{items.length}</span>
      </h2>
      {items.map((each) => (
        <article key={each.candidate_id} class="card fact" data-row tabIndex={-1}>
          <header>
            <h3>
              <code>{each.key}</code>
            </h3>
            <span class="now">{shown(each.value)}</span>
          </header>
          <p class="quiet">{each.explanation}</p>
          <Sources scope={place} ids={each.sources} {...(typeof each.value === "string" ? { quote: each.value } : {})} />
        </article>
      ))}
      {waiting.data?.next ? <p class="quiet small">{w("waits_more")}</p> : null}
    </section>
  );
}

const KINDS = ["run_locked", "canary_decided", "fact_disputed", "candidate_waiting", "scrub_due"] as const;
const SHOWN = 5;

export function HowMuch({ place }: { place: Place }) {
  const held = useGet<Overview>(at("tenants", place.tenant, "overview"), true);
  return (
    <Await of={held}>
      {(found) => (
        <ul class="legend how-much">
          {(["users", "events", "runs", "sessions"] as const).map((name) => (
            <li key={name}>
              <b>{number(found[name])}</b> {w(name)}
              {found.at_least.includes(name) ? ` ${w("or_more")}` : ""}
            </li>
          ))}
          <li>
            <b>{number(found.builds)}</b> {w("packets")}
            {found.at_least.includes("builds") ? ` ${w("or_more")}` : ""}
          </li>
          {found.last_run_at ? (
            <li>
              {w("last_run")} <Time ts={found.last_run_at} />
            </li>
          ) : null}
          {found.last_build_at ? (
            <li>
              {w("last_packet")} <Time ts={found.last_build_at} />
            </li>
          ) : null}
        </ul>
      )}
    </Await>
  );
}

/** Kind by kind, those that wait longest first; a kind of which nothing waits is left out. */
export function Attention({ place }: { place: Place }) {
  const asked = KINDS.map((kind) =>
    useGet<Page<Waiting>>(withQuery(at("tenants", place.tenant, "attention"), { kind, limit: SHOWN }), true),
  );
  const problem = asked.find((each) => each.problem);
  const isReady = asked.every((each) => each.data);
  const isNone = asked.every((each) => each.data?.items.length === 0 && !each.data.next);
  return (
    <section aria-label={w("attention")}>
      <h2>{w("attention")}</h2>
      {problem || !isReady ? <Await of={problem ?? asked.find((each) => !each.data) ?? asked[0]!}>{() => null}</Await> : null}
      {isReady && isNone ? <Empty word="nothing_waits" /> : null}
      <div class="waits">
        {KINDS.map((kind, index) => {
          const page = asked[index]?.data;
          if (!page || (page.items.length === 0 && !page.next)) return null;
          return (
            <div key={kind} class="card">
              <h3>{wordFor("k", kind)}</h3>
              <ul class="list">
                {page.items.map((each) => (
                  <li key={each.id} data-row>
                    <To href={placeOf(each, place)}>{clip(each.text || each.id, 140)}</To>{" "}
                    <span class="quiet small">
                      {each.user_id ?? each.agent_id ?? (each.level === "tenant" ? place.tenant : "")} ·{" "}
                      <Time ts={each.at} />
                    </span>
                  </li>
                ))}
              </ul>
              {page.next ? <p class="quiet small">{w(page.items.length === SHOWN ? "waits_more" : "waits_further")}</p> : null}
              {kind === "scrub_due" ? <code class="small">muniment store scrub</code> : null}
            </div>
          );
        })}
      </div>
    </section>
  );
}

function To({ href: to, children }: { href: string | null; children: ComponentChildren }) {
  return to ? <a href={to}>{children}</a> : <span>{children}</span>;
}

/** The page that shows what waits. */
function placeOf(each: Waiting, place: Place): string | null {
  const scope = { tenant: place.tenant, user: each.user_id ?? "-" };
  switch (each.kind) {
    case "run_locked":
      return href(scope, "run", [each.id, "snapshots"]);
    case "canary_decided": {
      const of = each.level === "tenant" ? "tenant" : each.agent_id ? `agent:${each.agent_id}` : "";
      return href(scope, "rule", [each.id], of ? { of } : {});
    }
    case "fact_disputed":
    case "candidate_waiting":
      return href(scope, "facts", [], { q: each.text.split(": ")[0] ?? "" });
    default:
      return null;
  }
}
