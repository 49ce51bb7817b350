/** One run: its ledger, its packets, its claims, its snapshots. */

import type { RunState } from "../openapi";
import { bundle } from "../api";
import { ofRun } from "../live";
import { useGet } from "../loading";
import { Await, Field, Head, Id, own, Tabs, Time, Value } from "../parts";
import { answerHref } from "../marks";
import { href, type Place } from "../route";
import { w } from "../words";
import { Claims } from "./claims";
import { Ledger } from "./ledger";
import { Builds } from "./packet";
import { RunStatus } from "./runs";
import { Snapshots } from "./snapshots";

const TABS = ["ledger", "packets", "claims", "snapshots"] as const;
type Tab = (typeof TABS)[number];

export function RunPage({ place }: { place: Place }) {
  const [runId = "", asked = "ledger"] = place.ids;
  const tab: Tab = (TABS as readonly string[]).includes(asked) ? (asked as Tab) : "ledger";
  const state = useGet<RunState>(own(place, "runs", runId), ofRun(runId));
  if (state.problem?.status === 404 && !bundle) return <OnlyComposed place={place} runId={runId} />;
  return (
    <>
      <Await of={state}>{(run) => <About run={run} place={place} />}</Await>
      <p>
        <a class="button" href={href(place, "answer", [runId])}>
          {w("open_conversation")}
        </a>
      </p>
      <Tabs tabs={TABS.map((each) => [each, w(each)])} chosen={tab} to={(each) => href(place, "run", [runId, each])} />
      {tab === "ledger" ? <Ledger place={place} runId={runId} /> : null}
      {tab === "packets" ? (
        <Await of={state}>{(run) => <Builds place={place} runId={runId} since={run.started_at} />}</Await>
      ) : null}
      {tab === "claims" ? <Claims place={place} runId={runId} /> : null}
      {tab === "snapshots" ? <Snapshots place={place} runId={runId} /> : null}
    </>
  );
}

/** Nothing was ever said in it, or it is not there: what was composed in it stands in its conversation. */
function OnlyComposed({ place, runId }: { place: Place; runId: string }) {
  return (
    <Head title={runId}>
      <p class="note">
        {w("nothing_said")} <a href={answerHref(place, runId, "")}>{w("open_conversation")}</a>
      </p>
    </Head>
  );
}

function About({ run, place }: { run: RunState; place: Place }) {
  return (
    <>
      <Head
        title={run.run_id}
        aside={<RunStatus run={run} />}
      >
        {run.objective ? <p class="lead">{run.objective}</p> : null}
      </Head>
      {run.diagnosis ? (
        <details class="note" open>
          <summary>{w("why_locked")}</summary>
          <Value of={run.diagnosis} />
        </details>
      ) : null}
      <dl class="fields">
        <Field name="session">
          <span class="mono">{run.scope.session_id}</span>
        </Field>
        <Field name="agent">{run.scope.agent_id}</Field>
        <Field name="task_type">{run.task_type}</Field>
        {run.first_said_at ? (
          <Field name="said_at">
            <Time ts={run.first_said_at} />
            {run.last_said_at && run.last_said_at !== run.first_said_at ? (
              <>
                {" "}
                – <Time ts={run.last_said_at} />
              </>
            ) : null}
          </Field>
        ) : null}
        <Field name="recorded">
          <Time ts={run.started_at} />
        </Field>
        {run.finished_at ? (
          <Field name="ended">
            <Time ts={run.finished_at} />
          </Field>
        ) : null}
        {run.done_definition ? (
          <Field name="done_when">
            <Value of={run.done_definition} />
          </Field>
        ) : null}
        {run.budgets ? (
          <Field name="budgets">
            <Value of={run.budgets} />
          </Field>
        ) : null}
        {run.task_type === "research" ? (
          <Field name="research">
            <Id id={run.run_id} to={href(place, "study", [run.run_id])} />
          </Field>
        ) : null}
      </dl>
    </>
  );
}
