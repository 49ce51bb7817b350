/** Marks such as [1] in an answer: links to the line of the packet that they name; one that names none stands out. */

import type { LedgerEntry } from "./openapi";
import type { Scope } from "./parts";
import { href } from "./route";
import { w } from "./words";

const MARKS = /(\[\d{1,6}(?:\s*,\s*\d{1,6})*\])/;

export function answerHref(scope: Scope, runId: string, at: string, query: Record<string, string> = {}): string {
  return href(scope, "answer", [runId], { at, ...query });
}

/** The words of an answer that was observed with its build. */
export function WithMarks({ text, entry, scope }: { text: string; entry: LedgerEntry; scope: Scope }) {
  const cited = entry.body?.cited;
  if (!cited) return <>{text}</>;
  const unknown = new Set(cited.unknown_marks.flatMap((mark) => mark.match(/\d+/g) ?? []));
  return (
    <>
      {text.split(MARKS).map((part, index) => {
        if (index % 2 === 0) return part;
        return (part.match(/\d+/g) ?? []).map((mark) =>
          unknown.has(mark) ? (
            <strong key={`${index} ${mark}`} class="mark unknown" title={w("mark_unknown")}>
              [{mark}]<span class="hidden"> {w("mark_unknown")}</span>
            </strong>
          ) : (
            <a
              key={`${index} ${mark}`}
              class="mark"
              href={answerHref(scope, entry.scope.run_id, cited.build_id, { mark })}
            >
              [{mark}]
            </a>
          ),
        );
      })}
    </>
  );
}
