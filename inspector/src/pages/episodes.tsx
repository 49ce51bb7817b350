/** Episodes: what happened, in the best sentences of those who were there. */

import { useState } from "preact/hooks";
import type { EpisodeCandidate } from "../openapi";
import { between, day } from "../format";
import { useList } from "../loading";
import { Await, Badge, clip, Empty, Filter, fits, Head, own } from "../parts";
import type { Place } from "../route";
import { Sources } from "../sources";
import { w } from "../words";

export function EpisodesPage({ place }: { place: Place }) {
  const [needle, setNeedle] = useState("");
  const episodes = useList<EpisodeCandidate>(own(place, "episodes"), true);
  return (
    <>
      <Head title={w("episodes")} aside={<Filter value={needle} onInput={setNeedle} />} />
      <Await of={episodes}>
        {(found) => {
          const wanted = found
            .filter((each) =>
              fits(needle, each.session_id, ...each.lines.map((line) => line.text), ...each.entities, ...each.tags),
            )
            .sort((a, b) => b.start.localeCompare(a.start));
          if (wanted.length === 0) return <Empty needle={needle} how="run.observe(…)" />;
          return (
            <ol class="story">
              {wanted.map((each) => (
                <One key={each.episode_id} episode={each} place={place} />
              ))}
            </ol>
          );
        }}
      </Await>
    </>
  );
}

function One({ episode, place }: { episode: EpisodeCandidate; place: Place }) {
  return (
    <li data-row tabIndex={-1}>
      <p class="meta">
        <b>{day(episode.start)}</b>
        <span>
          {episode.sources.length} {w("entries")}
          {episode.start === episode.end ? "" : ` · ${between(episode.start, episode.end)}`}
        </span>
        <span class="mono">{clip(episode.session_id, 26)}</span>
      </p>
      <article class="card">
        <ul class="quotes">
          {episode.lines.map((line) => (
            <li key={line.evidence_id} class="said">
              {line.text}
            </li>
          ))}
        </ul>
        <p class="reasons">
          {[...episode.entities, ...episode.tags].map((each) => (
            <span key={each} class="reason">
              {each}
            </span>
          ))}
        </p>
        <p class="meta">
          <span>{w("trust")}</span>
          <Badge tone={episode.trust === "external" ? "warn" : "plain"}>{episode.trust}</Badge>
        </p>
        <Sources scope={place} ids={episode.sources} />
      </article>
    </li>
  );
}
