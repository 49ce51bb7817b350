/** The ledger of a run: every entry in order, each with its place in the chain. */

import { useEffect, useState } from "preact/hooks";
import type { LedgerEntry } from "../openapi";
import { useFeed } from "../feed";
import { Extent, Stretch, useRested } from "../feed_parts";
import { shown, short } from "../format";
import { ofRun } from "../live";
import { Badge, Filter, own, Said } from "../parts";
import { href, type Place } from "../route";
import { Box, EntryText, textOf } from "../texts";
import { w } from "../words";

const KINDS = ["", "message", "tool_result", "state_patch", "system", "step"] as const;

export function Ledger({ place, runId }: { place: Place; runId: string }) {
  const [typed, setTyped] = useState("");
  const [kind, setKind] = useState<string>("");
  const needle = useRested(typed);
  const named = place.query.get("e");
  const feed = useFeed<LedgerEntry>({
    path: own(place, "runs", runId, "events"),
    order: "asc",
    key: (entry) => entry.id,
    q: needle,
    query: { kind },
    around: needle || kind ? null : named,
    live: ofRun(runId),
    words: (entry) => [textOf(entry), entry.id, entry.body?.speaker],
  });
  return (
    <section aria-label={w("ledger")}>
      <div class="bar">
        <Filter value={typed} onInput={setTyped} />
        <div class="chips" role="group" aria-label={w("kind")}>
          {KINDS.map((each) => (
            <button key={each} type="button" class="chip" aria-pressed={kind === each} onClick={() => setKind(each)}>
              {each === "" ? w("all") : each.replaceAll("_", " ")}
            </button>
          ))}
        </div>
        <Extent of={feed} noun="entries" looking={typed.trim() !== needle} />
      </div>
      <Stretch of={feed} order="asc" needle={needle + kind}>
        <ol class="ledger">
          {feed.items.map((entry) => (
            <Entry key={entry.id} entry={entry} place={place} />
          ))}
        </ol>
      </Stretch>
      <Jump to={named} ready={feed.items.some((entry) => entry.id === named)} />
    </section>
  );
}

/** Brings the entry that the address names into view, once. */
export function Jump({ to, ready }: { to: string | null; ready: boolean }) {
  useEffect(() => {
    const found = to === null || !ready ? null : document.getElementById(`e-${to}`);
    found?.scrollIntoView({ block: "center" });
    found?.querySelector("a")?.focus({ preventScroll: true });
    found?.classList.add("here");
  }, [to, ready]);
  return null;
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
          <Said ts={entry.ts} recorded={entry.recorded_at} seconds />
          <a class="mono" href={href(place, "event", [entry.id])} title={entry.id}>
            {short(entry.id, 18)}
          </a>
          <span class="mono quiet hash" title={`${w("entry_hash")} ${entry.hash}`}>
            # {entry.hash.slice(0, 8)}
          </span>
        </p>
        {body?.tool?.args ? <Box text={shown(body.tool.args)} kind="args" /> : null}
        <EntryText entry={entry} scope={place} />
        {body?.step?.manifest?.builds.map((build) => (
          <a key={build} class="mono" href={href(place, "packet", [build])}>
            {build}
          </a>
        ))}
      </div>
    </li>
  );
}
