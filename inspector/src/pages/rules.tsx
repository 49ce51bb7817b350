/** Rules: how each fares with and without it, the tests it has, the reports that moved it, the rulebook's revisions. */

import { useState } from "preact/hooks";
import type { RulebookRevision, RuleStats, RuleTest, StoredMemory } from "../openapi";
import { withQuery } from "../api";
import { Rest } from "../feed_parts";
import { percent, shown, signed } from "../format";
import { held, HolderPick, keptQuery } from "../holder";
import { useGet, useList } from "../loading";
import { Await, Badge, clip, Empty, Field, Filter, fits, Head, Id, Json, Status, Table, Time } from "../parts";
import { href, type Place } from "../route";
import { effect, phases, sides, type Counted, type RuleReport } from "../rulebook";
import { w } from "../words";

const text = (rule: StoredMemory, name: string): string => shown(rule.record[name] ?? "");

export function RulesPage({ place }: { place: Place }) {
  const [needle, setNeedle] = useState("");
  const [retired, setRetired] = useState(false);
  const rules = useList<StoredMemory>(
    withQuery(held(place, "rulebooks", "rules"), { include_all: retired || undefined }),
    true,
  );
  const revisions = useList<RulebookRevision>(held(place, "rulebooks", "revisions"), true);
  return (
    <>
      <Head title={w("rules")} aside={<Filter value={needle} onInput={setNeedle} />} />
      <div class="bar">
        <HolderPick place={place} />
        <button type="button" class="chip" aria-pressed={retired} onClick={() => setRetired(!retired)}>
          {w("include_retired")}
        </button>
      </div>
      <Rest of={rules.data} />
      <Await of={rules}>
        {(found) => {
          const wanted = found.filter((rule) =>
            fits(needle, rule.id, text(rule, "body"), text(rule, "title"), text(rule, "type")),
          );
          if (wanted.length === 0) return <Empty needle={needle} how="book.submit(…), book.add(…)" />;
          return (
            <Table
              heads={[w("rule"), w("kind"), w("stage"), w("with_rule"), w("without_rule"), w("version")]}
              label={w("rules")}
            >
              {wanted.map((rule) => (
                <tr key={rule.id} data-row>
                  <td class="wide">
                    <a href={href(place, "rule", [rule.id], keptQuery(place))}>
                      {clip(text(rule, "body") || rule.id, 120)}
                    </a>
                  </td>
                  <td>{text(rule, "type")}</td>
                  <td>
                    <Status of={rule.stage ?? rule.status} />{" "}
                    {rule.layer === "user" ? <Badge tone="info">user</Badge> : null}
                  </td>
                  <Rates place={place} id={rule.id} />
                  <td>{rule.version}</td>
                </tr>
              ))}
            </Table>
          );
        }}
      </Await>
      {rules.problem ? null : <Await of={revisions}>{(found) => <Revisions revisions={found} place={place} />}</Await>}
    </>
  );
}

/** How runs fare with the rule and without, once that is told. */
function Rates({ place, id }: { place: Place; id: string }) {
  const stats = useGet<RuleStats>(held(place, "rulebooks", "rules", id, "stats"));
  const told = stats.data ? sides(stats.data) : null;
  return (
    <>
      <td>{told ? share(told.with) : "–"}</td>
      <td>{told ? share(told.without) : "–"}</td>
    </>
  );
}

function share(tally: Counted): string {
  return tally.n ? `${tally.passes} ${w("of")} ${tally.n}` : "–";
}

function Revisions({ revisions, place }: { revisions: RulebookRevision[]; place: Place }) {
  if (revisions.length === 0) return null;
  return (
    <>
      <h2>{w("revisions")}</h2>
      <ol class="history">
        {[...revisions].reverse().map((each) => (
          <li key={each.revision}>
            <p class="meta">
              <b>{each.revision}</b> <Badge tone="info">{each.action}</Badge> <Time ts={each.created_at} />{" "}
              {each.signed_by ? (
                <span>
                  {w("signed_by")} <b>{each.signed_by}</b>
                </span>
              ) : null}
            </p>
            <p>
              {each.reason}{" "}
              {each.changes.map((change) => (
                <Id
                  key={change.rule_id}
                  id={change.rule_id}
                  to={href(place, "rule", [change.rule_id], keptQuery(place))}
                />
              ))}
            </p>
          </li>
        ))}
      </ol>
    </>
  );
}

export function RulePage({ place }: { place: Place }) {
  const [id = ""] = place.ids;
  const base = (...parts: string[]) => held(place, "rulebooks", "rules", id, ...parts);
  const rule = useGet<StoredMemory>(base(), true);
  const stats = useGet<RuleStats>(base("stats"), true);
  const tests = useList<RuleTest>(base("tests"), true);
  const reports = useList<RuleReport>(base("reports"), true);
  const history = useList<StoredMemory>(base("history"), true);
  return (
    <Await of={rule}>
      {(found) => (
        <>
          <Head
            title={clip(text(found, "title") || text(found, "body"), 120)}
            aside={<Status of={found.stage ?? found.status} />}
          >
            <p class="mono quiet">{found.id}</p>
          </Head>
          <blockquote class="source big">
            <p class="said">{text(found, "body")}</p>
          </blockquote>
          <dl class="fields">
            <Field name="kind">{text(found, "type")}</Field>
            <Field name="version">{found.version}</Field>
            <Field name="made">
              <Time ts={found.created_at} />
            </Field>
            {found.canary ? <Field name="stage">canary {percent(found.canary.share)}</Field> : null}
          </dl>
          <h2>{w("stats")}</h2>
          <Await of={stats}>{(told) => <Stats stats={told} />}</Await>
          <h2>{w("reports")}</h2>
          <Await of={reports}>
            {(told) =>
              told.length ? (
                <>
                  {told.map((each) => (
                    <Report key={each.report_id} report={each} />
                  ))}
                </>
              ) : (
                <Empty />
              )
            }
          </Await>
          <h2>
            {w("tests")} <span class="count">{tests.data?.length ?? 0}</span>
          </h2>
          <Await of={tests}>{(told) => <Tests tests={told} reports={reports.data ?? []} />}</Await>
          <h2>{w("history")}</h2>
          <Await of={history}>{(told) => <History versions={told} />}</Await>
        </>
      )}
    </Await>
  );
}

function Stats({ stats }: { stats: RuleStats }) {
  const both = sides(stats);
  if (both.with.n + both.without.n === 0) return <Empty word="no_stats" />;
  const rows: [string, Counted][] = [
    [w("with_rule"), both.with],
    [w("without_rule"), both.without],
  ];
  return (
    <div class="card">
      {rows.map(([label, tally]) => (
        <div key={label} class="rate">
          <span>{label}</span>
          <div class="meter" aria-hidden="true">
            <div class="fill" style={{ width: `${tally.n ? (100 * tally.passes) / tally.n : 0}%` }} />
          </div>
          <b>{share(tally)}</b>
        </div>
      ))}
      <Table heads={[w("stage"), w("effect"), w("with_rule"), w("without_rule")]} label={w("stats")}>
        {phases(stats).map(([name, candidate, baseline]) => (
          <tr key={name}>
            <td>{name}</td>
            <td>{signed(effect(candidate, baseline))}</td>
            <td>{share(candidate)}</td>
            <td>{share(baseline)}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function Report({ report }: { report: RuleReport }) {
  const kind = report.checks ? "gate" : report.pairs !== undefined ? "replay_report" : "promotion";
  return (
    <article class="card">
      <p class="meta">
        <b>{w(kind)}</b>
        {report.passed !== undefined ? <Status of={report.passed ? "passed" : "failed"} /> : null}
        {report.action ? <Badge tone="info">{report.action}</Badge> : null}
        {report.decision ? <Status of={report.decision} /> : null}
        <Time ts={report.created_at} />
        {report.signed_by ? (
          <span>
            {w("signed_by")} <b>{report.signed_by}</b>
          </span>
        ) : null}
      </p>
      {report.pairs !== undefined ? (
        <p>
          {w("with_rule")} {report.with_passes} {w("of")} {report.pairs}; {w("without_rule")} {report.without_passes}{" "}
          {w("of")} {report.pairs}; {w("effect")} {signed(report.effect)}
        </p>
      ) : null}
      <Reasons of={report.reasons ?? []} />
      {report.checks?.length ? (
        <ul class="checks">
          {report.checks.map((check) => (
            <li key={check.name}>
              <Badge tone={check.ok ? "good" : "bad"}>{check.ok ? "✓" : "✗"}</Badge> {check.name}{" "}
              <span class="quiet">
                {check.found} ({w("needed")}: {check.needed})
              </span>
            </li>
          ))}
        </ul>
      ) : null}
    </article>
  );
}

const OK = "ok: ";

/** What speaks for and against; the checks that were passed stand together, since they are many. */
function Reasons({ of }: { of: string[] }) {
  const passed = of.filter((each) => each.startsWith(OK));
  return (
    <>
      <ul class="list small">
        {of
          .filter((each) => !each.startsWith(OK))
          .map((each) => (
            <li key={each}>{each}</li>
          ))}
      </ul>
      {passed.length ? (
        <details>
          <summary>
            {passed.length} {w("checks_passed")}
          </summary>
          <ul class="list small">
            {passed.map((each) => (
              <li key={each}>{each.slice(OK.length)}</li>
            ))}
          </ul>
        </details>
      ) : null}
    </>
  );
}

function Tests({ tests, reports }: { tests: RuleTest[]; reports: RuleReport[] }) {
  const outcomes = new Map(reports.flatMap((report) => report.outcomes ?? []).map((each) => [each.test_id, each]));
  if (tests.length === 0) return <Empty />;
  return (
    <Table heads={[w("test"), w("kind"), w("result"), w("must_hold")]} label={w("tests")}>
      {tests.map(({ spec, is_micro }) => {
        const outcome = outcomes.get(spec.test_id);
        return (
          <tr key={spec.test_id}>
            <td>
              <Id id={spec.test_id} />
            </td>
            <td>
              {spec.test_type} {is_micro ? <Badge>micro</Badge> : null}
            </td>
            <td>
              {outcome ? <Status of={outcome.ok ? "passed" : "failed"} /> : "–"}{" "}
              {outcome?.vacuous ? <Badge tone="warn">{w("vacuous")}</Badge> : null}
            </td>
            <td class="wide">
              <code>{spec.assert?.type}</code> <span class="quiet">{clip(shown(spec.assert?.args ?? ""), 100)}</span>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

function History({ versions }: { versions: StoredMemory[] }) {
  return (
    <ol class="history">
      {[...versions].reverse().map((each) => (
        <li key={each.version}>
          <details>
            <summary>
              <b>{each.version}</b> <Status of={each.stage ?? each.status} />{" "}
              <span class="quiet">{(each.reason_keys ?? []).join(", ")}</span>
            </summary>
            <Json value={each.record} />
          </details>
        </li>
      ))}
    </ol>
  );
}
