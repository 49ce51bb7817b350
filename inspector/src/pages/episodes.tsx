/** Episodes: what happened, in the best sentences of those who were there. */

import { useState } from "preact/hooks";
import type { EpisodeCandidate } from "../openapi";
import { useFeed } from "../feed";
import { Extent, Stretch, useRested } from "../feed_parts";
import { between, day } from "../format";
import { Badge, clip, Filter, Head, own } from "../parts";
import type { Place } from "../route";
import { Sources } from "../sources";
import { w } from "../words";

export function EpisodesPage({ place }: { place: Place }) {
  const [typed, setTyped] = useState("");
  const needle = useRested(typed);
  const feed = useFeed<EpisodeCandidate>({
    path: own(place, "episodes"),
    order: "desc",
    key: (episode) => episode.sources[0] ?? episode.episode_id,
    q: needle,
    live: true,
    words: (each) => [each.session_id, ...each.lines.map((line) => line.text), ...each.entities, ...each.tags],
  });
  return (
    <>
      <Head title={w("episodes")} aside={<Filter value={typed} onInput={setTyped} />} />
      <div class="bar">
        <Extent of={feed} noun="episodes" looking={typed.trim() !== needle} />
      </div>
      <Stretch of={feed} order="desc" needle={needle} how="run.observe(…)">
        <ol class="story">
          {feed.items.map((each) => (
            <One key={each.episode_id} episode={each} place={place} />
          ))}
        </ol>
      </Stretch>
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
