/** The words of an entry, however long: what is short as it is, what is long in parts that are loaded on demand. */

import { useEffect, useState } from "preact/hooks";
import type { LedgerEntry } from "./openapi";
import { bundle, get, Problem, withQuery } from "./api";
import { number, shown, size } from "./format";
import { WithMarks } from "./marks";
import { own, Trouble, type Scope } from "./parts";
import { w } from "./words";

/** Characters that are shown at once of a text that is here, and of one that lies apart. */
const SHOWN_MAX = 6000;
const PART = 16_384;

/** A text in a box that scrolls by itself; one that may scroll can be reached by key. */
export function Box({ text, quiet = false, kind = "said" }: { text: string; quiet?: boolean; kind?: string }) {
  const [most, setMost] = useState(SHOWN_MAX);
  const rest = text.length - most;
  const isLong = text.length > 900 || text.split("\n", 16).length > 15;
  return (
    <>
      <p class={`${kind}${quiet ? " quiet" : ""}`} {...(isLong ? { tabIndex: 0 } : {})}>
        {rest > 0 ? text.slice(0, most) : text}
      </p>
      {rest > 0 ? (
        <p class="ways">
          <button type="button" onClick={() => setMost(most + 8 * SHOWN_MAX)}>
            {w("show_rest")}
          </button>
          <span class="quiet small">
            {number(rest)} {w("characters_more")}
          </span>
        </p>
      ) : null}
    </>
  );
}

/** What an entry says. `open` loads the first part of a text that lies apart without being asked. */
export function EntryText({ entry, scope, open = false }: { entry: LedgerEntry; scope: Scope; open?: boolean }) {
  const { body } = entry;
  if (body?.blob) return <Parts entry={entry} scope={scope} open={open} />;
  if (body?.cited && body.content)
    return (
      <p class="said">
        <WithMarks text={body.content} entry={entry} scope={scope} />
      </p>
    );
  return <Box text={textOf(entry)} quiet={!body} />;
}

interface Loaded {
  text: string;
  next: number;
  done: boolean;
}

function Parts({ entry, scope, open }: { entry: LedgerEntry; scope: Scope; open: boolean }) {
  const [held, setHeld] = useState<Loaded>({ text: "", next: 0, done: false });
  const [doing, setDoing] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  async function more(): Promise<void> {
    setDoing(true);
    try {
      const path = withQuery(own(scope, "events", entry.id, "content"), { start: held.next, length: PART });
      const part = await get<string>(path);
      const length = [...part].length; // the server counts characters, not halves of them
      setHeld({ text: held.text + part, next: held.next + length, done: length < PART });
      setProblem(undefined);
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, "defect", String(error)));
    }
    setDoing(false);
  }
  useEffect(() => {
    if (open && !bundle) void more();
  }, [entry.id]);
  const bytes = size(entry.body?.bytes ?? 0);
  return (
    <>
      {held.text ? (
        <p class="said" tabIndex={0}>
          {held.text}
        </p>
      ) : (
        <p class="said quiet">
          {w(bundle ? "text_apart_bundle" : "text_apart")} {bytes}
        </p>
      )}
      {problem ? <Trouble problem={problem} /> : null}
      {held.done || bundle ? null : (
        <p class="ways">
          <button type="button" disabled={doing} onClick={() => void more()}>
            {w(held.text ? "show_next_part" : "show_text")}
          </button>
          {held.text ? (
            <span class="quiet small">
              {number(held.next)} {w("characters_shown")} · {bytes} {w("in_all")}
            </span>
          ) : null}
        </p>
      )}
    </>
  );
}

export function textOf(entry: LedgerEntry): string {
  const { body } = entry;
  if (!body) return w("forgotten");
  if (body.step)
    return [body.step.event, body.content, body.step.action ? shown(body.step.action) : ""].filter(Boolean).join(" · ");
  if (body.blob) return `${w("text_apart")} ${size(body.bytes ?? 0)}`;
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
  if (Object.hasOwn(rest, "key") && Object.hasOwn(rest, "value")) rest = { text: `${shown(rest["key"])} = ${shown(rest["value"])}` };
  const said = TELLING.filter((name) => Object.hasOwn(rest, name)).map((name) => shown(rest[name]));
  const words = said.length ? said : Object.keys(rest).length ? [shown(rest)] : [];
  return [typeof event === "string" ? event.replaceAll("_", " ") : "", ...words].filter(Boolean).join(" · ");
}
