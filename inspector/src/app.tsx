/** The frame around every page: who is looked at, where one can go, the keyboard. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { at, bundle, get, getAll, key, Problem } from "./api";
import { onKey, GOES } from "./keyboard";
import { follow, settle, usePulse } from "./live";
import { useAsked } from "./loading";
import { when } from "./format";
import { PAGES } from "./pages";
import { StartPage } from "./pages/start";
import { go, href, usePlace, type Place } from "./route";
import { choose, useChoices, type Language, type Theme } from "./store";
import { Trouble, Waiting } from "./parts";
import { UserPick } from "./users";
import { w, type Word } from "./words";

const NAV = ["runs", "packets", "search", "facts", "episodes", "lessons", "rules", "flow", "research"] as const;
const IN_BUNDLE: readonly string[] = ["runs", "packets", "facts", "episodes"];
/** Pages that belong to another one of the list. */
const UNDER = new Map([
  ["run", "runs"],
  ["event", "runs"],
  ["answer", "runs"],
  ["packet", "packets"],
  ["purposes", "packets"],
  ["diff", "packets"],
  ["whatif", "packets"],
  ["lesson", "lessons"],
  ["rule", "rules"],
  ["study", "research"],
]);

interface Reach {
  tenants: string[];
  /** Whose tenant is shown where the address names none that is there. */
  tenant: string | undefined;
  /** The one user the key is for. */
  user?: string | undefined;
}

interface Caller {
  tenant: string;
  user?: string;
}

/** Between two looks at who is there. */
const REACH_MS = 5000;

/** Whom the reader may look at, by the key: every user of a tenant, or one. */
async function reach(tenant: string): Promise<Reach> {
  if (bundle) return { tenants: [bundle.tenant_id], tenant: bundle.tenant_id, user: bundle.user_id };
  const caller = await get<Caller>(at("key"));
  const tenants = caller.tenant === "*" ? await getAll<string>(at("tenants")) : [caller.tenant];
  const named = [tenant, "default"].find((each) => each && tenants.includes(each));
  return { tenants, tenant: named ?? tenants[0], user: caller.user };
}

export function App() {
  const place = usePlace();
  const chosen = useChoices();
  const [helps, setHelps] = useState(false);
  const reached = useAsked(`reach ${place.tenant}`, () => reach(place.tenant));
  const main = useRef<HTMLElement>(null);
  const page = `${place.page} ${place.ids.join(" ")}`;
  const isWide = ["answer", "diff", "whatif"].includes(place.page);

  useEffect(() => {
    const found = reached.data;
    if (!found?.tenant || (place.tenant && place.user)) return;
    const tenant = found.tenants.includes(place.tenant) ? place.tenant : found.tenant;
    const user = place.user || found.user || "";
    if (tenant !== place.tenant || user !== place.user)
      location.replace(user ? href({ tenant, user }, place.page, place.ids) : `#/${encodeURIComponent(tenant)}`);
  }, [reached.data, place.tenant, place.user]);

  const isHere = reached.data !== undefined;
  useEffect(() => follow(isHere ? place.tenant : "", isHere ? place.user : ""), [isHere, place.tenant, place.user]);
  useEffect(settle, [chosen.live]);
  useEffect(() => {
    if (!chosen.live || bundle) return;
    const timer = setInterval(() => document.hidden || reached.again(), REACH_MS);
    return () => clearInterval(timer);
  }, [chosen.live, reached.again]);

  useEffect(() => onKey({ place, help: () => setHelps(true) }), [place.tenant, place.user]);
  useEffect(() => scrollTo(0, 0), [page]);

  const Page = PAGES.get(place.page);
  const isReady = place.tenant !== "" && place.user !== "";
  const isLocked = reached.problem?.status === 401;
  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        {w("skip")}
      </a>
      <Side
        place={place}
        reach={reached.data}
        onHelp={() => setHelps(true)}
        language={chosen.language}
        theme={chosen.theme}
        live={chosen.live}
      />
      <main id="main" class={isWide ? "wide" : ""} ref={main} tabIndex={-1}>
        {bundle ? (
          <p class="note">
            {w("bundle_note")} {when(bundle.made_at)}
          </p>
        ) : null}
        {isLocked ? <Locked again={reached.again} /> : null}
        {reached.problem && !isLocked ? <Trouble problem={reached.problem} /> : null}
        {!isLocked && isReady && !reached.problem ? <Shown page={Page} place={place} name={page} /> : null}
        {!isReady && !reached.problem ? reached.data ? <Begin reach={reached.data} place={place} /> : <Waiting /> : null}
      </main>
      {helps ? <Help onClose={() => setHelps(false)} /> : null}
    </div>
  );
}

function Shown({
  page: Page,
  place,
  name,
}: {
  page: ((p: { place: Place }) => JSX.Element) | undefined;
  place: Place;
  name: string;
}) {
  if (!Page) return <Trouble problem={new Problem(404, "not_found", w("not_found"))} />;
  return <Page key={`${place.tenant} ${place.user} ${name}`} place={place} />;
}

/** Where nobody was chosen yet. */
function Begin({ reach, place }: { reach: Reach; place: Place }) {
  if (reach.tenant === undefined) return <p class="quiet empty">{w("empty")}</p>;
  if (place.tenant === "" || reach.user !== undefined) return <Waiting />;
  return <StartPage key={place.tenant} place={place} />;
}

function Side(props: {
  place: Place;
  reach: Reach | undefined;
  onHelp: () => void;
  language: Language;
  theme: Theme;
  live: boolean;
}) {
  const { place, reach } = props;
  const here = UNDER.get(place.page) ?? place.page;
  const pages = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a narrow screen the pages stand in one row that scrolls.
    const chosen = pages.current?.querySelector<HTMLElement>("[aria-current]");
    if (pages.current && chosen) pages.current.scrollLeft = chosen.offsetLeft - pages.current.clientWidth / 2;
  }, [here]);
  const home = bundle || !place.tenant ? href(place, "runs") : `#/${encodeURIComponent(place.tenant)}`;
  return (
    <aside class="side">
      <a class="brand" href={home}>
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path d="M7 3h14l5 5v21H7z" />
          <path d="M21 3v5h5" />
          <circle cx="16" cy="19" r="5" />
          <path d="M16 16.5v5M13.8 19h4.4" />
        </svg>
        <span>
          muniment<small>{w("tagline")}</small>
        </span>
      </a>
      <div class="who">
        <Pick
          label="tenant"
          value={place.tenant}
          options={reach?.tenants ?? [place.tenant]}
          onPick={(tenant) => go(`#/${encodeURIComponent(tenant)}`)}
        />
        {bundle || reach?.user !== undefined ? (
          <Pick label="user" value={place.user} options={[place.user]} onPick={() => undefined} />
        ) : (
          <UserPick key={`${place.tenant} ${place.user}`} place={place} page={here} />
        )}
      </div>
      <nav class="pages" ref={pages} aria-label={w("main_nav")}>
        {place.user && !bundle && reach?.user === undefined ? (
          <a href={home}>{w("start")}</a>
        ) : null}
        {(place.user ? NAV : []).filter((name) => !bundle || IN_BUNDLE.includes(name)).map((name) => (
          <a key={name} href={href(place, name)} aria-current={here === name ? "page" : undefined}>
            {w(name)} <kbd aria-hidden="true">g {GOES[name]}</kbd>
          </a>
        ))}
      </nav>
      <div class="settings">
        <Pick
          label="theme"
          value={props.theme}
          options={["auto", "light", "dark"]}
          shown={(each) => w(`theme_${each}` as Word)}
          onPick={(theme) => choose({ theme: theme as Theme })}
        />
        <Pick
          label="language"
          value={props.language}
          options={["en", "zh"]}
          shown={(each) => (each === "zh" ? "中文" : "English")}
          onPick={(language) => choose({ language: language as Language })}
        />
        {bundle ? null : <LiveSwitch live={props.live} />}
        <button type="button" class="quiet" onClick={props.onHelp}>
          {w("help")} <kbd aria-hidden="true">?</kbd>
        </button>
        {key.get() ? (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              key.set("");
              location.reload();
            }}
          >
            {w("key_forget")}
          </button>
        ) : null}
      </div>
    </aside>
  );
}

/** On or off, and how: told by the server, or by asking again and again. */
function LiveSwitch({ live }: { live: boolean }) {
  const pulse = usePulse();
  const how = w(pulse === "poll" ? "live_poll" : pulse === "stream" ? "live_stream" : "live_off");
  return (
    <label class="switch" title={how}>
      <input type="checkbox" checked={live} onChange={(event) => choose({ live: event.currentTarget.checked })} />{" "}
      {w("live")} <i class={`pulse ${pulse}`} data-pulse={pulse} aria-hidden="true" />
      <span class="hidden">{how}</span>
    </label>
  );
}

function Pick(props: {
  label: Word;
  value: string;
  options: string[];
  shown?: (v: string) => string;
  onPick: (v: string) => void;
}) {
  return (
    <label class="pick">
      <span>{w(props.label)}</span>
      <select value={props.value} onChange={(event) => props.onPick(event.currentTarget.value)}>
        {props.options.map((each) => (
          <option key={each} value={each} selected={each === props.value}>
            {props.shown ? props.shown(each) : each}
          </option>
        ))}
      </select>
    </label>
  );
}

function Locked({ again }: { again: () => void }) {
  const [typed, setTyped] = useState("");
  return (
    <form
      class="card locked"
      onSubmit={(event) => {
        event.preventDefault();
        key.set(typed.trim());
        again();
      }}
    >
      <h1>{w("key_title")}</h1>
      <label>
        {w("key_label")}
        <input
          type="password"
          autocomplete="off"
          data-first-field
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
      <p class="quiet">{w("key_hint")}</p>
      <button type="submit">{w("key_use")}</button>
    </form>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  const rows: [string, string][] = [
    ["/", w("k_slash")],
    ["j  k", w("k_jk")],
    ["Enter", w("k_enter")],
    ["t", w("k_t")],
    ["l", w("k_l")],
    ["?", w("k_help")],
    ["Esc", w("k_esc")],
    ...NAV.map((name): [string, string] => [`g ${GOES[name]}`, w(name)]),
  ];
  return (
    <dialog ref={box} onClose={onClose} aria-label={w("help")}>
      <h2>{w("help")}</h2>
      <dl class="keys">
        {rows.map(([keys, said]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{said}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => box.current?.close()}>
        {w("close")}
      </button>
    </dialog>
  );
}
