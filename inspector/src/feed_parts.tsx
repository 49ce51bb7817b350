/** A list that is held in part: how much of it is shown, and the ways on at both ends. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Read } from "./api";
import type { Feed, Order } from "./feed";
import { number } from "./format";
import { Empty, Trouble, Waiting } from "./parts";
import { w, type Word } from "./words";

/** A text that is typed, once it rests. */
export function useRested(text: string, ms = 250): string {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setRested(text.trim()), text.trim() ? ms : 0);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return rested;
}

/** How many there are, and how many of them are shown here. */
export function Extent<T>({ of, noun, looking }: { of: Feed<T>; noun: Word; looking?: boolean }) {
  const shown = of.items.length;
  const isWhole = of.before.done && of.after.done;
  const isLooking = looking || of.doing === "start";
  let said = "";
  if (of.problem) return null;
  if (of.isFiltered) {
    if (isLooking) said = `${number(shown)} ${w(noun)} ${w("found_so_far")}`;
    else said = isWhole ? `${number(shown)} ${w(noun)}` : `${number(shown)} ${w(noun)} ${w("shown_more")}`;
  } else if (of.doing === "start" && shown === 0) said = w("loading");
  else if (of.count === undefined)
    said = isWhole ? `${number(shown)} ${w(noun)}` : `${number(shown)} ${w(noun)} ${w("shown_more")}`;
  else said = `${number(of.count)} ${w(noun)}${isWhole ? "" : ` · ${number(shown)} ${w("shown_here")}`}`;
  return (
    <span class="quiet extent" role="status">
      {said}
    </span>
  );
}

/** What there is of a feed between the ways to what came before and what comes after. */
export function Stretch<T>({
  of,
  order,
  children,
  needle = "",
  how,
}: {
  of: Feed<T>;
  order: Order;
  children: ComponentChildren;
  needle?: string;
  how?: string;
}) {
  const isEmpty = of.items.length === 0;
  const words: [Word, Word, Word, Word] =
    order === "asc"
      ? ["show_earlier", "show_later", "to_first", "to_last"]
      : ["show_newer", "show_older", "to_newest", "to_oldest"];
  return (
    <>
      {of.problem ? <Trouble problem={of.problem} /> : null}
      {of.doing === "start" ? <Waiting /> : null}
      {isEmpty && of.doing === null && !of.problem && of.before.done && of.after.done ? (
        <Empty needle={of.isFiltered ? needle || " " : needle} {...(how ? { how } : {})} />
      ) : null}
      {of.before.done ? null : (
        <p class="ways">
          <button type="button" disabled={of.doing !== null} onClick={of.earlier}>
            ↑ {w(words[0])}
          </button>
          <button type="button" class="quiet" disabled={of.doing !== null} onClick={of.first}>
            {w(words[2])}
          </button>
        </p>
      )}
      {isEmpty ? null : children}
      {of.after.done || of.doing === "start" ? null : (
        <p class="ways">
          <button type="button" disabled={of.doing !== null} onClick={of.later}>
            ↓ {w(of.isOneWay ? "more" : words[1])}
          </button>
          {of.isOneWay ? null : (
            <button type="button" class="quiet" disabled={of.doing !== null} onClick={of.last}>
              {w(words[3])}
            </button>
          )}
        </p>
      )}
    </>
  );
}

/** That a list was not read to its end. */
export function Rest<T>({ of }: { of: Read<T> | undefined }) {
  if (!of?.more) return null;
  const count = of.count === undefined ? "" : ` ${w("of")} ${number(of.count)}`;
  return (
    <p class="note" role="status">
      {number(of.length)}
      {count} {w("read_here")}
    </p>
  );
}
