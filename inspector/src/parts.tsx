/** What pages are made of. Stored words reach the page as text nodes alone: nothing here writes HTML. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { at, Problem } from "./api";
import { areApart, clip, fits, percent, short, shown, when } from "./format";
import type { Loaded } from "./loading";
import type { Place } from "./route";
import { w, type Word } from "./words";

export type Scope = Pick<Place, "tenant" | "user">;

/** The address of something of this user. */
export function own(scope: Scope, ...parts: (string | number)[]): string {
  return at("tenants", scope.tenant, "users", scope.user, ...parts);
}

// -- waiting and failing ------------------------------------------------------------------------------

export function Waiting() {
  return (
    <p class="quiet waiting" role="status">
      {w("loading")}
    </p>
  );
}

export function Trouble({ problem }: { problem: Problem }) {
  const isMissing = problem.code === "unknown_route";
  return (
    <div class="trouble" role="alert">
      <p>{isMissing ? w("no_route") : problem.message}</p>
      {problem.hint && !isMissing ? <p class="quiet">{problem.hint}</p> : null}
      <p class="quiet mono">{problem.code}</p>
    </div>
  );
}

/** Nothing is there, and which call would change that; or, where something was looked for, nothing that fits. */
export function Empty({ word = "empty", needle = "", how }: { word?: Word; needle?: string; how?: string }) {
  if (needle.trim()) return <p class="quiet empty">{w("no_match")}</p>;
  return (
    <p class="quiet empty">
      {w(word)}{" "}
      {how ? (
        <>
          {w("empty_how")} <code>{how}</code>
        </>
      ) : null}
    </p>
  );
}

/** A JSON value; the parts of an object by their names. */
export function Value({ of }: { of: unknown }) {
  if (typeof of !== "object" || of === null || Array.isArray(of)) return <>{shown(of)}</>;
  return (
    <ul class="list named">
      {Object.entries(of).map(([name, value]) => (
        <li key={name}>
          <span class="quiet">{name.replaceAll("_", " ")}</span> {shown(value)}
        </li>
      ))}
    </ul>
  );
}

/** What was asked for, once it is there. */
export function Await<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (of.problem) return <Trouble problem={of.problem} />;
  if (of.data === undefined) return <Waiting />;
  return <>{children(of.data)}</>;
}

// -- small things -------------------------------------------------------------------------------------

export function Time({ ts, seconds = false }: { ts: string | null | undefined; seconds?: boolean }) {
  return ts ? (
    <time dateTime={ts} title={ts}>
      {when(ts, seconds)}
    </time>
  ) : null;
}

/** When something was said and, where that is another time, when it was recorded. */
export function Said({ ts, recorded, seconds = false }: { ts: string; recorded: string; seconds?: boolean }) {
  return (
    <>
      <Time ts={ts} seconds={seconds} />
      {areApart(ts, recorded) ? (
        <span class="quiet recorded">
          {" "}
          {w("recorded_at")} <Time ts={recorded} />
        </span>
      ) : null}
    </>
  );
}

export type Tone = "plain" | "good" | "bad" | "warn" | "info";

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

const TONES = new Map<string, Tone>(
  Object.entries({
    active: "good",
    verified: "good",
    pass: "good",
    PASS: "good",
    valid: "good",
    OBJECTIVE_ACHIEVED: "good",
    better: "good",
    accepted: "good",
    supported: "good",
    passed: "good",
    promote: "good",
    done: "good",
    pinned: "good",
    not_harmful: "good",
    disputed: "warn",
    candidate: "warn",
    temporary: "warn",
    canary: "info",
    trial: "info",
    suspended: "bad",
    waiting: "warn",
    undecided: "warn",
    unchecked: "warn",
    HUMAN_REQUESTED: "info",
    paywalled: "warn",
    not_supported: "bad",
    uncited: "bad",
    refuted: "bad",
    drafted: "warn",
    gated: "info",
    replayed: "info",
    deprecated: "plain",
    retired: "plain",
    retracted: "bad",
    fail: "bad",
    FAIL: "bad",
    failed: "bad",
    BUDGET_EXCEEDED: "bad",
    NO_EVIDENCE: "warn",
    SYSTEM_ERROR: "bad",
    harmful: "bad",
    rejected: "bad",
    invalid: "bad",
    blocked: "bad",
  } as const),
);

export function Status({ of }: { of: string }) {
  return <Badge tone={TONES.get(of) ?? "plain"}>{of.replaceAll("_", " ")}</Badge>;
}

export function Id({ id, to }: { id: string; to?: string }) {
  return to ? (
    <a class="mono" href={to} title={id}>
      {short(id, 22)}
    </a>
  ) : (
    <span class="mono" title={id}>
      {short(id, 22)}
    </span>
  );
}

export function Field({ name, children }: { name: Word; children: ComponentChildren }) {
  return (
    <div class="field">
      <dt>{w(name)}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function Meter({ used, most, label }: { used: number; most: number; label: string }) {
  const share = most > 0 ? Math.min(1, used / most) : 0;
  return (
    <div class="meter" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={most} aria-valuenow={used}>
      <div class={share > 0.95 ? "fill full" : "fill"} style={{ width: percent(share).replace(" ", "") }} />
    </div>
  );
}

/** The parts of a rank, which add up to it, and those above zero as shares. */
export function ScoreParts({ parts }: { parts: Record<string, number> }) {
  const sorted = Object.entries(parts)
    .filter(([, value]) => value !== 0)
    .sort((a, b) => b[1] - a[1]);
  const positive = sorted.filter(([, value]) => value > 0);
  const total = positive.reduce((sum, [, value]) => sum + value, 0);
  const rank = sorted.reduce((sum, [, value]) => sum + value, 0);
  if (sorted.length === 0) return null;
  return (
    <div class="parts">
      <div class="strip" aria-hidden="true" style={{ width: `${Math.min(1, total) * 26}rem` }}>
        {positive.map(([name, value], index) => (
          <i key={name} class={`p${index % 6}`} style={{ flexGrow: value / total }} />
        ))}
      </div>
      <ul class="legend">
        {sorted.map(([name, value], index) => (
          <li key={name}>
            <i class={`p${index % 6}`} aria-hidden="true" /> {name.replaceAll("_", " ")} <b>{value.toFixed(3)}</b>
          </li>
        ))}
        <li>
          rank <b>{rank.toFixed(3)}</b>
        </li>
      </ul>
    </div>
  );
}

export function Filter({
  value,
  onInput,
  label = "filter",
}: {
  value: string;
  onInput: (v: string) => void;
  label?: Word;
}) {
  return (
    <label class="filter">
      <span class="hidden">{w(label)}</span>
      <input
        type="search"
        data-first-field
        value={value}
        placeholder={`${w(label)}  /`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}

export function Tabs<T extends string>({
  tabs,
  chosen,
  to,
}: {
  tabs: [T, string][];
  chosen: T;
  to: (tab: T) => string;
}) {
  return (
    <nav class="tabs" aria-label={tabs.map(([, label]) => label).join(", ")}>
      {tabs.map(([tab, label]) => (
        <a key={tab} href={to(tab)} aria-current={tab === chosen ? "page" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}

export function Json({ value }: { value: unknown }) {
  return (
    <pre class="code" tabIndex={0}>
      {JSON.stringify(value, null, 2)}
    </pre>
  );
}

export function Head({
  title,
  children,
  aside,
}: {
  title: string;
  children?: ComponentChildren;
  aside?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · muniment`;
  }, [title]);
  return (
    <header class="head">
      <div>
        <h1>{title}</h1>
        {children}
      </div>
      {aside ? <div class="aside">{aside}</div> : null}
    </header>
  );
}

/** A table whose rows can be walked with j and k. */
export function Table({
  heads,
  children,
  label,
  kind = "",
}: {
  heads: string[];
  children: ComponentChildren;
  label: string;
  kind?: string;
}) {
  return (
    <div class={`scroll ${kind}`} tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A link for an address that somebody stored: one that could run something stays text. */
export function Outside({ url }: { url: string }) {
  return /^https?:\/\//i.test(url) ? (
    <a href={url} rel="noopener noreferrer nofollow" target="_blank">
      {clip(url, 80)}
    </a>
  ) : (
    <span class="mono">{clip(url, 80)}</span>
  );
}

export { clip, fits };
