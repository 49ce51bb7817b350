/** One entry of the ledger: its words, its place in the chain, and who was told. */

import type { LedgerEntry, Telling } from "../openapi";
import { bundle, type Page, post } from "../api";
import { useAsked, useGet } from "../loading";
import { Await, Badge, clip, Empty, Field, Head, Id, Json, own, Time } from "../parts";
import { href, type Place } from "../route";
import { EntryText } from "../texts";
import { w } from "../words";

export function EventPage({ place }: { place: Place }) {
  const [id = ""] = place.ids;
  const entry = useGet<LedgerEntry>(own(place, "events", id));
  return <Await of={entry}>{(found) => <Shown entry={found} place={place} />}</Await>;
}

function Shown({ entry, place }: { entry: LedgerEntry; place: Place }) {
  const ledger = href(place, "run", [entry.scope.run_id, "ledger"], { e: entry.id });
  return (
    <>
      <Head
        title={`${w("event")} ${entry.seq}`}
        aside={
          <>
            {bundle ? null : (
              <a class="button" href={href(place, "answer", [entry.scope.run_id], { at: entry.id })}>
                {w("open_conversation")}
              </a>
            )}{" "}
            <a class="button" href={ledger}>
              {w("event_in_ledger")}
            </a>
          </>
        }
      >
        <p class="mono quiet">{entry.id}</p>
      </Head>
      <blockquote class={`source big ${entry.role}`}>
        <EntryText entry={entry} scope={place} open />
      </blockquote>
      <dl class="fields">
        <Field name="speaker">{entry.body?.speaker ?? entry.role}</Field>
        <Field name="said_at">
          <Time ts={entry.ts} seconds />
        </Field>
        <Field name="recorded">
          <Time ts={entry.recorded_at} seconds />
        </Field>
        <Field name="run">
          <Id id={entry.scope.run_id} to={href(place, "run", [entry.scope.run_id])} />
        </Field>
        <Field name="session">
          <span class="mono">{entry.scope.session_id}</span>
        </Field>
        <Field name="trust">{entry.trust}</Field>
        {entry.flags?.length ? (
          <Field name="flags">
            {entry.flags.map((flag) => (
              <Badge key={flag} tone="bad">
                {flag}
              </Badge>
            ))}
          </Field>
        ) : null}
      </dl>
      <h2>{w("chain")}</h2>
      <dl class="fields stacked">
        <Field name="prev_hash">
          <code>{entry.prev_hash}</code>
        </Field>
        <Field name="content_hash">
          <code>{entry.content_hash}</code>
        </Field>
        <Field name="entry_hash">
          <code>{entry.hash}</code>
        </Field>
      </dl>
      {bundle ? null : <Told entry={entry} place={place} />}
      {entry.body?.tool ? <Json value={entry.body.tool} /> : null}
    </>
  );
}

/** The builds whose text holds the words of the event and cites it. */
function Told({ entry, place }: { entry: LedgerEntry; place: Place }) {
  const text = entry.body?.content?.trim() ?? "";
  const told = useAsked(text ? `why ${entry.id}` : null, (signal) =>
    post<Page<Telling>>(own(place, "why"), { text }, signal),
  );
  if (!text) return null;
  return (
    <>
      <h2>{w("event_told")}</h2>
      <Await of={told}>
        {({ items }) => {
          const mine = items.filter((each) => each.evidence_ids.includes(entry.id));
          if (mine.length === 0) return <Empty word="event_untold" />;
          return (
            <ul class="list">
              {mine.map((each) => (
                <li key={each.build_id} data-row>
                  <a href={href(place, "packet", [each.build_id])} class="mono">
                    {each.build_id}
                  </a>{" "}
                  <Badge>{each.purpose}</Badge> <Time ts={each.at} />
                  <p class="quiet">{clip(each.query)}</p>
                </li>
              ))}
            </ul>
          );
        }}
      </Await>
    </>
  );
}
