/** From a text to who was told it: the lines of prompts that say it, each leading to what it rests on. */

import { useEffect, useState } from "preact/hooks";
import type { Build, Telling } from "./openapi";
import { bundle, get, post, type Page } from "./api";
import { number } from "./format";
import { useAsked, useGet } from "./loading";
import { answerHref, Marks } from "./marks";
import { Badge, clip, Time, Trouble, Waiting } from "./parts";
import { href } from "./route";
import { w } from "./words";

/** Sentences that are asked for one by one where the whole text is nowhere, and builds that are opened. */
const SENTENCES_MAX = 12;
const BUILDS_MAX = 10;
/** How many of the newest packets are looked through at first, and at most. */
const LOOKED = 1000;
const LOOKED_MAX = 100_000;

interface Found {
  sentence: string;
  tellings: Telling[];
}

export interface Traced {
  found: Found[];
  builds: Map<string, Build>;
  /** Sentences that were not asked for. */
  unasked: number;
}

/** The sentences of an answer as they were pasted. */
export function sentencesOf(text: string): string[] {
  const parts = text.split(/\n+|(?<=[.!?])\s+|(?<=[。！？])/);
  return parts.map((part) => part.trim()).filter((part) => part.length > 2);
}

/** A sentence without its marks and its end, for one that was pasted otherwise than it was said. */
function bare(sentence: string): string {
  return sentence.replace(/\s*\[\d[\d,\s]*\]/g, "").replace(/[.!?。！？\s]+$/, "");
}

/** Asked of `base`, the address of a tenant or of a user. */
export async function trace(base: string, text: string, looked: number, signal: AbortSignal): Promise<Traced> {
  const asked = looked === LOOKED ? {} : { looked_max: looked };
  const ask = async (words: string): Promise<Found> => ({
    sentence: words,
    tellings: (await post<Page<Telling>>(`${base}/why`, { text: words, ...asked }, signal)).items,
  });
  const whole = await ask(text);
  const sentences = sentencesOf(text);
  let found = [whole];
  if (whole.tellings.length === 0 && sentences.length > 0) {
    found = [];
    for (const each of sentences.slice(0, SENTENCES_MAX)) {
      const asked = await ask(each);
      const words = bare(each);
      const isOver = asked.tellings.length > 0 || words === each || words.length < 3;
      found.push(isOver ? asked : { ...(await ask(words)), sentence: each });
    }
  }
  const ids = [...new Set(found.flatMap((each) => each.tellings.map((one) => one.build_id)))].slice(0, BUILDS_MAX);
  const builds = await Promise.all(ids.map((id) => get<Build>(`${base}/builds/${encodeURIComponent(id)}`, signal)));
  const unasked = found.length > 1 ? Math.max(0, sentences.length - SENTENCES_MAX) : 0;
  return { found, builds: new Map(builds.map((build) => [build.id, build])), unasked };
}

export function Traces({ base, text }: { base: string; text: string }) {
  const [looked, setLooked] = useState(LOOKED);
  useEffect(() => setLooked(LOOKED), [base, text]);
  const traced = useAsked(`${base} ${text} ${looked}`, (signal) => trace(base, text, looked, signal));
  const all = useGet<Page<unknown>>(bundle ? null : `${base}/builds?limit=1`);
  if (traced.problem) return <Trouble problem={traced.problem} />;
  if (!traced.data) return <Waiting />;
  const { found, builds, unasked } = traced.data;
  const isNowhere = found.every((each) => each.tellings.length === 0);
  return (
    <>
      {isNowhere ? <p class="empty quiet">{w("told_nowhere")}</p> : null}
      <ol class="hits">
        {found.map(({ sentence, tellings }) => (
          <li key={sentence} class="card">
            {found.length > 1 ? <p class="said lead">{sentence}</p> : null}
            {tellings.length === 0 && !isNowhere ? <p class="quiet">{w("told_nowhere")}</p> : null}
            <ul class="items">
              {tellings.map((each, index) => (
                <One key={`${each.build_id} ${index}`} telling={each} build={builds.get(each.build_id)} />
              ))}
            </ul>
          </li>
        ))}
      </ol>
      {unasked ? (
        <p class="note">
          {number(unasked)} {w("sentences_unasked")}
        </p>
      ) : null}
      <Looked looked={looked} all={all.data} onMore={() => setLooked(Math.min(LOOKED_MAX, looked * 10))} />
    </>
  );
}

/** How far back was looked, and the way on where there are more. */
function Looked({ looked, all, onMore }: { looked: number; all: Page<unknown> | undefined; onMore: () => void }) {
  const count = all?.count;
  if (count !== undefined && count <= looked)
    return (
      <p class="quiet small">
        {w("looked_all")} {number(count)}
      </p>
    );
  return (
    <p class="note">
      {w("looked_newest")} {number(looked)} {count === undefined ? "" : `${w("of")} ${number(count)}`}{" "}
      {looked < LOOKED_MAX && !bundle ? (
        <button type="button" onClick={onMore}>
          {w("look_further")}
        </button>
      ) : null}
    </p>
  );
}

function One({ telling, build }: { telling: Telling; build: Build | undefined }) {
  const lines = telling.line ? telling.line.split("\n") : [];
  const scope = build?.packet.meta.scope;
  const place = scope ? { tenant: scope.tenant_id ?? "default", user: scope.user_id } : null;
  const written = build?.text.split("\n") ?? [];
  return (
    <li data-row>
      {telling.sentence ? (
        <p>
          {w("answered")}{" "}
          <span class="said">
            <Marks
              text={clip(telling.sentence, 300)}
              unknown={telling.unknown_marks ?? []}
              to={(mark) => place && scope && answerHref(place, scope.run_id, telling.build_id, { mark })}
            />
          </span>{" "}
          {(telling.unknown_marks ?? []).map((mark) => (
            <Badge key={mark} tone="bad">
              {mark} {w("mark_unknown")}
            </Badge>
          ))}
        </p>
      ) : null}
      {lines.length === 0 ? <p class="quiet">{w("cites_nothing")}</p> : null}
      {lines.map((line) => {
        const at = written.findIndex((each) => each.includes(line.trim()));
        return (
          <p key={line} class="told-line">
            {place && scope ? (
              <a href={answerHref(place, scope.run_id, telling.build_id, at < 0 ? {} : { line: String(at) })}>
                {clip(line, 400)}
              </a>
            ) : (
              clip(line, 400)
            )}
          </p>
        );
      })}
      <p class="meta">
        <Badge>{telling.purpose}</Badge> {place ? <span>{place.user}</span> : null} <Time ts={telling.at} />{" "}
        {place ? (
          <a class="mono" href={href(place, "packet", [telling.build_id])}>
            {telling.build_id}
          </a>
        ) : (
          <span class="mono">{telling.build_id}</span>
        )}{" "}
        <span class="quiet">{clip(telling.query, 120)}</span>
      </p>
    </li>
  );
}
