/** Research runs: the gates they passed, the perspectives, claims with their support, and the sources. */

import type { CheckedClaim, ResearchCitation, RunState, StudyStatus } from "../openapi";
import { useFeed } from "../feed";
import { Rest, Stretch } from "../feed_parts";
import { shown } from "../format";
import { ofRun } from "../live";
import { useGet, useList } from "../loading";
import { Await, Badge, clip, Empty, Field, Head, Id, Outside, own, Status, Table, Time } from "../parts";
import { href, type Place } from "../route";
import { w } from "../words";

export function ResearchPage({ place }: { place: Place }) {
  const runs = useFeed<RunState>({
    path: own(place, "runs"),
    order: "desc",
    key: (run) => run.run_id,
    keep: (run) => run.task_type === "research",
    live: true,
  });
  return (
    <>
      <Head title={w("research")} />
      <Stretch of={{ ...runs, isFiltered: false }} order="desc" how="mem.research(…)">
        <Table heads={[w("run"), w("question"), w("started"), w("state")]} label={w("research")}>
          {runs.items.map((run) => (
            <tr key={run.run_id} data-row>
              <td>
                <Id id={run.run_id} to={href(place, "study", [run.run_id])} />
              </td>
              <td class="wide">{clip(run.objective ?? "", 160)}</td>
              <td>
                <Time ts={run.started_at} />
              </td>
              <td>
                {run.stop_reason ? <Status of={run.stop_reason} /> : <span class="badge info">{w("running")}</span>}
              </td>
            </tr>
          ))}
        </Table>
      </Stretch>
    </>
  );
}

export function StudyPage({ place }: { place: Place }) {
  const [id = ""] = place.ids;
  const status = useGet<StudyStatus>(own(place, "research", id, "status"), ofRun(id));
  const claims = useList<CheckedClaim>(own(place, "research", id, "claims"), ofRun(id));
  const sources = useList<ResearchCitation>(own(place, "research", id, "sources"), ofRun(id));
  return (
    <>
      <Await of={status}>{(found) => <About status={found} place={place} />}</Await>
      <h2>
        {w("claims")} <span class="count">{claims.data?.length ?? 0}</span>
      </h2>
      <Rest of={claims.data} />
      <Await of={claims}>
        {(found) => (found.length ? <Claims claims={found} sources={sources.data ?? []} /> : <Empty />)}
      </Await>
      <h2>
        {w("sources")} <span class="count">{sources.data?.length ?? 0}</span>
      </h2>
      <Rest of={sources.data} />
      <Await of={sources}>{(found) => (found.length ? <Cited sources={found} /> : <Empty />)}</Await>
    </>
  );
}

function About({ status, place }: { status: StudyStatus; place: Place }) {
  const { manifest } = status;
  return (
    <>
      <Head title={clip(manifest.question, 200)} aside={<Status of={manifest.stage} />}>
        <p class="mono quiet">
          <a href={href(place, "run", [manifest.run_id])}>{manifest.run_id}</a>
        </p>
      </Head>
      <dl class="fields">
        <Field name="mode">{manifest.mode}</Field>
        <Field name="started">
          <Time ts={manifest.created_at} />
        </Field>
        <Field name="version">{manifest.revision}</Field>
        {manifest.pivot ? (
          <Field name="pivot">
            {w(manifest.pivot.second_wave ? "yes" : "no")}: {clip(manifest.pivot.reason, 120)}
          </Field>
        ) : null}
      </dl>
      {status.edited.length ? (
        <div class="trouble" role="alert">
          {w("edited")}: {status.edited.join(", ")}
        </div>
      ) : null}
      <h2>{w("gates")}</h2>
      <ol class="gates">
        {status.gates.gates.map((gate) => (
          <li key={gate.gate} class={`card ${gate.status}`}>
            <p class="meta">
              <b class="letter">{gate.gate}</b> <Status of={gate.status} />
            </p>
            <p class="small">{w(`gate_${gate.gate}`)}</p>
            <dl class="metrics">
              {Object.entries(gate.metrics ?? {}).map(([name, value]) => (
                <div key={name}>
                  <dt>{name.replaceAll("_", " ")}</dt>
                  <dd>{clip(shown(value), 40)}</dd>
                </div>
              ))}
            </dl>
            {(gate.reasons ?? []).map((each) => (
              <p key={each} class="small">
                {clip(each, 240)}
              </p>
            ))}
          </li>
        ))}
      </ol>
      <h2>
        {w("perspectives")} <span class="count">{status.perspectives.length}</span>
      </h2>
      <Table heads={["#", w("perspectives"), w("agent"), w("state"), w("attempts")]} label={w("perspectives")}>
        {status.perspectives.map((each) => {
          const results = (manifest.results ?? []).filter((result) => result.perspective_id === each.id);
          const last = results.at(-1);
          return (
            <tr key={each.id} data-row tabIndex={-1}>
              <td class="tight">
                <code>{each.id}</code>
              </td>
              <td class="wide">
                {each.title} <Badge>{each.track}</Badge>
              </td>
              <td>{each.agent_type}</td>
              <td>
                <Status of={manifest.standings?.[each.id] ?? "waiting"} />
              </td>
              <td>
                {results.length}{" "}
                {last ? (
                  <span class="quiet">
                    {last.words} {w("words")}, {last.sources} {w("sources")}
                  </span>
                ) : null}
              </td>
            </tr>
          );
        })}
      </Table>
    </>
  );
}

function Claims({ claims, sources }: { claims: CheckedClaim[]; sources: ResearchCitation[] }) {
  return (
    <>
      {claims.map((claim, index) => (
        <article key={index} class="card claim" data-row tabIndex={-1}>
          <p class="said">{claim.claim}</p>
          <p class="meta">
            <Status of={claim.support} />{" "}
            <span>
              {w("confidence")} {claim.confidence} %
            </span>{" "}
            <span>
              {claim.perspective_id} · {claim.section}
            </span>
          </p>
          {claim.quote ? (
            <blockquote class="source">
              <p class="said">
                <mark>{claim.quote}</mark>
              </p>
            </blockquote>
          ) : (
            <p class="quiet small">{clip(claim.reason, 240)}</p>
          )}
          <p class="reasons">
            {claim.citation_cids.map((cid) => (
              <span key={cid} class="reason">
                {sources.find((each) => each.cid === cid)?.title ?? cid}
              </span>
            ))}
          </p>
        </article>
      ))}
    </>
  );
}

function Cited({ sources }: { sources: ResearchCitation[] }) {
  return (
    <Table heads={[w("source"), w("status"), w("found_by")]} label={w("sources")}>
      {sources.map((each) => (
        <tr key={each.cid} data-row>
          <td class="wide">
            {each.title ? <div>{each.title}</div> : null}
            <Outside url={each.url} />
          </td>
          <td>
            <Status of={each.status} />
          </td>
          <td>{each.found_by.join(", ")}</td>
        </tr>
      ))}
    </Table>
  );
}
