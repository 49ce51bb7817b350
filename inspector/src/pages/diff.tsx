/** Two builds: what the second has that the first has not, and why. */

import type { Build, BuildDiff, BuildInputs } from "../openapi";
import { get } from "../api";
import { candidates } from "../explain";
import { useAsked, useGet } from "../loading";
import { Await, Badge, clip, Head, Id, own, type Tone } from "../parts";
import { href, type Place } from "../route";
import { w, type Word } from "../words";
import { Purpose } from "./packet";

const MARKS: Record<string, [string, Tone]> = { added: ["+", "good"], removed: ["−", "bad"], changed: ["±", "warn"] };

export function DiffPage({ place }: { place: Place }) {
  const [a = "", b = ""] = place.ids;
  const diff = useGet<BuildDiff>(own(place, "builds", a, "diff", b));
  const texts = useAsked(`${a} ${b}`, async () => {
    const pools = await Promise.all([a, b].map((id) => get<BuildInputs>(own(place, "builds", id, "inputs"))));
    return Object.fromEntries(
      pools.flatMap(({ pool }) => [...candidates(pool).values()]).map((each) => [each.name, each.text]),
    );
  });
  return (
    <>
      <Head title={w("diff")} />
      <div class="pair">
        <One id={a} label="A" place={place} />
        <One id={b} label="B" place={place} />
      </div>
      <Await of={diff}>
        {(found) => (
          <>
            {found.is_same ? <p class="lead">{w("diff_same")}</p> : null}
            {found.request.length ? (
              <p>
                {w("diff_request")}:{" "}
                {found.request.map((each) => (
                  <Badge key={each} tone="info">
                    {each}
                  </Badge>
                ))}
              </p>
            ) : null}
            <p class="quiet">
              {w("tokens")}: {found.tokens_a} → {found.tokens_b}
            </p>
            <ul class="changes">
              {found.changes.map((change) => {
                const [mark, tone] = MARKS[change.what] ?? ["·", "plain"];
                return (
                  <li key={`${change.what} ${change.item}`} class={`card ${tone}`} data-row tabIndex={-1}>
                    <p class="meta">
                      <Badge tone={tone}>
                        {mark} {w(change.what as Word)}
                      </Badge>{" "}
                      <code>{clip(change.item, 80)}</code>
                    </p>
                    {texts.data?.[change.item] ? <p class="said">{clip(texts.data[change.item] ?? "", 400)}</p> : null}
                    <p class="quiet small">
                      {w("why")}: {reason(change.why)}
                    </p>
                  </li>
                );
              })}
            </ul>
          </>
        )}
      </Await>
    </>
  );
}

function reason(told: string): string {
  const cut = told.indexOf(" rules=");
  return clip(cut < 0 ? told : told.slice(cut + 7).replaceAll("_", " "), 200);
}

function One({ id, label, place }: { id: string; label: string; place: Place }) {
  const build = useGet<Build>(own(place, "builds", id));
  return (
    <section class="card">
      <p class="meta">
        <b>{label}</b> <Id id={id} to={href(place, "packet", [id])} />
      </p>
      <Await of={build}>
        {(found) => (
          <p>
            <Purpose of={found.packet.meta.purpose} /> {clip(found.request.query, 160)}
          </p>
        )}
      </Await>
    </section>
  );
}
