/** The flow map: where runs go wrong, as a heat map of stages by reasons, and what interventions bring. */

import type { FlowMapSnapshot } from "../openapi";
import { day, percent, signed } from "../format";
import { held, HolderPick } from "../holder";
import { useGet } from "../loading";
import { Await, Empty, Field, Head } from "../parts";
import type { Place } from "../route";
import { hotspots, lifts as liftsOf } from "../rulebook";
import { w } from "../words";

const STEPS = [0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75];
const CODES_MAX = 16;

export function FlowPage({ place }: { place: Place }) {
  const map = useGet<FlowMapSnapshot>(held(place, "banks", "flow-map"), true);
  return (
    <>
      <Head title={w("flow")}>
        <p class="quiet">{w("flow_hint")}</p>
      </Head>
      <div class="bar">
        <HolderPick place={place} />
      </div>
      {map.problem?.code === "not_found" ? (
        <Empty word="flow_unjudged" />
      ) : (
        <Await of={map}>{(found) => <Shown map={found} />}</Await>
      )}
    </>
  );
}

function Shown({ map }: { map: FlowMapSnapshot }) {
  const spots = hotspots(map);
  if (spots.length === 0) return <Empty word="flow_none" />;
  const mass = (name: "stage" | "reason_code", value: unknown) =>
    spots.filter((spot) => spot[name] === value).reduce((sum, spot) => sum + (spot.risky_n ?? 0), 0);
  const ranked = (name: "stage" | "reason_code") =>
    [...new Set(spots.map((spot) => spot[name]))]
      .filter((each): each is string => typeof each === "string")
      .sort((a, b) => mass(name, b) - mass(name, a));
  const stages = ranked("stage");
  const codes: (string | null)[] = [null, ...ranked("reason_code").slice(0, CODES_MAX)];
  return (
    <>
      <dl class="fields">
        <Field name="bucket">
          {map.bucket_key === "*" ? w("all") : <code>{map.bucket_key}</code>}
        </Field>
        {map.window ? (
          <Field name="window">
            {day(map.window.start_at)} – {day(map.window.end_at)}
          </Field>
        ) : null}
      </dl>
      <div class="scroll fit" tabIndex={0} role="region" aria-label={w("flow")}>
        <table class="heat">
          <thead>
            <tr>
              <th scope="col">{w("stage")}</th>
              {codes.map((code) => (
                <th key={code ?? ""} scope="col">
                  {code?.replaceAll("_", " ") ?? w("stage_any")}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {stages.map((stage) => (
              <tr key={stage}>
                <th scope="row">{stage}</th>
                {codes.map((code) => {
                  const spot = spots.find((each) => each.stage === stage && (each.reason_code ?? null) === code);
                  const step = spot ? STEPS.findLastIndex((from) => (spot.risk_rate ?? 0) >= from) : -1;
                  return (
                    <td key={code ?? ""} class={`h${step} ${spot?.thin ? "thin" : ""}`}>
                      {spot ? (
                        <>
                          <b>{percent(spot.risk_rate)}</b>
                          <small>
                            {spot.risky_n ?? ""}/{spot.support_n}
                          </small>
                        </>
                      ) : (
                        "·"
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Lifts map={map} />
      {map.notes ? <p class="quiet small">{map.notes}</p> : null}
    </>
  );
}

function Lifts({ map }: { map: FlowMapSnapshot }) {
  const lifts = liftsOf(map);
  if (lifts.length === 0) return null;
  return (
    <>
      <h2>{w("interventions")}</h2>
      <ul class="lifts">
        {lifts.map((lift) => {
          const [lower, upper, gain] = [lift.lower ?? 0, lift.upper ?? 0, lift.gain_pass ?? 0];
          const x = (value: number) => `${50 + value * 50}%`;
          return (
            <li key={lift.intervention} class={lift.thin ? "thin" : ""}>
              <b>{lift.intervention}</b>
              <div class="whisker" aria-hidden="true">
                <i class="zero" />
                <i class="range" style={{ left: x(lower), width: `${(upper - lower) * 50}%` }} />
                <i class="dot" style={{ left: x(gain) }} />
              </div>
              <span>
                {w("gain")} {signed(gain)}{" "}
                <span class="quiet">
                  ({signed(lower)} … {signed(upper)}) · {w("cost")} {signed(lift.delta_cost)} · {lift.support_n}{" "}
                  {w("runs_n")}
                </span>
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}
