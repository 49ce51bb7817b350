/** A packet explained: its sections with their budgets, every item with its reasons, and what was left out. */

import type { Build, BuildInputs } from "../openapi";
import { leftOut, SECTIONS, taken, type Left, type Taken } from "../explain";
import { Badge, clip, Empty, Json, Meter, ScoreParts, Time } from "../parts";
import type { Place } from "../route";
import { Sources } from "../sources";
import { w, wordFor } from "../words";

export function Explained({ build, inputs, place }: { build: Build; inputs: BuildInputs; place: Place }) {
  const chosen = taken(build, inputs);
  const left = leftOut(build, inputs);
  const { budget_report: report, explain } = build.packet;
  const caps = build.packet.meta.budget.per_section as unknown as Record<string, number>;
  const overhead = Object.entries(report.section_usage).filter(([name]) => !(name in caps));
  return (
    <div class="packet">
      <section aria-label={w("taken")}>
        {SECTIONS.map((name) => (
          <Section
            key={name}
            name={name}
            used={report.section_usage[name] ?? 0}
            most={caps[name] ?? 0}
            items={chosen.filter((each) => each.section === name)}
            place={place}
          />
        ))}
        {overhead.map(([name, used]) => (
          <p key={name} class="quiet">
            {used} {w("tokens")}: {w("overhead")}
          </p>
        ))}
      </section>
      <section aria-label={w("left_out")} class="left">
        <h2>
          {w("left_out")} <span class="count">{left.length}</span>
        </h2>
        {left.length === 0 ? <Empty word="nothing_left" /> : null}
        <LeftOut left={left} place={place} />
        <Notes title={w("steps_down")} lines={report.degradations.map((each) => `${each.action}: ${each.reason}`)} />
        <Notes title={w("conflicts")} lines={explain.conflicts.map(conflictLine)} />
        {build.rules ? (
          <>
            <h3>{w("rules_given")}</h3>
            <pre class="prompt" tabIndex={0}>
              {build.rules.text}
            </pre>
          </>
        ) : null}
        <details>
          <summary>{w("filters")}</summary>
          <Json value={explain.filters} />
        </details>
        <details>
          <summary>{w("determinism")}</summary>
          <Json value={explain.determinism} />
        </details>
      </section>
    </div>
  );
}

/** What contradicts what, by its ids where the note has them. */
function conflictLine(note: Build["packet"]["explain"]["conflicts"][number]): string {
  const { evidence_id, superseded_by: newer } = note as Record<string, unknown>;
  const older = evidence_id ?? note.fact_ids?.[0];
  return `${note.type}: ${note.detail}${older && newer ? ` (${older} → ${newer})` : ""}`;
}

function Notes({ title, lines }: { title: string; lines: string[] }) {
  return lines.length ? (
    <>
      <h3>{title}</h3>
      <ul class="list small">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </>
  ) : null;
}

function Section({
  name,
  used,
  most,
  items,
  place,
}: {
  name: string;
  used: number;
  most: number;
  items: Taken[];
  place: Place;
}) {
  return (
    <section class="card section">
      <header>
        <h2>
          {wordFor("s", name)} <span class="count">{items.length}</span>
        </h2>
        <span class="quiet">
          {used} {w("of")} {most} {w("tokens")}
        </span>
      </header>
      <Meter used={used} most={most} label={wordFor("s", name)} />
      <ul class="items">
        {items.map((item) => (
          <li key={item.name} data-row tabIndex={-1}>
            <p class="said">
              {item.marks.map((mark) => (
                <b key={mark} class="mark">
                  [{mark}]
                </b>
              ))}
              {item.text}
            </p>
            <p class="meta">
              <Badge>{item.kind}</Badge>
              {item.who ? <span>{item.who}</span> : null}
              {item.ts ? <Time ts={item.ts} /> : null}
              {item.score ? (
                <span>
                  {w("score")} <b>{item.score}</b>
                </span>
              ) : null}
            </p>
            <p class="reasons">
              {item.rules.map((rule) => (
                <span key={rule} class="reason">
                  {rule}
                </span>
              ))}
            </p>
            {item.parts ? <ScoreParts parts={item.parts} /> : null}
            <Sources scope={place} ids={item.sources} quote={item.text} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function LeftOut({ left, place }: { left: Left[]; place: Place }) {
  const reasons = [...new Set(left.map((each) => each.reason))];
  return (
    <>
      {reasons.map((reason) => {
        const group = left.filter((each) => each.reason === reason);
        return (
          <details key={reason} class="card" open={group.length <= 6}>
            <summary>
              <b>{reason.replaceAll("_", " ")}</b> <span class="count">{group.length}</span>
              <span class="quiet"> {wordFor("r", reason)}</span>
            </summary>
            <ul class="items">
              {group.slice(0, 100).map((item) => (
                <li key={item.name}>
                  <p class="said">{clip(item.text, 240)}</p>
                  <p class="meta">
                    <Badge>{item.kind}</Badge> {item.who ? <span>{item.who}</span> : null}{" "}
                    {item.ts ? <Time ts={item.ts} /> : null}
                  </p>
                  {item.detail.length ? (
                    <p class="reasons">
                      {item.detail.map(([name, value]) => (
                        <span key={name} class="reason">
                          {name.replaceAll("_", " ")}: {clip(value, 80)}
                        </span>
                      ))}
                    </p>
                  ) : null}
                  <Sources scope={place} ids={item.sources} />
                </li>
              ))}
            </ul>
          </details>
        );
      })}
    </>
  );
}
