/** Two packets line beside line: what the second has otherwise, each marked by a sign and a word, and why. */

import type { BuildDiff, LinePair, PlacedLine } from "./openapi";
import { number } from "./format";
import { Badge, clip, type Tone } from "./parts";
import { href, type Place } from "./route";
import { Source } from "./sources";
import { w, wordFor, type Word } from "./words";

const SIGNS: Record<string, [string, Tone]> = {
  added: ["+", "good"],
  removed: ["−", "bad"],
  moved: ["↕", "info"],
  reworded: ["±", "warn"],
};
const KINDS = Object.keys(SIGNS);
/** Evidence of one line that is shown at once. */
const SHOWN = 4;

/** The same address with something else chosen on it; an empty text takes a part of it away. */
export function withChosen(place: Place, chosen: Record<string, string>): string {
  const query = Object.fromEntries([...place.query, ...Object.entries(chosen)].filter(([, value]) => value !== ""));
  return href(place, place.page, place.ids, query);
}

export function SideBySide(props: { diff: BuildDiff; place: Place; heads: [string, string]; isFolded?: boolean }) {
  const { diff, place, heads } = props;
  const isOnly = place.query.get("only") === "1";
  const chosen = place.query.get("row");
  const rows = diff.lines.map((pair, index) => ({ pair, index: String(index) }));
  const shown = isOnly ? rows.filter(({ pair, index }) => pair.what !== "same" || index === chosen) : rows;
  return (
    <>
      <Sections diff={diff} heads={heads} isFolded={props.isFolded ?? false} />
      <div class="bar">
        <Counts diff={diff} />
        <label class="switch">
          <input
            type="checkbox"
            checked={isOnly}
            onChange={(event) => location.replace(withChosen(place, { only: event.currentTarget.checked ? "1" : "" }))}
          />{" "}
          {w("only_changes")}
        </label>
      </div>
      {isOnly && rows.length > shown.length ? (
        <p class="quiet small">
          {number(rows.length - shown.length)} {w("same_hidden")}
        </p>
      ) : null}
      <ol class="beside-lines" aria-label={w("compare_of")}>
        <li class="beside-head" aria-hidden="true">
          <span />
          <b>{heads[0]}</b>
          <b>{heads[1]}</b>
        </li>
        {shown.map(({ pair, index }) => (
          <Row key={index} pair={pair} index={index} isOpen={index === chosen} place={place} heads={heads} />
        ))}
      </ol>
    </>
  );
}

/** How many lines changed, of each kind. */
function Counts({ diff }: { diff: BuildDiff }) {
  const counts = KINDS.map((kind): [string, number] => [
    kind,
    diff.lines.filter((pair) => pair.what === kind && pair.item).length,
  ]).filter(([, count]) => count > 0);
  return (
    <p class="counts" role="status">
      {counts.map(([kind, count]) => (
        <Kind key={kind} what={kind} count={count} />
      ))}
      {counts.length ? null : diff.is_same ? w("diff_same") : w("counts_none")}
    </p>
  );
}

function Kind({ what, count }: { what: string; count?: number }) {
  const [sign, tone] = SIGNS[what] ?? ["", "plain"];
  return (
    <Badge tone={tone}>
      {sign} {count === undefined ? null : `${number(count)} `}
      {w(what as Word)}
    </Badge>
  );
}

function Row(props: { pair: LinePair; index: string; isOpen: boolean; place: Place; heads: [string, string] }) {
  const { pair, index, isOpen, place, heads } = props;
  const isPlain = !pair.item;
  const isChanged = pair.what !== "same";
  const mark = isChanged ? <Kind what={pair.what} /> : <span class="hidden">{w("same")}</span>;
  return (
    <li class={`beside-row ${pair.what} ${isPlain ? "plain" : ""}`} id={`row-${index}`} data-row={isPlain ? undefined : ""}>
      <p class="beside-mark">
        {isPlain ? (
          mark
        ) : (
          <a href={withChosen(place, { row: isOpen ? "" : index })} aria-expanded={isOpen}>
            {mark} <span class="more">{w("why")}</span>
          </a>
        )}
        {pair.is_moved && pair.what !== "moved" ? <Kind what="moved" /> : null}
        {pair.is_moved && pair.a ? (
          <span class="quiet small">
            {w("line_from")} {pair.a.number}
            {pair.b && pair.b.block !== pair.a.block ? `, ${wordFor("b", pair.a.block)}` : ""}
          </span>
        ) : null}
      </p>
      <Cell line={pair.a} head={heads[0]} side="a" reason={pair.what === "added" && !isPlain ? pair.reason : undefined} />
      <Cell line={pair.b} head={heads[1]} side="b" reason={pair.what === "removed" && !isPlain ? pair.reason : undefined} />
      {isOpen ? <More pair={pair} place={place} /> : null}
    </li>
  );
}

function Cell(props: { line: PlacedLine | undefined; head: string; side: "a" | "b"; reason: string | undefined }) {
  const { line, head, side, reason } = props;
  if (!line)
    return (
      <p class="beside-cell none quiet">
        <span class="narrow">{head}</span> {reason ? `${w("not_there")} ${wordFor("r", reason)}` : null}
      </p>
    );
  const Changed = side === "a" ? "del" : "ins";
  return (
    <p class="beside-cell">
      <span class="narrow">{head}</span>
      <span class="number" aria-hidden="true">
        {line.number}
      </span>
      <span class="text">
        {line.pieces
          ? line.pieces.map((piece, index) => (piece.is_changed ? <Changed key={index}>{piece.text}</Changed> : piece.text))
          : line.text}
      </span>
    </p>
  );
}

/** The evidence of a line in its own words, and why it is on one side and not on the other. */
function More({ pair, place }: { pair: LinePair; place: Place }) {
  return (
    <div class="beside-more">
      {pair.reason ? (
        <p>
          <b>{pair.what === "added" ? w("was_not_there") : w("not_there")}</b> {wordFor("r", pair.reason)}
        </p>
      ) : null}
      {pair.by ? (
        <p>
          <b>{w("instead")}</b> <code>{clip(pair.by, 80)}</code>
        </p>
      ) : null}
      {pair.why ? (
        <p>
          <b>{w("chosen_by")}</b> {pair.why.replace(/,(?!_)/g, ", ").replaceAll("_", " ")}
        </p>
      ) : null}
      {pair.evidence.length === 0 ? <p class="quiet">{w("rests_on_run")}</p> : null}
      {pair.evidence.slice(0, SHOWN).map((id) => (
        <Source key={id} scope={place} id={id} />
      ))}
      {pair.evidence.length > SHOWN ? (
        <p class="quiet">
          {pair.evidence.length - SHOWN} {w("not_shown")}
        </p>
      ) : null}
    </div>
  );
}

/** What each section had and used, on both sides. */
function Sections({ diff, heads, isFolded }: { diff: BuildDiff; heads: [string, string]; isFolded: boolean }) {
  const isSame = diff.tokens_max_a === diff.tokens_max_b && diff.sections.every((each) => each.cap_a === each.cap_b);
  return (
    <details class="budgets" open={!isFolded && !isSame}>
      <summary>
        {isSame ? null : <Badge tone="warn">± {w("budget_of")}</Badge>} {number(diff.tokens_a)} {w("of")}{" "}
        {number(diff.tokens_max_a)} → {number(diff.tokens_b)} {w("of")} {number(diff.tokens_max_b)} {w("tokens")}
      </summary>
    <div class="scroll fit" tabIndex={0} role="region" aria-label={w("budget_of")}>
      <table class="sections">
        <thead>
          <tr>
            <th scope="col">{w("section_of")}</th>
            <th scope="col">{heads[0]}</th>
            <th scope="col">{heads[1]}</th>
          </tr>
        </thead>
        <tbody>
          {diff.sections.map(({ section, used_a: usedA, cap_a: capA, used_b: usedB, cap_b: capB }) => (
            <tr key={section}>
              <th scope="row">{wordFor("s", section)}</th>
              <td>
                {number(usedA)} {w("of")} {number(capA)}
              </td>
              <td>
                {number(usedB)} {w("of")}{" "}
                {capA === capB ? number(capB) : <strong class="budget-change">{number(capB)}</strong>}
                {usedA === usedB ? null : (
                  <span class="quiet small">
                    {" "}
                    {usedB > usedA ? "▲" : "▼"} {number(Math.abs(usedB - usedA))}
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    </details>
  );
}
