/** The ledger of a run: every entry in order, each with its place in the chain. */

import { useEffect, useState } from "preact/hooks";
import type { LedgerEntry } from "../openapi";
import { shown, short } from "../format";
import { ofRun } from "../live";
import { useList } from "../loading";
import { Await, Badge, Empty, Filter, fits, own, Time } from "../parts";
import { href, type Place } from "../route";
import { w } from "../words";

const STEP = 200;

export function Ledger({ place, runId }: { place: Place; runId: string }) {
  const [needle, setNeedle] = useState("");
  const [kind, setKind] = useState("");
  const [most, setMost] = useState(STEP);
  const entries = useList<LedgerEntry>(own(place, "runs", runId, "events"), ofRun(runId), 20000);
  return (
    <Await of={entries}>
      {(found) => {
        const kinds = [...new Set(found.map((entry) => entry.kind))];
        const wanted = found.filter(
          (entry) => (kind === "" || entry.kind === kind) && fits(needle, textOf(entry), entry.id, entry.body?.speaker),
        );
        return (
          <section aria-label={w("ledger")}>
            <div class="bar">
              <Filter value={needle} onInput={setNeedle} />
              <div class="chips" role="group" aria-label={w("kind")}>
                {["", ...kinds].map((each) => (
                  <button
                    key={each}
                    type="button"
                    class="chip"
                    aria-pressed={kind === each}
                    onClick={() => setKind(each)}
                  >
                    {each === "" ? w("all") : each.replaceAll("_", " ")}
                  </button>
                ))}
              </div>
              <span class="quiet">
                {wanted.length} {w("entries")}
              </span>
            </div>
            {wanted.length === 0 ? <Empty needle={needle + kind} /> : null}
            <ol class="ledger">
              {wanted.slice(0, most).map((entry) => (
                <Entry key={entry.id} entry={entry} place={place} />
              ))}
            </ol>
            {wanted.length > most ? (
              <button type="button" onClick={() => setMost(most + STEP)}>
                {w("more")}
              </button>
            ) : null}
            <Jump to={place.query.get("e")} />
          </section>
        );
      }}
    </Await>
  );
}

/** Brings the entry that the address names into view. */
function Jump({ to }: { to: string | null }) {
  useEffect(() => {
    const found = to === null ? null : document.getElementById(`e-${to}`);
    found?.scrollIntoView({ block: "center" });
    found?.querySelector("a")?.focus({ preventScroll: true });
    found?.classList.add("here");
  }, [to]);
  return null;
}

export function textOf(entry: LedgerEntry): string {
  const { body } = entry;
  if (!body) return w("forgotten");
  if (body.step)
    return [body.step.event, body.content, body.step.action ? shown(body.step.action) : ""].filter(Boolean).join(" · ");
  return body.content || told(body.metadata ?? {});
}

const TELLING = [
  "statement",
  "text",
  "description",
  "why",
  "objective",
  "actions",
  "reason",
  "fact_key",
  "snapshot_id",
  "stop_reason",
];

/** What the library itself wrote down: what happened, and the words that say most of it. */
function told({ event, ...rest }: Record<string, unknown>): string {
  const said = TELLING.filter((name) => Object.hasOwn(rest, name)).map((name) => shown(rest[name]));
  const words = said.length ? said : Object.keys(rest).length ? [shown(rest)] : [];
  return [typeof event === "string" ? event.replaceAll("_", " ") : "", ...words].filter(Boolean).join(" · ");
}

function Entry({ entry, place }: { entry: LedgerEntry; place: Place }) {
  const { body } = entry;
  return (
    <li id={`e-${entry.id}`} class={`entry ${entry.role} ${entry.kind}`} data-row>
      <div class="gutter">
        <span class="seq">{entry.seq}</span>
      </div>
      <div>
        <p class="meta">
          <b>{body?.speaker ?? (body?.tool ? body.tool.name : entry.role)}</b>
          <Badge>{entry.kind.replaceAll("_", " ")}</Badge>
          {body?.tool ? <Badge tone={body.tool.ok ? "good" : "bad"}>{w(body.tool.ok ? "ok" : "failed")}</Badge> : null}
          {entry.trust === "external" ? <Badge tone="warn">{entry.trust}</Badge> : null}
          {(entry.flags ?? []).map((flag) => (
            <Badge key={flag} tone="bad">
              {flag.replaceAll("_", " ")}
            </Badge>
          ))}
          <Time ts={entry.ts} seconds />
          <a class="mono" href={href(place, "event", [entry.id])} title={entry.id}>
            {short(entry.id, 18)}
          </a>
          <span class="mono quiet hash" title={`${w("entry_hash")} ${entry.hash}`}>
            # {entry.hash.slice(0, 8)}
          </span>
        </p>
        {body?.tool?.args ? <p class="mono small quiet">{shown(body.tool.args)}</p> : null}
        <p class={body ? "said" : "said quiet"}>{textOf(entry)}</p>
        {body?.step?.manifest?.builds.map((build) => (
          <a key={build} class="mono" href={href(place, "packet", [build])}>
            {build}
          </a>
        ))}
      </div>
    </li>
  );
}
