/** Packets: the list, and one with what it took and left out, each with the reason. */

import { useState } from "preact/hooks";
import type { Build, BuildInputs, BuildLine } from "../openapi";
import { bundle, getBytes, Problem } from "../api";
import { useFeed } from "../feed";
import { Extent, Stretch, useRested } from "../feed_parts";
import { ofRun } from "../live";
import { useGet, useList } from "../loading";
import { answerHref } from "../marks";
import {
  Await,
  Badge,
  clip,
  Field,
  Filter,
  Head,
  Id,
  Json,
  Meter,
  own,
  Table,
  Tabs,
  Time,
  Trouble,
} from "../parts";
import { go, href, type Place } from "../route";
import { w } from "../words";
import { Explained } from "./explained";

export function PacketsPage({ place }: { place: Place }) {
  return (
    <>
      <Head title={w("packets")} />
      <Builds place={place} />
    </>
  );
}

export function Builds({ place, runId, since }: { place: Place; runId?: string; since?: string }) {
  const [typed, setTyped] = useState("");
  const needle = useRested(typed);
  const feed = useFeed<BuildLine>({
    path: own(place, "builds"),
    order: "desc",
    written: "desc",
    key: (build) => build.build_id,
    q: needle,
    query: { since },
    live: runId ? ofRun(runId) : true,
    words: (build) => [build.query, build.build_id, build.purpose],
    ...(runId ? { keep: (build: BuildLine) => build.run_id === runId } : {}),
  });
  return (
    <>
      <div class="bar">
        <Filter value={typed} onInput={setTyped} />
        <Extent of={feed} noun="packets" looking={typed.trim() !== needle} />
      </div>
      <Stretch of={feed} order="desc" needle={needle} how="run.compose(…)">
        <BuildTable builds={feed.items} place={place} />
      </Stretch>
    </>
  );
}

export function BuildTable({ builds, place }: { builds: BuildLine[]; place: { tenant: string; user: string } }) {
  const heads = [w("packet"), w("purpose"), w("query"), w("run"), w("made")];
  return (
    <Table heads={heads} label={w("packets")}>
      {builds.map((each) => {
        const whose = { ...place, user: each.user_id };
        return (
          <tr key={each.build_id} data-row>
            <td>
              <Id id={each.build_id} to={href(whose, "packet", [each.build_id])} />
            </td>
            <td>
              <Purpose of={each.purpose} />
            </td>
            <td class="wide">{clip(each.query, 120)}</td>
            <td>
              <Id id={each.run_id} to={href(whose, "run", [each.run_id])} />
            </td>
            <td>
              <Time ts={each.created_at} />
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

export function Purpose({ of }: { of: string }) {
  return <Badge tone={of === "responder" ? "good" : of === "planner" ? "info" : "warn"}>{of}</Badge>;
}

const TABS = ["explain", "prompt_text", "raw"] as const;
type Tab = (typeof TABS)[number];

export function PacketPage({ place }: { place: Place }) {
  const [id = "", asked = "explain"] = place.ids;
  const tab: Tab = (TABS as readonly string[]).includes(asked) ? (asked as Tab) : "explain";
  const build = useGet<Build>(own(place, "builds", id));
  const inputs = useGet<BuildInputs>(own(place, "builds", id, "inputs"));
  return (
    <Await of={build}>
      {(found) => (
        <>
          <About build={found} place={place} />
          <Tabs
            tabs={TABS.map((each) => [each, w(each)])}
            chosen={tab}
            to={(each) => href(place, "packet", [id, each])}
          />
          {tab === "prompt_text" ? (
            <pre class="prompt" tabIndex={0}>
              {found.text}
            </pre>
          ) : null}
          {tab === "raw" ? <Json value={found.packet} /> : null}
          {tab === "explain" ? (
            <Await of={inputs}>{(given) => <Explained build={found} inputs={given} place={place} />}</Await>
          ) : null}
        </>
      )}
    </Await>
  );
}

function About({ build, place }: { build: Build; place: Place }) {
  const { meta, budget_report: report } = build.packet;
  return (
    <>
      <Head
        title={build.request.query ? clip(build.request.query, 140) : build.id}
        aside={<Purpose of={meta.purpose} />}
      >
        <p class="mono quiet">{build.id}</p>
      </Head>
      <dl class="fields">
        <Field name="tokens">
          {report.used_tokens_est} {w("of")} {report.max_tokens}
          <Meter used={report.used_tokens_est} most={report.max_tokens} label={w("tokens")} />
        </Field>
        <Field name="run">
          <Id id={meta.scope.run_id} to={href(place, "run", [meta.scope.run_id])} />
        </Field>
        <Field name="made">
          <Time ts={meta.generated_at} />
        </Field>
        <Field name="policy">{meta.policy_id}</Field>
        <Field name="citations">{build.packet.citations.length}</Field>
        {build.found ? null : <Field name="in_memory">{w("nothing_known")}</Field>}
      </dl>
      <div class="bar">
        {bundle ? null : <Replay place={place} id={build.id} />}
        <a class="button" href={answerHref(place, meta.scope.run_id, build.id)}>
          {w("open_conversation")}
        </a>
        <a class="button" href={href(place, "purposes", [build.id])}>
          {w("purposes")}
        </a>
        <a class="button" href={href(place, "diff", [build.id])}>
          {w("diff")}
        </a>
        {bundle ? null : (
          <a class="button" href={href(place, "whatif", [build.id])}>
            {w("what_if")}
          </a>
        )}
        <Against build={build} place={place} />
      </div>
    </>
  );
}

/** The newest packets, of which one can be chosen to compare with. */
const NEAR_MAX = 200;

function Against({ build, place }: { build: Build; place: Place }) {
  const builds = useList<BuildLine>(own(place, "builds"), false, NEAR_MAX);
  const others = (builds.data ?? []).filter((each) => each.build_id !== build.id);
  if (others.length === 0) return null;
  const near = [...others].sort(
    (a, b) => Number(b.query === build.request.query) - Number(a.query === build.request.query),
  );
  return (
    <label class="pick inline">
      <span>{w("diff_with")}</span>
      <select value="" onChange={(event) => go(href(place, "diff", [build.id, event.currentTarget.value]))}>
        <option value="">…</option>
        {near.map((each) => (
          <option
            key={each.build_id}
            value={each.build_id}
          >{`${each.purpose} · ${clip(each.query, 50)} · ${each.build_id}`}</option>
        ))}
        {builds.data?.more ? <option disabled>{w("older_by_filter")}</option> : null}
      </select>
    </label>
  );
}

type Checked = { ok: true; digest: string } | { ok: false; problem: Problem } | "running" | null;

/** The server composes the build again from its inputs and answers only if the bytes are those it had. */
function Replay({ place, id }: { place: Place; id: string }) {
  const [checked, setChecked] = useState<Checked>(null);
  async function check(): Promise<void> {
    setChecked("running");
    try {
      const bytes = await getBytes(own(place, "builds", id, "packet"));
      setChecked({ ok: true, digest: await sha256(bytes) });
    } catch (error) {
      setChecked({ ok: false, problem: error instanceof Problem ? error : new Problem(0, "defect", String(error)) });
    }
  }
  return (
    <div class="replay">
      <button type="button" onClick={() => void check()}>
        {w("replay")}
      </button>
      <span role="status">
        {checked === "running" ? w("replaying") : null}
        {checked !== null && checked !== "running" && checked.ok ? (
          <>
            <Badge tone="good">✓</Badge> {w("replay_ok")}{" "}
            {checked.digest ? <code title={checked.digest}>{checked.digest.slice(0, 16)}…</code> : null}
          </>
        ) : null}
        {checked !== null && checked !== "running" && !checked.ok ? (
          <>
            {w("replay_bad")} <Trouble problem={checked.problem} />
          </>
        ) : null}
      </span>
    </div>
  );
}

async function sha256(bytes: ArrayBuffer): Promise<string> {
  if (!crypto.subtle) return ""; // a page that came in the clear has no digests
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
