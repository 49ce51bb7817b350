/** Marks such as [1] in an answer: links to the line of the packet that they name; one that names none stands out. */

import type { LedgerEntry } from "./openapi";
import type { Scope } from "./parts";
import { href } from "./route";
import { w } from "./words";

const MARKS = /(\[\d{1,6}(?:\s*,\s*\d{1,6})*\])/;

export function answerHref(scope: Scope, runId: string, at: string, query: Record<string, string> = {}): string {
  return href(scope, "answer", runId ? [runId] : [], { ...(at ? { at } : {}), ...query });
}

/** A text with its marks as links; those that name nothing stand out. */
export function Marks(props: { text: string; unknown: string[]; to: (mark: string) => string | null | undefined }) {
  const unknown = new Set(props.unknown.flatMap((mark) => mark.match(/\d+/g) ?? []));
  return (
    <>
      {props.text.split(MARKS).map((part, index) => {
        if (index % 2 === 0) return part;
        return (part.match(/\d+/g) ?? []).map((mark) => {
          const to = props.to(mark);
          return unknown.has(mark) ? (
            <strong key={`${index} ${mark}`} class="mark unknown" title={w("mark_unknown")}>
              [{mark}]<span class="hidden"> {w("mark_unknown")}</span>
            </strong>
          ) : to ? (
            <a key={`${index} ${mark}`} class="mark" href={to}>
              [{mark}]
            </a>
          ) : (
            `[${mark}]`
          );
        });
      })}
    </>
  );
}

/** The words of an answer that was observed with its build. */
export function WithMarks({ text, entry, scope }: { text: string; entry: LedgerEntry; scope: Scope }) {
  const cited = entry.body?.cited;
  if (!cited) return <>{text}</>;
  const to = (mark: string) => answerHref(scope, entry.scope.run_id, cited.build_id, { mark });
  return <Marks text={text} unknown={cited.unknown_marks} to={to} />;
}
