/** Runs, newest first, by the session they belong to. */

import { useState } from "preact/hooks";
import type { RunState } from "../openapi";
import { useFeed } from "../feed";
import { Extent, Stretch, useRested } from "../feed_parts";
import { areApart, between } from "../format";
import { clip, Filter, Head, Id, own, Status, Table, Time } from "../parts";
import { href, type Place } from "../route";
import { w } from "../words";

export function RunsPage({ place }: { place: Place }) {
  const [typed, setTyped] = useState("");
  const [grouped, setGrouped] = useState(false);
  const needle = useRested(typed);
  const feed = useFeed<RunState>({
    path: own(place, "runs"),
    order: "desc",
    key: (run) => run.run_id,
    q: needle,
    live: true,
    words: (run) => [run.run_id, run.scope.session_id, run.scope.agent_id, run.task_type, run.objective],
  });
  return (
    <>
      <Head title={w("runs")} aside={<Filter value={typed} onInput={setTyped} />} />
      <div class="bar">
        <button type="button" class="chip" aria-pressed={grouped} onClick={() => setGrouped(!grouped)}>
          {w("by_session")}
        </button>
        <Extent of={feed} noun="runs" looking={typed.trim() !== needle} />
      </div>
      <Stretch of={feed} order="desc" needle={needle} how="mem.run(…).observe(…)">
        {grouped ? <Sessions runs={feed.items} place={place} /> : <Runs runs={feed.items} place={place} />}
      </Stretch>
    </>
  );
}

/** The runs of one session after another, those with the newest run first. */
function Sessions({ runs, place }: { runs: RunState[]; place: Place }) {
  const sessions = new Map<string, RunState[]>();
  for (const run of runs) sessions.set(run.scope.session_id, [...(sessions.get(run.scope.session_id) ?? []), run]);
  return (
    <>
      {[...sessions].map(([session, of]) => (
        <section key={session}>
          <h2 class="mono">
            {session} <span class="count">{of.length}</span>
          </h2>
          <Runs runs={of} place={place} />
        </section>
      ))}
    </>
  );
}

/** When the first of it was said and, where that is another time, when it was recorded. */
export function RunTime({ run }: { run: RunState }) {
  const said = run.first_said_at ?? run.started_at;
  return (
    <>
      <Time ts={said} />
      {areApart(said, run.started_at) ? (
        <div class="quiet small">
          {w("recorded_at")} <Time ts={run.started_at} />
        </div>
      ) : null}
    </>
  );
}

export function RunStatus({ run }: { run: RunState }) {
  if (run.diagnosis) return <Status of="blocked" />;
  return run.stop_reason ? <Status of={run.stop_reason} /> : <span class="badge info live-dot">{w("running")}</span>;
}

export function Runs({ runs, place }: { runs: RunState[]; place: { tenant: string; user: string } }) {
  const heads = [w("run"), w("session"), w("agent"), w("task_type"), w("said_at"), w("state")];
  return (
    <Table heads={heads} label={w("runs")} kind="of-runs">
      {runs.map((run) => (
        <tr key={run.run_id} data-row>
          <td>
            <Id id={run.run_id} to={href({ ...place, user: run.scope.user_id }, "run", [run.run_id])} />
            {run.objective ? <div class="quiet small">{clip(run.objective, 90)}</div> : null}
          </td>
          <td class="mono">{clip(run.scope.session_id, 26)}</td>
          <td>{clip(run.scope.agent_id, 26)}</td>
          <td>{run.task_type}</td>
          <td>
            <RunTime run={run} />
          </td>
          <td>
            <RunStatus run={run} />
            {run.finished_at ? <span class="quiet small"> {between(run.started_at, run.finished_at)}</span> : null}
          </td>
        </tr>
      ))}
    </Table>
  );
}
