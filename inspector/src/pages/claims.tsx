/** What a run claims, and the words each claim rests on, marked where they stand. */

import type { Chunk, EvidencePointer, RunClaim, RunConflict } from "../openapi";
import { Rest } from "../feed_parts";
import { ofRun } from "../live";
import { useGet, useList } from "../loading";
import { Await, clip, Empty, own, Status } from "../parts";
import type { Place } from "../route";
import { Marked, Source } from "../sources";
import { w } from "../words";

export function Claims({ place, runId }: { place: Place; runId: string }) {
  const claims = useList<RunClaim>(own(place, "runs", runId, "claims"), ofRun(runId));
  const conflicts = useList<RunConflict>(own(place, "runs", runId, "conflicts"), ofRun(runId));
  return (
    <>
      <Rest of={claims.data} />
      <Rest of={conflicts.data} />
      <Await of={claims}>
        {(found) => (
          <>
            {found.length === 0 ? <Empty how="run.claim(…)" /> : null}
            {found.map((claim) => (
              <One key={claim.claim_id} claim={claim} all={found} place={place} />
            ))}
          </>
        )}
      </Await>
      <Await of={conflicts}>
        {(found) =>
          found.length ? (
            <>
              <h2>
                {w("conflicts")} <span class="count">{found.length}</span>
              </h2>
              {found.map((each) => (
                <article key={each.conflict_id} class="card" data-row tabIndex={-1}>
                  <p class="said">{each.description}</p>
                  <p class="meta">
                    <Status of={each.status} /> {each.resolution ? <span>{each.resolution}</span> : null}
                  </p>
                  <div class="pair">
                    <div>
                      <h3>{w("side_a")}</h3>
                      <Evidence refs={each.side_a_refs} place={place} />
                    </div>
                    <div>
                      <h3>{w("side_b")}</h3>
                      <Evidence refs={each.side_b_refs} place={place} />
                    </div>
                  </div>
                </article>
              ))}
            </>
          ) : null
        }
      </Await>
    </>
  );
}

function One({ claim, all, place }: { claim: RunClaim; all: RunClaim[]; place: Place }) {
  const rests = claim.depends_on.map((id) => all.find((each) => each.claim_id === id)?.statement ?? id);
  return (
    <article class="card claim" data-row tabIndex={-1}>
      <p class="said">{claim.statement}</p>
      <p class="meta">
        <Status of={claim.status} /> <code class="quiet">{claim.claim_id}</code>
      </p>
      {claim.reason ? <p class="quiet">{claim.reason}</p> : null}
      {rests.length ? (
        <p>
          {w("depends_on")}: {rests.map((each) => clip(each, 120)).join("; ")}
        </p>
      ) : null}
      {claim.evidence_refs.length ? (
        <Evidence refs={claim.evidence_refs} place={place} />
      ) : (
        <p class="quiet">{w("no_evidence")}</p>
      )}
    </article>
  );
}

export function Evidence({ refs, place }: { refs: EvidencePointer[]; place: Place }) {
  return (
    <>
      {refs.map((ref, index) => (
        <Pointed key={`${ref.evidence_id} ${index}`} pointer={ref} place={place} />
      ))}
    </>
  );
}

function Pointed({ pointer, place }: { pointer: EvidencePointer; place: Place }) {
  const span = spanOf(pointer.span);
  const corpus = (pointer as unknown as { corpus_id?: string }).corpus_id ?? "ledger";
  if (corpus === "ledger") return <Source scope={place} id={pointer.chunk_id} {...(span ? { span } : {})} />;
  return <FromCorpus place={place} corpus={corpus} id={pointer.chunk_id} span={span} />;
}

function spanOf(span: unknown): [number, number] | undefined {
  if (Array.isArray(span) && span.length === 2) return [Number(span[0]), Number(span[1])];
  if (typeof span !== "object" || span === null) return undefined;
  const { start, end } = span as { start?: number; end?: number };
  return start === undefined || end === undefined ? undefined : [start, end];
}

function FromCorpus({
  place,
  corpus,
  id,
  span,
}: {
  place: Place;
  corpus: string;
  id: string;
  span: [number, number] | undefined;
}) {
  const chunk = useGet<Chunk>(own(place, "corpora", corpus, "chunks", id));
  return (
    <Await of={chunk}>
      {(found) => {
        const text = (found as unknown as { text?: string }).text ?? "";
        return (
          <blockquote class="source">
            <p class="quiet mono">
              {corpus} / {id}
            </p>
            <p class="said">{span ? <Marked text={text} start={span[0]} end={span[1]} /> : text}</p>
          </blockquote>
        );
      }}
    </Await>
  );
}
