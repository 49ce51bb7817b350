/** The search lab: what would be found, and why each hit is one; and who was told a text. */

import { useState } from "preact/hooks";
import type { Hit } from "../openapi";
import { type Page, post } from "../api";
import { useAsked } from "../loading";
import { Await, Badge, Empty, Head, own, ScoreParts, Tabs, Time } from "../parts";
import { go, href, type Place } from "../route";
import { Sources } from "../sources";
import { Traces } from "../tellings";
import { w } from "../words";

export function SearchPage({ place }: { place: Place }) {
  const [tab = "hits"] = place.ids;
  const isWhy = tab === "why";
  return (
    <>
      <Head title={w("search")}>
        <p class="quiet">{w(isWhy ? "why_hint" : "search_hint")}</p>
      </Head>
      <Tabs
        tabs={[
          ["hits", w("tab_search")],
          ["why", w("tab_why")],
        ]}
        chosen={isWhy ? "why" : "hits"}
        to={(each) => href(place, "search", [each])}
      />
      {isWhy ? <Why place={place} /> : <Lab place={place} />}
    </>
  );
}

function Lab({ place }: { place: Place }) {
  const [query, setQuery] = useState(place.query.get("q") ?? "");
  const [k, setK] = useState(place.query.get("k") ?? "10");
  const [now, setNow] = useState(place.query.get("now") ?? "");
  const asked = {
    query: place.query.get("q") ?? "",
    k: Number(place.query.get("k") ?? 10),
    now: place.query.get("now"),
  };
  const hits = useAsked(asked.query ? JSON.stringify(asked) : null, (signal) =>
    post<Page<Hit>>(
      own(place, "search"),
      { query: asked.query, k: asked.k, ...(asked.now ? { now: asked.now } : {}) },
      signal,
    ),
  );
  return (
    <>
      <form
        class="bar search"
        onSubmit={(event) => {
          event.preventDefault();
          go(href(place, "search", ["hits"], { q: query, k, ...(now ? { now } : {}) }));
        }}
      >
        <label class="grow">
          {w("search_label")}
          <input
            type="search"
            data-first-field
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
        </label>
        <label>
          {w("how_many")}
          <input type="number" min="1" max="100" value={k} onInput={(event) => setK(event.currentTarget.value)} />
        </label>
        <label>
          {w("as_of")}
          <input
            type="text"
            placeholder="2026-10-01T12:00:00Z"
            value={now}
            onInput={(event) => setNow(event.currentTarget.value)}
          />
        </label>
        <button type="submit">{w("search_go")}</button>
      </form>
      {asked.query ? (
        <Await of={hits}>
          {({ items }) => (
            <>
              <p class="quiet" role="status">
                {items.length} {w("hits")}
              </p>
              {items.length === 0 ? <Empty word="no_hits" /> : null}
              <ol class="hits">
                {items.map((hit) => (
                  <HitCard key={hit.id} hit={hit} best={items[0]?.score ?? 1} place={place} />
                ))}
              </ol>
            </>
          )}
        </Await>
      ) : null}
    </>
  );
}

function HitCard({ hit, best, place }: { hit: Hit; best: number; place: Place }) {
  return (
    <li class="card" data-row tabIndex={-1}>
      <p class="said">{hit.text}</p>
      <p class="meta">
        <Badge tone="info">{hit.kind}</Badge>
        {(hit.speaker ?? hit.role) ? <span>{hit.speaker ?? hit.role}</span> : null}
        <Time ts={hit.ts} />
        {hit.session_id ? <span class="mono">{hit.session_id}</span> : null}
        <span class="score" title={`${w("score")} ${hit.score}`}>
          <i style={{ width: `${Math.max(2, (hit.score / best) * 100)}%` }} />
          {hit.score.toFixed(3)}
        </span>
      </p>
      <p class="reasons">
        {hit.why.map((each) => (
          <span key={each} class="reason">
            {each}
          </span>
        ))}
      </p>
      <ScoreParts parts={hit.parts} />
      <Sources
        scope={place}
        ids={hit.sources.length ? hit.sources : hit.kind === "event" ? [hit.id] : []}
        quote={hit.text}
      />
    </li>
  );
}

function Why({ place }: { place: Place }) {
  const asked = place.query.get("q") ?? "";
  const [text, setText] = useState(asked);
  return (
    <>
      <form
        class="bar search"
        onSubmit={(event) => {
          event.preventDefault();
          go(href(place, "search", ["why"], { q: text }));
        }}
      >
        <label class="grow">
          {w("why_label")}
          <input type="search" data-first-field value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit">{w("search_go")}</button>
      </form>
      {asked ? <Traces base={own(place)} text={asked} /> : null}
    </>
  );
}
