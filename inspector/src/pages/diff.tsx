/** Two kept packets side by side: one, and the one before it in its run, or any other. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Build, BuildDiff, BuildLine } from "../openapi";
import { bundle, withQuery } from "../api";
import { useGet, useList } from "../loading";
import { Await, Badge, clip, Head, Id, own, Time } from "../parts";
import { go, href, type Place } from "../route";
import { Share } from "../share";
import { SideBySide } from "../side_by_side";
import { w, type Word } from "../words";
import { Purpose } from "./packet";

const NEAR_MAX = 200;

export function DiffPage({ place }: { place: Place }) {
  const [a = "", b = ""] = place.ids;
  const near = useNear(place, b || a);
  const before = b ? undefined : beforeOf(near.data, a);
  useEffect(() => {
    if (before) location.replace(href(place, "diff", [before, a], Object.fromEntries(place.query)));
  }, [before]);
  if (!b)
    return (
      <>
        <Head title={w("compare_of")} />
        <Await of={near}>{(found) => (before ? null : <Alone id={a} place={place} near={found} />)}</Await>
      </>
    );
  return <Pair a={a} b={b} place={place} near={near.data ?? []} />;
}

/** The builds around one, newest first. */
function useNear(place: Place, id: string) {
  const path = bundle ? own(place, "builds") : withQuery(own(place, "builds"), { around: id });
  return useList<BuildLine>(path, false, NEAR_MAX);
}

/** The build that was made before one in its run. */
function beforeOf(near: BuildLine[] | undefined, id: string): string | undefined {
  const at = near?.findIndex((each) => each.build_id === id) ?? -1;
  const run = near?.[at]?.run_id;
  return near?.slice(at + 1).find((each) => each.run_id === run)?.build_id;
}

function Alone({ id, place, near }: { id: string; place: Place; near: BuildLine[] }) {
  return (
    <>
      <p class="lead">{w("before_none")}</p>
      <BuildPick label="diff_with" chosen="" near={near.filter((each) => each.build_id !== id)} onPick={(other) => go(href(place, "diff", [other, id]))} />
    </>
  );
}

function Pair({ a, b, place, near }: { a: string; b: string; place: Place; near: BuildLine[] }) {
  const diff = useGet<BuildDiff>(own(place, "builds", a, "diff", b));
  const left = useGet<Build>(own(place, "builds", a));
  const right = useGet<Build>(own(place, "builds", b));
  const kept = Object.fromEntries([...place.query].filter(([name]) => name === "only"));
  const heads: [string, string] = [w("left"), w("right")];
  return (
    <>
      <Head title={w("compare_of")} />
      <div class="pair">
        <Side label="left" of={left} id={a} place={place}>
          <BuildPick label="left" chosen={a} near={near} onPick={(id) => go(href(place, "diff", [id, b], kept))} />
        </Side>
        <Side label="right" of={right} id={b} place={place}>
          <BuildPick label="right" chosen={b} near={near} onPick={(id) => go(href(place, "diff", [a, id], kept))} />
        </Side>
      </div>
      <div class="bar">
        <a class="button" href={href(place, "diff", [b, a], kept)}>
          {w("swap")}
        </a>
        {bundle ? null : (
          <a class="button" href={href(place, "whatif", [b])}>
            {w("what_if")}
          </a>
        )}
        {right.data ? <Share runId={right.data.packet.meta.scope.run_id} tenant={place.tenant} /> : null}
      </div>
      <Await of={diff}>
        {(found) => (
          <>
            {found.request.length ? (
              <p>
                {w("diff_request")}:{" "}
                {found.request.map((each) => (
                  <Badge key={each} tone="info">
                    {each.replaceAll("_", " ")}
                  </Badge>
                ))}
              </p>
            ) : null}
            <SideBySide diff={found} place={place} heads={heads} />
          </>
        )}
      </Await>
    </>
  );
}

function Side(props: {
  label: Word;
  of: ReturnType<typeof useGet<Build>>;
  id: string;
  place: Place;
  children: ComponentChildren;
}) {
  return (
    <section class="card" aria-label={w(props.label)}>
      {props.children}
      <Await of={props.of}>
        {(found) => (
          <p>
            <Purpose of={found.packet.meta.purpose} /> {clip(found.request.query, 160)}{" "}
            <span class="quiet small">
              <Time ts={found.packet.meta.generated_at} seconds /> · <Id id={props.id} to={href(props.place, "packet", [props.id])} />
            </span>
          </p>
        )}
      </Await>
    </section>
  );
}

/** A build by its id, pasted or chosen from those near. */
function BuildPick(props: { label: Word; chosen: string; near: BuildLine[]; onPick: (id: string) => void }) {
  const { label, chosen, near, onPick } = props;
  const [typed, setTyped] = useState(chosen);
  useEffect(() => setTyped(chosen), [chosen]);
  const list = `near-${label}`;
  const pick = (id: string) => {
    if (id && id !== chosen) onPick(id);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        pick(typed.trim());
      }}
    >
      <label class="build-pick">
        {w(label)}
        <input
          class="mono"
          list={list}
          value={typed}
          placeholder={w("pick_build")}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => {
            const id = event.currentTarget.value.trim();
            setTyped(event.currentTarget.value);
            if (near.some((each) => each.build_id === id)) pick(id);
          }}
        />
        <datalist id={list}>
          {near.map((each) => (
            <option key={each.build_id} value={each.build_id}>{`${each.purpose} · ${clip(each.query, 60)}`}</option>
          ))}
        </datalist>
      </label>
    </form>
  );
}
