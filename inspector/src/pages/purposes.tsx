/** One question for planner, tool and responder, side by side: who got what, and why another did not. */

import type { Build, BuildInputs, BuildLine } from "../openapi";
import { bundle, get, withQuery } from "../api";
import { leftOut, SECTIONS, taken, type Candidate, type Left, type Taken } from "../explain";
import { useAsked, useList } from "../loading";
import { Await, clip, Empty, Head, Meter, own } from "../parts";
import { href, type Place } from "../route";
import { w, wordFor } from "../words";
import { Purpose } from "./packet";

const NEAR_MAX = 400;
const PURPOSES = ["planner", "tool", "responder"];

interface Fate {
  taken: Map<string, Taken>;
  left: Map<string, Left>;
}

interface Column {
  build: Build;
  inputs: BuildInputs;
}

export function PurposesPage({ place }: { place: Place }) {
  const [id = ""] = place.ids;
  // Those made just before and just after it: the other purposes of one question are asked together.
  const near = bundle ? own(place, "builds") : withQuery(own(place, "builds"), { around: id });
  const builds = useList<BuildLine>(near, false, NEAR_MAX);
  const ids = builds.data ? peers(builds.data, id) : [];
  const columns = useAsked(builds.data ? ids.join(" ") : null, () => Promise.all(ids.map((each) => load(place, each))));
  return (
    <>
      <Head title={w("purposes")}>
        <p class="mono quiet">
          <a href={href(place, "packet", [id])}>{id}</a>
        </p>
      </Head>
      <Await of={columns}>
        {(found) => (
          <>
            <p class="lead">{clip(found[0]?.build.request.query ?? "", 300)}</p>
            {found.length < 2 ? <Empty word="purposes_none" /> : null}
            <Side columns={found} place={place} />
          </>
        )}
      </Await>
    </>
  );
}

/** The build, and of each other purpose the nearest that asked the same in the same run. */
function peers(builds: BuildLine[], id: string): string[] {
  const mine = builds.find((each) => each.build_id === id);
  if (!mine) return [id];
  const distance = (each: BuildLine) => Math.abs(Date.parse(each.created_at) - Date.parse(mine.created_at));
  return PURPOSES.flatMap((purpose) => {
    if (purpose === mine.purpose) return [id];
    const same = builds.filter(
      (each) => each.purpose === purpose && each.run_id === mine.run_id && each.query === mine.query,
    );
    return same
      .sort((a, b) => distance(a) - distance(b))
      .slice(0, 1)
      .map((each) => each.build_id);
  });
}

async function load(place: Place, id: string): Promise<Column> {
  const [build, inputs] = await Promise.all([
    get<Build>(own(place, "builds", id)),
    get<BuildInputs>(own(place, "builds", id, "inputs")),
  ]);
  return { build, inputs };
}

function Side({ columns, place }: { columns: Column[]; place: Place }) {
  const fates = columns.map(({ build, inputs }) => ({
    taken: new Map(taken(build, inputs).map((each) => [each.name, each])),
    left: new Map(leftOut(build, inputs).map((each) => [each.name, each])),
  }));
  return (
    <>
      <Matrix columns={columns} place={place} fates={fates} />
      <Legend fates={fates} />
    </>
  );
}

function Matrix({ columns, place, fates }: { columns: Column[]; place: Place; fates: Fate[] }) {
  const all = new Map<string, Candidate>();
  for (const fate of fates)
    for (const each of [...fate.taken.values(), ...fate.left.values()]) all.set(each.name, each);
  const rows = [...all.values()].filter((each) => fates.some((fate) => fate.taken.has(each.name)));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={w("purposes")}>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">{w("packet")}</th>
            {columns.map(({ build }) => (
              <th key={build.id} scope="col">
                <a href={href(place, "packet", [build.id])}>
                  <Purpose of={build.packet.meta.purpose} />
                </a>
                <span class="quiet">
                  {" "}
                  {build.packet.budget_report.used_tokens_est} {w("of")} {build.packet.budget_report.max_tokens}
                </span>
                <Meter
                  used={build.packet.budget_report.used_tokens_est}
                  most={build.packet.budget_report.max_tokens}
                  label={w("tokens")}
                />
              </th>
            ))}
          </tr>
        </thead>
        {SECTIONS.map((section) => {
          const own = rows.filter((each) => each.section === section);
          if (own.length === 0) return null;
          return (
            <tbody key={section}>
              <tr class="group">
                <th scope="rowgroup">{wordFor("s", section)}</th>
                {columns.map(({ build }) => (
                  <td key={build.id} class="quiet">
                    {build.packet.budget_report.section_usage[section] ?? 0} {w("tokens")}
                  </td>
                ))}
              </tr>
              {own.map((row) => (
                <tr key={row.name} data-row tabIndex={-1}>
                  <th scope="row">
                    <span class="quiet small">{row.kind}</span> {clip(row.text, 140)}
                  </th>
                  {fates.map((fate, index) => {
                    const got = fate.taken.get(row.name);
                    const reason = fate.left.get(row.name)?.reason;
                    return (
                      <td key={columns[index]?.build.id} class={got ? "got" : "not"}>
                        {got ? (
                          <>
                            ✓{" "}
                            {got.score ? (
                              <span class="quiet small">
                                {w("score")} {got.score}
                              </span>
                            ) : null}
                          </>
                        ) : reason ? (
                          <span title={wordFor("r", reason)}>{reason.replaceAll("_", " ")}</span>
                        ) : (
                          "–"
                        )}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          );
        })}
      </table>
    </div>
  );
}

/** What the words mean that stand where something is not. */
function Legend({ fates }: { fates: Fate[] }) {
  const taken = new Set(fates.flatMap((fate) => [...fate.taken.keys()]));
  const left = fates.flatMap((fate) => [...fate.left.values()].filter((each) => taken.has(each.name)));
  const reasons = [...new Set(left.map((each) => each.reason))].sort();
  return (
    <dl class="legend-of">
      {reasons.map((reason) => (
        <div key={reason}>
          <dt>{reason.replaceAll("_", " ")}</dt>
          <dd>{wordFor("r", reason)}</dd>
        </div>
      ))}
    </dl>
  );
}
