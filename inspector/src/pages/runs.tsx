/** Runs, newest first, by the session they belong to. */

import { useState } from "preact/hooks";
import type { RunState } from "../openapi";
import { between } from "../format";
import { useList } from "../loading";
import { Await, clip, Empty, Filter, fits, Head, Id, own, Status, Table, Time } from "../parts";
import { href, type Place } from "../route";
import { w } from "../words";

export function RunsPage({ place }: { place: Place }) {
  const [needle, setNeedle] = useState("");
  const [grouped, setGrouped] = useState(false);
  const runs = useList<RunState>(own(place, "runs"), true, 20000);
  return (
    <>
      <Head title={w("runs")} aside={<Filter value={needle} onInput={setNeedle} />} />
      <Await of={runs}>
        {(found) => {
          const wanted = found
            .filter((run) =>
              fits(needle, run.run_id, run.scope.session_id, run.scope.agent_id, run.task_type, run.objective),
            )
            .sort((a, b) => b.started_at.localeCompare(a.started_at));
          const sessions = new Set(wanted.map((run) => run.scope.session_id)).size;
          if (wanted.length === 0) return <Empty needle={needle} how="mem.run(…).observe(…)" />;
          return (
            <>
              <div class="bar">
                <button type="button" class="chip" aria-pressed={grouped} onClick={() => setGrouped(!grouped)}>
                  {w("by_session")}
                </button>
                <span class="quiet">
                  {wanted.length} {w("runs")} · {sessions} {w("sessions")}
                </span>
              </div>
              {grouped ? (
                <Sessions runs={wanted.slice(0, 500)} place={place} />
              ) : (
                <Runs runs={wanted.slice(0, 500)} place={place} />
              )}
            </>
          );
        }}
      </Await>
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

function Runs({ runs, place }: { runs: RunState[]; place: Place }) {
  const heads = [w("run"), w("session"), w("agent"), w("task_type"), w("started"), w("state")];
  return (
    <Table heads={heads} label={w("runs")} kind="of-runs">
      {runs.map((run) => (
        <tr key={run.run_id} data-row>
          <td>
            <Id id={run.run_id} to={href(place, "run", [run.run_id])} />
            {run.objective ? <div class="quiet small">{clip(run.objective, 90)}</div> : null}
          </td>
          <td class="mono">{clip(run.scope.session_id, 26)}</td>
          <td>{clip(run.scope.agent_id, 26)}</td>
          <td>{run.task_type}</td>
          <td>
            <Time ts={run.started_at} />
          </td>
          <td>
            {run.stop_reason ? (
              <Status of={run.stop_reason} />
            ) : (
              <span class="badge info live-dot">{w("running")}</span>
            )}
            {run.finished_at ? <span class="quiet small"> {between(run.started_at, run.finished_at)}</span> : null}
          </td>
        </tr>
      ))}
    </Table>
  );
}
