/** The words that something rests on, shown where it stands, with the part that matters marked. */

import { useState } from "preact/hooks";
import type { LedgerEntry } from "./openapi";
import { useGet } from "./loading";
import { Await, own, Said as When, type Scope } from "./parts";
import { href } from "./route";
import { EntryText } from "./texts";
import { w } from "./words";

/** The part of a text between two byte offsets, marked. */
export function Marked({ text, start, end }: { text: string; start: number; end: number }) {
  const bytes = new TextEncoder().encode(text);
  const part = (from: number, to?: number) => new TextDecoder().decode(bytes.slice(from, to));
  return (
    <>
      {part(0, start)}
      <mark>{part(start, end)}</mark>
      {part(end)}
    </>
  );
}

export function Source({
  scope,
  id,
  span,
  quote,
}: {
  scope: Scope;
  id: string;
  span?: [number, number];
  quote?: string;
}) {
  const entry = useGet<LedgerEntry>(own(scope, "events", id));
  return (
    <Await of={entry}>
      {(found) => (
        <blockquote class={`source ${found.role}`}>
          <p class="quiet">
            {found.body?.speaker ?? found.role} · <When ts={found.ts} recorded={found.recorded_at} /> ·{" "}
            {found.scope.session_id} ·{" "}
            <a href={href(scope, "event", [id])}>{w("event_in_ledger")}</a>
          </p>
          {found.body?.blob ? (
            <EntryText entry={found} scope={scope} open />
          ) : (
            <p class="said">
              <Said text={found.body?.content ?? w("forgotten")} span={span} quote={quote} />
            </p>
          )}
        </blockquote>
      )}
    </Await>
  );
}

function Said({
  text,
  span,
  quote,
}: {
  text: string;
  span?: [number, number] | undefined;
  quote?: string | undefined;
}) {
  if (span) return <Marked text={text} start={span[0]} end={span[1]} />;
  const at = quote ? text.indexOf(quote) : -1;
  if (!quote || at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark>{quote}</mark>
      {text.slice(at + quote.length)}
    </>
  );
}

/** Links to sources that open in place. */
export function Sources({ scope, ids, quote }: { scope: Scope; ids: string[]; quote?: string }) {
  const [open, setOpen] = useState<string | null>(null);
  const distinct = [...new Set(ids)];
  if (distinct.length === 0) return null;
  return (
    <div class="sources">
      {distinct.slice(0, 8).map((id, index) => (
        <button
          key={id}
          type="button"
          class="chip"
          aria-expanded={open === id}
          title={id}
          onClick={() => setOpen(open === id ? null : id)}
        >
          ↳ {w(open === id ? "hide_source" : "show_source")} {distinct.length > 1 ? index + 1 : ""}
        </button>
      ))}
      {distinct.length > 8 ? (
        <span class="quiet">
          {distinct.length - 8} {w("not_shown")}
        </span>
      ) : null}
      {open ? <Source scope={scope} id={open} {...(quote ? { quote } : {})} /> : null}
    </div>
  );
}
