/** Whose rules and logs: the user's own, an agent's, or the whole tenant's. The address says it: `?of=agent:solver`. */

import type { RunState } from "./openapi";
import { at, bundle, withQuery } from "./api";
import { useList } from "./loading";
import { own } from "./parts";
import { go, href, type Place } from "./route";
import { w } from "./words";

const AGENT = "agent:";
/** The newest runs, whose agents can be chosen. */
const RUNS_MAX = 1000;

/** The address of something that the holder has. */
export function held(place: Place, kind: "banks" | "rulebooks", ...parts: string[]): string {
  return at("tenants", place.tenant, kind, place.query.get("of") || `user:${place.user}`, ...parts);
}

/** What an address within the same holder's pages keeps. */
export function keptQuery(place: Place): Record<string, string> {
  const of = place.query.get("of");
  return of ? { of } : {};
}

export function HolderPick({ place }: { place: Place }) {
  const runs = useList<RunState>(bundle ? null : withQuery(own(place, "runs"), { order: "desc" }), false, RUNS_MAX);
  const agents = [...new Set((runs.data ?? []).map((run) => run.scope.agent_id))].sort();
  const chosen = place.query.get("of") ?? "";
  const options: [string, string][] = [
    ["", `${w("user")} ${place.user}`],
    ...agents.map((agent): [string, string] => [`${AGENT}${agent}`, `${w("agent")} ${agent}`]),
    ["tenant", `${w("tenant")} ${place.tenant}`],
  ];
  return (
    <label class="pick inline">
      <span>{w("holder")}</span>
      <select
        value={chosen}
        onChange={(event) =>
          go(href(place, place.page, [], event.currentTarget.value ? { of: event.currentTarget.value } : {}))
        }
      >
        {options.map(([value, label]) => (
          <option key={value} value={value} selected={value === chosen}>
            {label}
          </option>
        ))}
        {runs.data?.more ? <option disabled>{w("agents_of_newest")}</option> : null}
      </select>
    </label>
  );
}
