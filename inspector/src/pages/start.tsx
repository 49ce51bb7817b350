/** Where a reader of a tenant begins: an answer to paste, who is there, what happened last, what needs attention. */

import { useState } from "preact/hooks";
import type { BuildLine, RunState, UserState } from "../openapi";
import { at, withQuery, type Page } from "../api";
import { Attention, HowMuch } from "../attention";
import { useFeed } from "../feed";
import { Extent, Stretch, useRested } from "../feed_parts";
import { number } from "../format";
import { useGet } from "../loading";
import { Await, Empty, Filter, Head, Id, Table, Time } from "../parts";
import { href, type Place } from "../route";
import { Traces } from "../tellings";
import { w } from "../words";
import { BuildTable } from "./packet";
import { Runs } from "./runs";

const LAST = 8;

export function StartPage({ place }: { place: Place }) {
  const newest = { order: "desc", limit: LAST };
  const runs = useGet<Page<RunState>>(withQuery(at("tenants", place.tenant, "runs"), newest), true);
  const builds = useGet<Page<BuildLine>>(withQuery(at("tenants", place.tenant, "builds"), newest), true);
  return (
    <>
      <Head title={place.tenant}>
        <p class="quiet">{w("start_hint")}</p>
      </Head>
      <HowMuch place={place} />
      <Paste place={place} />
      <Attention place={place} />
      <Users place={place} />
      <h2>
        {w("last_runs")} <OfAll of={runs.data} />
      </h2>
      <Await of={runs}>
        {({ items }) => (items.length ? <Runs runs={items} place={place} /> : <Empty how="mem.run(…).observe(…)" />)}
      </Await>
      <h2>
        {w("last_packets")} <OfAll of={builds.data} />
      </h2>
      <Await of={builds}>
        {({ items }) => (items.length ? <BuildTable builds={items} place={place} /> : <Empty how="run.compose(…)" />)}
      </Await>
    </>
  );
}

/** How many of how many. */
function OfAll({ of }: { of: Page<unknown> | undefined }) {
  if (!of?.items.length) return null;
  return <span class="count">{of.count === undefined ? of.items.length : `${of.items.length} / ${number(of.count)}`}</span>;
}

/** Paste an answer: who was told it. */
function Paste({ place }: { place: Place }) {
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  const ask = () => setAsked(text.trim());
  return (
    <section aria-label={w("paste_label")}>
      <form
        class="paste"
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <label>
          {w("paste_label")}
          <textarea
            rows={4}
            data-first-field
            value={text}
            placeholder={w("paste_hint")}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
            }}
          />
        </label>
        <button type="submit">{w("paste_go")}</button>
      </form>
      {asked ? <Traces base={at("tenants", place.tenant)} text={asked} /> : null}
    </section>
  );
}

function Users({ place }: { place: Place }) {
  const [typed, setTyped] = useState("");
  const needle = useRested(typed);
  const feed = useFeed<UserState>({
    path: at("tenants", place.tenant, "users"),
    order: "asc",
    key: (user) => user.user_id,
    oneWay: true,
    q: needle,
  });
  return (
    <div>
      <div class="bar">
        <h2>{w("users")}</h2>
        <Filter value={typed} onInput={setTyped} label="type_user" />
        <Extent of={feed} noun="users" looking={typed.trim() !== needle} />
      </div>
      <Stretch of={feed} order="asc" needle={needle} how="mem.run(user_id=…).observe(…)">
        <div class="limited">
          <Table heads={[w("user"), w("entries"), w("runs"), w("sessions"), w("last_seen")]} label={w("users")}>
            {feed.items.map((user) => (
              <tr key={user.user_id} data-row>
                <td>
                  <Id id={user.user_id} to={href({ tenant: place.tenant, user: user.user_id }, "runs")} />
                </td>
                <td title={user.is_rough ? w("about_rough") : undefined}>
                  {user.is_rough ? "≈\u00a0" : ""}
                  {number(user.events)}
                </td>
                <td>{number(user.runs)}</td>
                <td>{number(user.sessions)}</td>
                <td>
                  <Time ts={user.last_seen_at} />
                </td>
              </tr>
            ))}
          </Table>
        </div>
      </Stretch>
    </div>
  );
}
