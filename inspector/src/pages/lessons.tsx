/** Lessons: what runs taught, by stage, with what came of it; and one with its life and its runs. Nothing is written. */

import { useState } from "preact/hooks";
import type { Lesson, LessonEffect, LessonStory, Tally } from "../openapi";
import { withQuery } from "../api";
import { Rest } from "../feed_parts";
import { signed } from "../format";
import { held, HolderPick, keptQuery } from "../holder";
import { useGet, useList } from "../loading";
import { Await, Badge, Empty, Field, Filter, fits, Head, Id, Status, Table, Time } from "../parts";
import { href, type Place } from "../route";
import { w, type Word } from "../words";

const STAGES = ["candidate", "trial", "active", "suspended", "retired"] as const;

export function LessonsPage({ place }: { place: Place }) {
  const [needle, setNeedle] = useState("");
  const [stage, setStage] = useState<string>("");
  const lessons = useList<Lesson>(
    withQuery(held(place, "banks", "lessons"), { stage: stage || undefined, order: "desc" }),
    true,
  );
  return (
    <>
      <Head title={w("lessons")} aside={<Filter value={needle} onInput={setNeedle} />}>
        <p class="quiet">{w("lessons_about")}</p>
      </Head>
      <div class="bar">
        <HolderPick place={place} />
        {["", ...STAGES].map((each) => (
          <button key={each} type="button" class="chip" aria-pressed={stage === each} onClick={() => setStage(each)}>
            {each ? w(`stage_${each}` as Word) : w("all_but_retired")}
          </button>
        ))}
      </div>
      <Rest of={lessons.data} />
      <Await of={lessons}>
        {(found) => {
          const wanted = found.filter((each) => fits(needle, each.lesson_id, each.text, each.when.words));
          if (wanted.length === 0)
            return <Empty needle={needle} how="run.finish(verifier_result=…), mem.runner(agent, verifier)" />;
          return (
            <Table
              heads={[w("lesson"), w("stage"), w("with_it"), w("without_it"), w("effect")]}
              label={w("lessons")}
            >
              {wanted.map((each) => (
                <tr key={each.lesson_id} data-row>
                  <td class="wide">
                    <a href={href(place, "lesson", [each.lesson_id], keptQuery(place))}>{each.text}</a>
                    <p class="quiet small">
                      {w("lesson_when")}: {each.when.words}
                    </p>
                  </td>
                  <td>
                    <Stage of={each} />
                  </td>
                  <td>{share(each.effect.had)}</td>
                  <td>{share(each.effect.held_out)}</td>
                  <td>
                    <Interval of={each.effect} />
                  </td>
                </tr>
              ))}
            </Table>
          );
        }}
      </Await>
    </>
  );
}

function Stage({ of }: { of: Lesson }) {
  return (
    <>
      <Status of={of.stage} /> {of.signed ? <Badge tone="info">{w("lesson_signed")}</Badge> : null}
    </>
  );
}

function share(tally: Tally | undefined): string {
  return tally?.n ? `${tally.passes ?? 0} ${w("of")} ${tally.n}` : "–";
}

/** Where the difference lies, on a line from all worse to all better, with nothing in its middle. */
function Interval({ of }: { of: LessonEffect | undefined }) {
  const { difference, low, high } = of ?? {};
  if (difference === undefined || low === undefined || high === undefined)
    return <span class="quiet">{w("not_compared")}</span>;
  const place = (value: number) => `${50 + 50 * value}%`;
  const tone = low > 0 ? "better" : high < 0 ? "worse" : "";
  const said = `${signed(difference)} (${signed(low)} ${w("to")} ${signed(high)})`;
  return (
    <div class="interval">
      <div class={`line ${tone}`} aria-hidden="true">
        <i class="zero" />
        <i class="reach" style={{ left: place(low), width: `${50 * (high - low)}%` }} />
        <i class="point" style={{ left: place(difference) }} />
      </div>
      <span>{said}</span>
    </div>
  );
}

export function LessonPage({ place }: { place: Place }) {
  const [id = ""] = place.ids;
  const lesson = useGet<LessonStory>(held(place, "banks", "lessons", id), true);
  return (
    <Await of={lesson}>
      {(found) => (
        <>
          <Head title={found.text} aside={<Stage of={found} />}>
            <p class="mono quiet">{found.lesson_id}</p>
          </Head>
          <dl class="fields">
            <Field name="lesson_when">{found.when.words}</Field>
            <Field name="lesson_why">{found.why}</Field>
            <Field name="since">
              <Time ts={found.since} />
            </Field>
            <Field name="origin">{w(`origin_${found.origin}` as Word)}</Field>
          </dl>
          <h2>{w("effect")}</h2>
          <Effect of={found} />
          <h2>{w("history")}</h2>
          <ol class="history">
            {[...(found.history ?? [])].reverse().map((each) => (
              <li key={each.version}>
                <p class="meta">
                  <Status of={each.stage} /> <Time ts={each.at} /> {each.plan_id ? <Id id={each.plan_id} /> : null}
                </p>
                <p>{each.why}</p>
              </li>
            ))}
          </ol>
          <Evidence of={found} place={place} />
          <Runs of={found} place={place} />
          <p class="quiet small">
            {w("lesson_decide")} <code>muniment learn lesson sign {found.lesson_id} --signed-by NAME</code>{" "}
            <code>muniment learn lesson drop {found.lesson_id} --reason WHY</code>
          </p>
        </>
      )}
    </Await>
  );
}

function Effect({ of }: { of: LessonStory }) {
  const effect = of.effect;
  const rows: [string, Tally | undefined][] = [
    [w("with_it"), effect.had],
    [w("without_it"), effect.held_out],
  ];
  const guess = effect.guess;
  return (
    <div class="card">
      {rows.map(([label, tally]) => (
        <div key={label} class="rate">
          <span>{label}</span>
          <div class="meter" aria-hidden="true">
            <div class="fill" style={{ width: `${tally?.n ? (100 * (tally.passes ?? 0)) / tally.n : 0}%` }} />
          </div>
          <b>{share(tally)}</b>
        </div>
      ))}
      <Interval of={effect} />
      {guess ? (
        <p class="quiet small">
          {w("lesson_guess")}: {share(guess.had)} {w("with_it")}, {share(guess.without)} {w("without_it")}
        </p>
      ) : null}
      {of.cost !== undefined ? (
        <p class="quiet small">
          {w("cost")}: {of.cost} {w("with_it")}
          {of.cost_without !== undefined ? `, ${of.cost_without} ${w("without_it")}` : ""}
        </p>
      ) : null}
    </div>
  );
}

function Evidence({ of, place }: { of: LessonStory; place: Place }) {
  const events = of.evidence.event_ids ?? [];
  const runs = of.learnt_from ?? [];
  if (events.length + runs.length === 0) return null;
  return (
    <>
      <h2>{w("evidence")}</h2>
      {events.length ? (
        <p>
          {w("lesson_cites")}{" "}
          {events.map((each) => (
            <Id key={each} id={each} to={href(place, "event", [each])} />
          ))}
        </p>
      ) : null}
      <ul class="list small">
        {runs.map((each) => (
          <li key={each.trace_id}>
            <Id id={each.run_id ?? each.trace_id} {...(each.run_id ? { to: href(place, "run", [each.run_id]) } : {})} />{" "}
            {each.passed === undefined ? null : <Status of={each.passed ? "passed" : "failed"} />}
          </li>
        ))}
      </ul>
    </>
  );
}

function Runs({ of, place }: { of: LessonStory; place: Place }) {
  const runs = of.runs ?? [];
  if (runs.length === 0) return null;
  return (
    <>
      <h2>
        {w("lesson_runs")} <span class="count">{runs.length}</span>
      </h2>
      <Table heads={[w("run"), w("lesson_had"), w("result"), w("cost"), w("made")]} label={w("lesson_runs")}>
        {runs.map((each) => (
          <tr key={each.trace_id} data-row>
            <td>
              <Id
                id={each.run_id ?? each.trace_id}
                {...(each.run_id ? { to: href(place, "run", [each.run_id]) } : {})}
              />
            </td>
            <td>{w(each.arm === "had" ? "lesson_told" : "lesson_left_out")}</td>
            <td>
              <Status of={each.passed ? "passed" : "failed"} />
            </td>
            <td>{each.cost ?? 0}</td>
            <td>
              <Time ts={each.at} />
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}
