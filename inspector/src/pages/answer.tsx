/**
 * The answer first: on the left the conversation with its packets between the turns, in the middle the exact prompt of
 * one of them, on the right what the chosen line of it rests on.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Build, BuildInputs, Fact, LedgerEntry, RunTurn, TurnBuild } from "../openapi";
import { bundle, withQuery, type Page } from "../api";
import { SECTIONS, type Taken } from "../explain";
import { useFeed } from "../feed";
import { Extent, Stretch } from "../feed_parts";
import { number, shown } from "../format";
import { ofRun } from "../live";
import { useGet, useList } from "../loading";
import { answerHref, WithMarks } from "../marks";
import { Await, Badge, clip, Empty, Head, own, Said, ScoreParts, Time } from "../parts";
import { bestLine, nearestLeft, promptLines, type PromptLine } from "../prompt";
import { href, type Place } from "../route";
import { Source } from "../sources";
import { textOf } from "../texts";
import { w, wordFor } from "../words";
import { Purpose } from "./packet";

export function AnswerPage({ place }: { place: Place }) {
  const [runId = ""] = place.ids;
  const at = place.query.get("at");
  const feed = useFeed<RunTurn>({
    path: own(place, "turns"),
    query: { run_id: runId || undefined },
    order: "asc",
    key: idOf,
    around: at,
    live: runId ? ofRun(runId) : true,
  });
  const chosen = useMemo(() => buildOf(feed.items, at), [feed.items, at]);
  return (
    <>
      <Head title={w("conversation")}>
        <p class="quiet">
          {runId ? (
            <>
              {feed.items.some((turn) => turn.entry) ? (
                <a class="mono" href={href(place, "run", [runId])}>
                  {runId}
                </a>
              ) : (
                <span class="mono">{runId}</span>
              )}{" "}
              · <a href={answerHref(place, "", at ?? "")}>{w("all_sessions")}</a>
            </>
          ) : (
            <>
              {place.user} · {w("session_by_session")}
            </>
          )}{" "}
          · <Extent of={feed} noun="turns" />
        </p>
      </Head>
      <div class="answer">
        <section aria-label={w("conversation")} class="talk">
          <Stretch of={feed} order="asc">
            <ol class="turns">
              {feed.items.map((turn) => (
                <Turn key={idOf(turn)} turn={turn} place={place} runId={runId} at={at} chosen={chosen} />
              ))}
            </ol>
          </Stretch>
          <Reveal to={at} ready={feed.items.some((turn) => idOf(turn) === at)} />
        </section>
        {chosen ? <Told key={chosen} id={chosen} place={place} runId={runId} /> : null}
        {!chosen && feed.doing === null && !feed.problem ? <NoPacket place={place} runId={runId} /> : null}
      </div>
    </>
  );
}

function idOf(turn: RunTurn): string {
  return turn.entry?.id ?? turn.build?.build_id ?? "";
}

/** The packet that is shown: the one that the address names, that its answer was given, or the last of those here. */
function buildOf(turns: RunTurn[], at: string | null): string | null {
  const named = turns.find((turn) => idOf(turn) === at);
  if (named?.build) return named.build.build_id;
  if (named?.entry?.body?.cited) return named.entry.body.cited.build_id;
  const before = named ? turns.slice(0, turns.indexOf(named) + 1) : turns;
  const own = before.findLast((turn) => turn.build) ?? turns.find((turn) => turn.build);
  return own?.build?.build_id ?? null;
}

/** None of the turns that are shown is a packet: the newest that there are elsewhere. */
function NoPacket({ place, runId }: { place: Place; runId: string }) {
  const asked = { run_id: runId || undefined, kind: "build", order: "desc", limit: 5 };
  const found = useGet<Page<RunTurn>>(withQuery(own(place, "turns"), asked));
  return (
    <section class="told" aria-label={w("packets")}>
      <Empty word="no_packet_here" />
      <Await of={found}>
        {({ items, count, next }) => (
          <>
            {items.length ? (
              <h2>
                {w("last_packets")} <span class="count">{count ?? (next ? `${items.length}+` : items.length)}</span>
              </h2>
            ) : (
              <Empty word={next ? "waits_further" : "nothing_composed"} how="run.compose(…)" />
            )}
            <ul class="list">
              {items.map(({ build }) =>
                build ? (
                  <li key={build.build_id} data-row>
                    <BuildTurn build={build} isChosen={false} place={place} runId={runId} />
                  </li>
                ) : null,
              )}
            </ul>
          </>
        )}
      </Await>
    </section>
  );
}

/** Brings the turn that the address names into view within its column. */
function Reveal({ to, ready }: { to: string | null; ready: boolean }) {
  useEffect(() => {
    const found = ready ? document.getElementById(`t-${to}`) : null;
    const box = found?.closest<HTMLElement>(".talk");
    if (found && box) box.scrollTop = found.offsetTop - box.clientHeight / 2;
  }, [to, ready]);
  return null;
}

// -- left: the conversation -------------------------------------------------------------------------------

function Turn(props: { turn: RunTurn; place: Place; runId: string; at: string | null; chosen: string | null }) {
  const { turn, place, runId, at, chosen } = props;
  if (turn.build) {
    return (
      <li id={`t-${turn.build.build_id}`} data-row class="turn build">
        <BuildTurn build={turn.build} isChosen={turn.build.build_id === chosen} place={place} runId={runId} />
      </li>
    );
  }
  const { entry } = turn;
  if (!entry) return null;
  return (
    <li id={`t-${entry.id}`} data-row class={`turn ${entry.role} ${entry.id === at ? "here" : ""}`}>
      <p class="meta">
        <b>{entry.body?.speaker ?? entry.body?.tool?.name ?? entry.role}</b>
        <Said ts={entry.ts} recorded={entry.recorded_at} />
        {runId ? null : <a href={answerHref(place, entry.scope.run_id, entry.id)}>{entry.scope.session_id}</a>}
        <a href={href(place, "event", [entry.id])} title={entry.id}>
          {entry.seq}
          <span class="hidden"> {w("event")}</span>
        </a>
      </p>
      <p class="said">
        <Words entry={entry} place={place} />
      </p>
    </li>
  );
}

const SHOWN_CHARS = 600;

/** As much of a turn as a column takes; the rest on demand, and where it is very long, on the page of the event. */
function Words({ entry, place }: { entry: LedgerEntry; place: Place }) {
  const [isOpen, setOpen] = useState(false);
  const text = textOf(entry);
  const isCut = text.length > SHOWN_CHARS && !isOpen;
  return (
    <>
      <WithMarks text={isCut ? clip(text, SHOWN_CHARS) : text} entry={entry} scope={place} />
      {isCut ? (
        <button type="button" class="quiet small" onClick={() => setOpen(true)}>
          {w("show_whole")} ({number(text.length)})
        </button>
      ) : null}
      {entry.body?.blob ? " " : null}
      {entry.body?.blob ? (
        <a class="small" href={href(place, "event", [entry.id])}>
          {w("show_text")}
        </a>
      ) : null}
    </>
  );
}

function BuildTurn(props: { build: TurnBuild; isChosen: boolean; place: Place; runId: string }) {
  const { build, isChosen } = props;
  return (
    <a
      class="packet-turn"
      href={answerHref(props.place, props.runId, build.build_id)}
      aria-current={isChosen ? "true" : undefined}
    >
      <Purpose of={build.purpose} /> <span>{clip(build.query, 90)}</span>{" "}
      <span class="quiet small">
        {number(build.tokens)} {w("of")} {number(build.tokens_max)} {w("tokens")} · <Time ts={build.created_at} seconds />
      </span>
    </a>
  );
}

// -- middle and right: the prompt, and a line of it ---------------------------------------------------------

function Told({ id, place, runId }: { id: string; place: Place; runId: string }) {
  const build = useGet<Build>(own(place, "builds", id));
  const inputs = useGet<BuildInputs>(own(place, "builds", id, "inputs"));
  return (
    <Await of={build}>{(found) => <Prompt build={found} inputs={inputs.data} place={place} runId={runId} />}</Await>
  );
}

function Prompt(props: { build: Build; inputs: BuildInputs | undefined; place: Place; runId: string }) {
  const { build, inputs, place, runId } = props;
  const lines = useMemo(() => promptLines(build, inputs), [build, inputs]);
  const asked = place.query.get("line");
  const mark = place.query.get("mark");
  const chosen =
    lines.find((line) => asked !== null && line.number === Number(asked)) ??
    lines.findLast((line) => mark !== null && line.marks.includes(mark)) ??
    bestLine(lines);
  const at = place.query.get("at") ?? build.id;
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const line = box.current?.querySelector<HTMLElement>(".line a[aria-current]");
    if (!box.current || !line) return;
    const top = line.offsetTop - box.current.offsetTop - box.current.scrollTop;
    if (top < 0 || top + line.offsetHeight > box.current.clientHeight)
      box.current.scrollTop = line.offsetTop - box.current.clientHeight / 2;
  }, [chosen?.number, build.id]);
  return (
    <>
      <section aria-label={w("prompt_text")} class="told" ref={box}>
        <h2>
          {w("prompt_text")} <Purpose of={build.packet.meta.purpose} />
        </h2>
        <p class="quiet">{clip(build.request.query, 200)}</p>
        <Budget build={build} />
        <ol class="lines">
          {lines.map((line) => (
            <Line
              key={line.number}
              line={line}
              isChosen={line === chosen}
              to={answerHref(place, runId, at, { line: String(line.number) })}
            />
          ))}
        </ol>
        <p>
          <a href={href(place, "packet", [build.id])}>{w("whole_explanation")}</a> ·{" "}
          <a href={href(place, "diff", [build.id])}>{w("diff")}</a>
          {bundle ? null : (
            <>
              {" "}
              · <a href={href(place, "whatif", [build.id])}>{w("what_if")}</a>
            </>
          )}
        </p>
      </section>
      <section aria-label={w("evidence")} class="shown-evidence">
        {chosen ? <Evidence line={chosen} build={build} inputs={inputs} place={place} /> : <Empty word="choose_line" />}
      </section>
    </>
  );
}

/** What the budget went to, section by section. */
function Budget({ build }: { build: Build }) {
  const { section_usage: usage, max_tokens: most, used_tokens_est: used } = build.packet.budget_report;
  const parts = [...SECTIONS, "overhead"].map((name): [string, number] => [name, usage[name] ?? 0]);
  const said = `${number(used)} ${w("of")} ${number(most)} ${w("tokens")}`;
  return (
    <>
      <div class="budget" role="meter" aria-label={w("tokens")} aria-valuemin={0} aria-valuemax={most} aria-valuenow={used}>
        {parts.map(([name, value]) =>
          value ? <i key={name} class={`of-${name}`} style={{ width: `${(100 * value) / Math.max(most, used, 1)}%` }} /> : null,
        )}
      </div>
      <ul class="legend">
        <li>{said}</li>
        {parts.map(([name, value]) =>
          value ? (
            <li key={name}>
              <i class={`of-${name}`} aria-hidden="true" /> {name === "overhead" ? w("overhead") : wordFor("s", name)}{" "}
              <b>{value}</b>
            </li>
          ) : null,
        )}
      </ul>
    </>
  );
}

function Line({ line, isChosen, to }: { line: PromptLine; isChosen: boolean; to: string }) {
  const kind = `line of-${line.section}`;
  if (!line.text.trim()) return <li class={kind} />;
  return (
    <li class={`${kind} ${line.isHeading ? "heading" : ""}`} data-row>
      <a href={to} aria-current={isChosen ? "true" : undefined}>
        {line.text}
      </a>
    </li>
  );
}

const SHOWN = 4;

function Evidence(props: { line: PromptLine; build: Build; inputs: BuildInputs | undefined; place: Place }) {
  const { line, build, inputs, place } = props;
  const { item } = line;
  const sources = [...new Set([...line.evidence, ...(item?.sources ?? [])])];
  const near = inputs ? nearestLeft(build, inputs, line.section) : [];
  const isFrame = !item && line.evidence.length === 0;
  const used = build.packet.budget_report.section_usage[line.section];
  return (
    <>
      <h2>{w("evidence")}</h2>
      <blockquote class={`source line-quote of-${line.section}`}>
        <p class="said">{line.text.trim()}</p>
      </blockquote>
      {line.notes.length ? (
        <>
          <h3>{w("what_changed_it")}</h3>
          <ul class="list small">
            {line.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </>
      ) : null}
      {item?.kind === "fact" ? <Since item={item} place={place} /> : null}
      <h3>{w("rests_on")}</h3>
      {sources.length === 0 ? <p class="quiet">{w(isFrame ? "rests_on_frame" : "rests_on_run")}</p> : null}
      {isFrame && used ? (
        <p class="quiet">
          {wordFor("s", line.section)}: {number(used)} {w("tokens")}
        </p>
      ) : null}
      {sources.slice(0, SHOWN).map((id) => (
        <Context key={id} id={id} place={place} quote={item?.text} />
      ))}
      {sources.length > SHOWN ? (
        <p class="quiet">
          {sources.length - SHOWN} {w("not_shown")}
        </p>
      ) : null}
      {item ? (
        <>
          <h3>{w("why_chosen")}</h3>
          <p class="reasons">
            <Badge>{wordFor("s", item.section)}</Badge>
            {item.rules.map((rule) => (
              <span key={rule} class="reason">
                {rule}
              </span>
            ))}
            {item.score ? (
              <span class="reason">
                {w("score")} {item.score}
              </span>
            ) : null}
          </p>
          {item.parts ? <ScoreParts parts={item.parts} /> : null}
        </>
      ) : null}
      {near.length ? (
        <>
          <h3>{w("nearly_taken")}</h3>
          <ul class="list small">
            {near.map((each) => (
              <li key={each.name}>
                {clip(each.text, 160)} <span class="quiet">{wordFor("r", each.reason)}</span>
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </>
  );
}

/** What a fact has become since the packet was composed: values that took its place, and that it was taken back. */
function Since({ item, place }: { item: Taken; place: Place }) {
  const key = item.text.slice(0, item.text.indexOf(" = "));
  const id = item.name.replace(/^fact:/, "").replace(/#\d+$/, "");
  const history = useList<Fact>(withQuery(own(place, "fact-history"), { key }), false, 500);
  const mine = history.data?.find((each) => each.fact_id === id);
  const later = (history.data ?? []).filter((each) => each.fact_id !== id && each.status === "active");
  if (!mine || mine.status === "active") return null;
  return (
    <>
      <h3>{w("since_then")}</h3>
      <ul class="list small">
        <li>
          {item.text} <Badge tone="warn">{mine.status}</Badge>
        </li>
        {later.map((each) => (
          <li key={each.fact_id}>
            <a href={href(place, "facts", [], { q: key })}>
              {each.fact_key} = {shown(each.value)}
            </a>{" "}
            <span class="quiet">
              {each.validity?.valid_from ? <Time ts={each.validity.valid_from} /> : null}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** An event in its own words, with what was said just before and after it. */
function Context({ id, place, quote }: { id: string; place: Place; quote?: string | undefined }) {
  const around = useGet<Page<LedgerEntry>>(withQuery(own(place, "events"), { around: id, limit: 3 }));
  const items = around.data?.items ?? [];
  const middle = items.findIndex((each) => each.id === id);
  const session = items[middle]?.scope.session_id;
  const beside = (entries: LedgerEntry[]) =>
    entries.filter((each) => each.scope.session_id === session).map((each) => <Beside key={each.id} entry={each} />);
  return (
    <div class="context">
      {beside(items.slice(0, Math.max(0, middle)))}
      <Source scope={place} id={id} {...(quote ? { quote } : {})} />
      {beside(items.slice(middle + 1))}
    </div>
  );
}

function Beside({ entry }: { entry: LedgerEntry }) {
  return (
    <p class="quiet small beside">
      <b>{entry.body?.speaker ?? entry.role}</b> {clip(textOf(entry), 160)}
    </p>
  );
}
