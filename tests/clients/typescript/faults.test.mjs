/** The client where something fails: lost answers, refusals, silence, a server that is killed, callers who leave. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionFailed, Overloaded, RateLimited, TimedOut } from "@muniment/client";
import { all, CONTROL, counted, dropping, hurried, opened, problem, said, stood } from "./room.mjs";

test("an answer that is lost behind a write: the write is sent again, and done once", async (t) => {
  const proxy = await dropping(2);
  t.after(proxy.close);
  const { user } = opened({ baseUrl: proxy.url });
  const run = user.run();
  const writes = [
    () => run.observe("user", "once"),
    () => run.observeMany([{ role: "user", content: "two" }, { role: "assistant", content: "three" }]),
    () => run.observeTool("clock", "four"),
    () => run.remember("a.b", 1, { sources: [first.id] }),
    () => run.record([{ role: "user", content: "five" }]),
    () => user.run({ session_id: "s2", objective: "begin" }).start(),
    () => run.compose("responder", { query: "two" }),
    () => run.finish(),
  ];
  let first;
  for (const write of writes) {
    proxy.seen.length = 0;
    first ??= await write();
    if (write !== writes[0]) await write();
    assert.equal(proxy.seen.length, 3);
    assert.equal(new Set(proxy.seen.map((each) => each.key)).size, 1, "every attempt repeats the key");
    assert.ok(proxy.seen.every((each) => each.status < 300), JSON.stringify(proxy.seen));
  }
  const { user: direct } = opened();
  const same = opened().m.user(user.id);
  assert.deepEqual((await said(same)).sort(), ["five", "once", "three", "two"].sort());
  assert.equal((await all(same.events({ kind: "tool_result" }))).length, 1);
  assert.equal((await all(same.facts())).length, 1);
  assert.equal((await all(same.builds())).length, 1);
  assert.equal((await all(same.runs())).length, 2);
  assert.deepEqual(await said(direct), []);
});

test("what could be done twice, and has no key, is not sent again after a lost answer", async (t) => {
  const proxy = await dropping(9);
  t.after(proxy.close);
  const { m } = opened({ baseUrl: proxy.url });
  const body = { documents: [{ text: "a page" }] };
  const asked = m.request("/v1/tenants/{tenant_id}/corpora/{corpus_id}/documents", "post", { path: { corpus_id: "c" }, body });
  await assert.rejects(asked, ConnectionFailed);
  assert.equal(proxy.seen.length, 1);
  await assert.rejects(m.user("nobody").search("x"), ConnectionFailed);
  assert.equal(proxy.seen.length, 1 + 4, "a read is");
});

test("a server that says when to come back is asked again then; others later each time", async () => {
  const refusals = {
    1: problem(429, "rate_limited", { "retry-after": "7" }),
    2: problem(503, "overloaded", { "retry-after": new Date(Date.now() + 20_000).toUTCString() }),
    3: problem(503, "storage_busy"),
  };
  const { calls, fetch } = counted((number) => refusals[number]);
  const { user } = opened({ fetch, timeoutMs: Infinity, retryDelayMs: 1000 });
  const run = user.run();
  const waits = await hurried(() => run.observe("user", "patient"));
  assert.equal(waits.length, 3);
  for (const [at, [least, most]] of [[7_000, 7_700], [15_000, 22_000], [2_000, 4_000]].entries()) {
    assert.ok(waits[at] >= least && waits[at] <= most, `${waits}`);
  }
  assert.equal(new Set(calls.map((each) => each.headers["Idempotency-Key"])).size, 1);
  assert.deepEqual(await said(user), ["patient"]);
});

test("a refusal that is not going to pass, or asks for too long, is told at once", async () => {
  const late = counted(() => problem(429, "rate_limited", { "retry-after": "86400" }));
  await assert.rejects(opened({ fetch: late.fetch }).user.search("x"), (error) => error instanceof RateLimited && error.retryAfterMs === 86_400_000);
  assert.equal(late.calls.length, 1);
  const full = counted(() => problem(503, "overloaded", { "retry-after": "0" }));
  await assert.rejects(opened({ fetch: full.fetch, maxRetries: 2 }).user.search("x"), Overloaded);
  assert.equal(full.calls.length, 3);
  const unknown = counted(() => problem(418, "a_code_of_tomorrow"));
  await assert.rejects(opened({ fetch: unknown.fetch }).user.search("x"), { name: "ACodeOfTomorrow", code: "a_code_of_tomorrow", status: 418 });
  assert.equal(unknown.calls.length, 1);
  const page = counted(() => new Response("<h1>Not here</h1>", { status: 404, headers: { "content-type": "text/html" } }));
  await assert.rejects(opened({ fetch: page.fetch }).user.search("x"), { code: "connection_failed", status: 404 });
  assert.equal(page.calls.length, 1);
});

test("silence ends with the time that a call has", async (t) => {
  const silent = await stood(() => {});
  t.after(silent.close);
  const { calls, fetch } = counted();
  const { user } = opened({ baseUrl: silent.url, timeoutMs: 30, maxRetries: 1, fetch });
  await assert.rejects(user.search("x"), (error) => error instanceof TimedOut && error instanceof ConnectionFailed && error.code === "timed_out");
  assert.equal(calls.length, 2);
  await assert.rejects(opened({ baseUrl: "http://127.0.0.1:9", maxRetries: 1 }).user.search("x"), ConnectionFailed);
});

test("whoever aborts gets their own reason, and nothing more is sent", async (t) => {
  const silent = await stood(() => {});
  t.after(silent.close);
  const reason = new Error("the user left");
  const leaving = () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 20);
    return controller.signal;
  };
  const { user } = opened({ baseUrl: silent.url });
  await assert.rejects(user.search("x", {}, { signal: leaving() }), reason);
  const busy = counted(() => problem(503, "overloaded", { "retry-after": "30" }));
  await assert.rejects(opened({ fetch: busy.fetch }).user.search("x", {}, { signal: leaving() }), reason);
  assert.equal(busy.calls.length, 1, "while it waits, too");
  const before = counted();
  await assert.rejects(opened({ fetch: before.fetch }).user.search("x", {}, { signal: AbortSignal.abort(reason) }), reason);
  assert.equal(before.calls.length, 0);
  await assert.rejects(all(opened().user.changes({ signal: leaving() })), reason);
});

/** Goes through a stream until `count` entries have come, each by its number. */
async function heard(user, count, options) {
  const numbers = [];
  const signal = AbortSignal.timeout(200_000); // what does not come would be waited for without end
  for await (const changes of user.changes({ signal, ...options })) {
    assert.ok(!changes.reset);
    for (const { first_seq, last_seq } of changes.entries ?? []) {
      for (let seq = first_seq; seq <= last_seq; seq++) numbers.push(seq);
    }
    if (numbers.length >= count) break;
  }
  return numbers;
}

const upTo = (count) => Array.from({ length: count }, (_, at) => at + 1);

test("a server that is killed in the middle of a stream of changes: nothing is lost, nothing comes twice", async () => {
  const { user } = opened({ maxRetries: 400, retryDelayMs: 20 });
  const listening = heard(user, 31, { after: await user.position() });
  const run = user.run();
  for (let at = 0; at < 30; at++) {
    await run.observe("user", `word ${at}`);
    if (at === 14) await fetch(`${CONTROL}/restart`, { method: "POST" });
  }
  assert.deepEqual(await listening, upTo(31), "the entry that starts the run, and thirty");
  assert.equal((await said(user)).length, 30);
});

test("a stream that is cut anywhere, or falls silent, goes on where it was", async () => {
  let opened_ = 0;
  const chance = (at) => 1 + ((at * 7919) % 997);
  const { calls, fetch } = counted(async (_, url, init) => {
    if (!init.headers.Accept.startsWith("text/event-stream")) return undefined;
    const answer = await globalThis.fetch(url, init);
    const stalls = opened_ === 1;
    let left = chance(opened_++);
    const cut = new TransformStream({
      transform(part, controller) {
        if (left > 0) controller.enqueue(part.slice(0, left));
        left -= part.length;
        if (left <= 0 && !stalls) controller.error(new TypeError("cut"));
      },
    });
    return new Response(answer.body.pipeThrough(cut), answer);
  });
  const { user } = opened({ fetch });
  const after = await user.position();
  const listening = heard(user, 41, { after, idleMs: 1000 });
  const run = user.run();
  for (let at = 0; at < 40; at++) {
    await run.observe("user", `word ${at}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.deepEqual(await listening, upTo(41));
  assert.ok(calls.filter((each) => each.headers.Accept.startsWith("text/event-stream")).length > 2, "it was cut");
  assert.deepEqual(await heard(user, 41, { after }), upTo(41), "and can be had again from where it began");
});

test("a stream ends where it is refused for good", async () => {
  await assert.rejects(all(opened({ apiKey: "nobody" }).user.changes({ after: "x" })), { code: "unauthorized" });
  await assert.rejects(all(opened().user.changes({ after: "not a position" })), { code: "invalid_input" });
});
