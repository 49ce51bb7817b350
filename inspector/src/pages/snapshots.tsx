/** Snapshots of a run: the narrative, what validation said, and a check from the store as it is now. */

import { useState } from "preact/hooks";
import type { CompactionSnapshot, SnapshotValidation } from "../openapi";
import { get, withQuery } from "../api";
import { Rest } from "../feed_parts";
import { ofRun } from "../live";
import { useAsked, useGet, useList } from "../loading";
import { Markdown } from "../markdown";
import { Await, Badge, Empty, own, Status, Time } from "../parts";
import type { Place } from "../route";
import { w } from "../words";

export function Snapshots({ place, runId }: { place: Place; runId: string }) {
  const snapshots = useList<CompactionSnapshot>(own(place, "runs", runId, "snapshots"), ofRun(runId));
  const [chosen, setChosen] = useState<number | null>(null);
  return (
    <Await of={snapshots}>
      {(found) => {
        const sorted = [...found].sort((a, b) => b.sequence - a.sequence);
        const shown = sorted.find((each) => each.sequence === chosen) ?? sorted[0];
        if (!shown) return <Empty how="run.compact()" />;
        return (
          <div class="split">
            <ol class="list pickable">
              {found.more ? (
                <li>
                  <Rest of={found} />
                </li>
              ) : null}
              {sorted.map((each) => (
                <li key={each.snapshot_id} data-row>
                  <button type="button" aria-pressed={each === shown} onClick={() => setChosen(each.sequence)}>
                    <b>
                      {w("snapshot")} {each.sequence}
                    </b>{" "}
                    <Status of={each.validation.status} />
                    <br />
                    <span class="quiet small">
                      <Time ts={each.created_at} />
                    </span>
                  </button>
                </li>
              ))}
            </ol>
            <One key={shown.snapshot_id} snapshot={shown} place={place} runId={runId} />
          </div>
        );
      }}
    </Await>
  );
}

function One({ snapshot, place, runId }: { snapshot: CompactionSnapshot; place: Place; runId: string }) {
  const query = { sequence: snapshot.sequence };
  const narrative = useGet<string>(withQuery(own(place, "runs", runId, "narrative"), query));
  const [asked, setAsked] = useState(false);
  const check = useAsked(asked ? snapshot.snapshot_id : null, () =>
    get<SnapshotValidation>(withQuery(own(place, "runs", runId, "snapshot", "check"), query)),
  );
  return (
    <div>
      <section class="card">
        <h2>{w("validation")}</h2>
        <Checks validation={snapshot.validation} />
        <p>
          <button type="button" onClick={() => setAsked(true)}>
            {w("check_again")}
          </button>
        </p>
        {asked ? <Await of={check}>{(found) => <Checks validation={found} open />}</Await> : null}
      </section>
      <section class="card narrative">
        <h2>{w("narrative")}</h2>
        <Await of={narrative}>{(text) => <Markdown text={text} />}</Await>
      </section>
    </div>
  );
}

function Checks({ validation, open = false }: { validation: SnapshotValidation; open?: boolean }) {
  const passed = validation.checks.filter((check) => check.status === "PASS").length;
  return (
    <details open={open || validation.status !== "PASS"}>
      <summary>
        <Status of={validation.status} /> {passed} {w("of")} {validation.checks.length}
      </summary>
      <ul class="checks">
        {validation.checks.map((check) => (
          <li key={check.name}>
            <Badge tone={check.status === "PASS" ? "good" : "bad"}>{check.status}</Badge>{" "}
            <b>{check.name.replaceAll("_", " ")}</b> <span class="quiet">{check.message}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
