/** The client against the real server: what it writes, tells, lists and refuses. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Forbidden, IdempotencyMismatch, InvalidInput, Muniment, MunimentError, NotFound, RateLimited, Unauthorized,
} from "@muniment/client";
import { all, CONTROL, counted, KEY, opened, said, SLOW_KEY, URL_ } from "./room.mjs";

const WORDS = "Ich zog nach Köln 🚀 — मैं 東京 ‏שלום e\u0301 \u2028 end";

test("what is said is recorded, remembered, found, composed, cited, explained and forgotten", async () => {
  const { user } = opened();
  const run = user.run({ session_id: "s1", agent_id: "guide", objective: "find a place to eat" });
  const [event, reply] = await run.observeMany([
    { role: "user", content: "I moved to Berlin in May.", ts: new Date("2026-05-20T10:00:00Z") },
    { role: "assistant", content: "Noted." },
  ]);
  assert.equal(event.ts.slice(0, 10), "2026-05-20");
  assert.equal(event.scope.agent_id, "guide");
  assert.ok(reply.seq > event.seq);
  const tool = await run.observeTool("weather", "12 °C", { args: { city: "Berlin" } });
  assert.equal(tool.body.tool.name, "weather");
  const fact = await run.remember("user.city", "Berlin", { sources: [event], confidence: 0.9 });
  assert.deepEqual(fact.sources, [event.id]);
  const hits = await run.search("Where does she live?", { k: 5 });
  assert.ok(hits.some((hit) => hit.sources.includes(event.id)));
  const build = await run.compose("responder", { query: "Where do I live?", max_tokens: 512 });
  assert.match(build.text, /Berlin/);
  assert.ok(build.found && build.packet.meta.purpose === "responder" && build.tokens <= 512);
  const mark = Object.keys(build.marks).find((each) => build.marks[each] === event.id);
  const answer = await run.observe("assistant", `In Berlin [${mark}]. In Rome [99].`, { build });
  assert.deepEqual(answer.body.cited, { build_id: build.id, evidence_ids: [event.id], unknown_marks: ["[99]"] });
  const { sentences } = await build.resolve(`In Berlin [${mark}].`);
  assert.deepEqual(sentences.map((each) => each.evidence_ids), [[event.id]]);
  assert.equal((await user.resolve({ namespace: "event", event_id: event.id, quote: "Berlin" })).text, "Berlin");
  assert.ok((await user.why("Berlin")).some((each) => each.build_id === build.id));
  assert.deepEqual(JSON.parse(JSON.stringify(await user.replay(build))), JSON.parse(JSON.stringify(build)));
  assert.equal((await all(user.builds()))[0].build_id, build.id);
  const [state] = await all(user.runs());
  assert.deepEqual([state.run_id, state.objective], [run.id, "find a place to eat"]);
  assert.ok((await user.forget({ event })).erased.some((each) => each.id === event.id));
  assert.deepEqual(await all(user.facts()), []);
  await assert.rejects(user.replay(build), { code: "forgotten", status: 410 });
  await run.finish();
  await assert.rejects(run.observe("user", "more"), { code: "run_finished" });
});

test("a list of messages is recorded as it grows", async () => {
  const { user } = opened();
  const run = user.run({ run_id: "talk", session_id: "talk" });
  const messages = [{ role: "user", content: "I am called Ana." }];
  assert.equal((await run.record(messages)).length, 1);
  messages.push({ role: "assistant", content: "Hello, Ana." }, { role: "user", content: "And you?" });
  assert.equal((await user.run({ run_id: "talk" }).record(messages)).length, 2);
  assert.deepEqual(await said(user), ["I am called Ana.", "Hello, Ana.", "And you?"]);
});

test("messages are those that the library makes of a build, in every form", async () => {
  const { user } = opened();
  const run = user.run({ session_id: "s1", objective: `eat 🍜 ${WORDS}` });
  const unasked = await run.compose("responder", { query: "What is my name?" });
  await run.observe("user", `I moved to Berlin. ${WORDS}`);
  const asked = [await run.compose("responder", { query: "Where did I move?" }), await run.compose("planner", { query: "go" })];
  const later = user.run();
  const nothing = [await later.compose("responder", { query: "Which boat do I own?" }), await later.compose("tool")];
  const made = async (given) => (await fetch(`${CONTROL}/messages?${new URLSearchParams(given)}`)).json();
  for (const build of [unasked, ...asked, ...nothing]) {
    for (const bits of [0, 1, 2, 3, 4, 5, 6, 7]) {
      const [include_query, cite, cache] = [1, 2, 4].map((bit) => (bits & bit) !== 0);
      const options = { includeQuery: include_query, cite };
      const openai = await made({ build: build.id, style: "openai", include_query, cite });
      assert.deepEqual(build.toOpenAI(options), openai);
      const anthropic = await made({ build: build.id, style: "anthropic", include_query, cite, cache });
      assert.deepEqual(build.toAnthropic({ ...options, cache }), anthropic);
    }
  }
});

test("words of any script, and a text of a megabyte, come back as they were", async () => {
  const { m } = opened();
  const user = m.user(`ана/${WORDS.slice(0, 40)}?#%2F`);
  const run = user.run({ session_id: "s/é", run_id: `r ${WORDS.slice(0, 20)}` });
  const long = `${WORDS} `.repeat(1 + (1 << 20) / WORDS.length).slice(0, 1 << 20);
  const [short, large] = [await run.observe("user", WORDS, { metadata: { [WORDS]: [1.5, null, true] } }), await run.observe("user", long)];
  assert.equal(short.body.content, WORDS);
  assert.deepEqual(short.body.metadata, { [WORDS]: [1.5, null, true] });
  assert.equal(await user.content(large), long);
  assert.deepEqual((await all(run.events({ kind: "message" }))).map((each) => each.id), [short.id, large.id]);
});

test("lists are gone through over their pages", async () => {
  const counting = counted();
  const { user, m } = opened({ fetch: counting.fetch });
  const run = user.run();
  const told = await run.observeMany(Array.from({ length: 250 }, (_, at) => ({ role: "user", content: `word ${at}` })));
  const ids = told.map((each) => each.id);
  counting.calls.length = 0;
  const entries = await all(user.events({ kind: "message" }));
  assert.deepEqual(entries.map((each) => each.id), ids);
  assert.ok(counting.calls.length >= 3, "the list has pages");
  assert.deepEqual((await all(user.events({ kind: "message", limit: 7, order: "desc" }))).map((each) => each.id), ids.slice(-7).reverse());
  counting.calls.length = 0;
  for await (const _ of m.list("/v1/tenants/{tenant_id}/users/{user_id}/events", { path: user.path, query: { limit: 2000 } })) break;
  assert.equal(counting.calls.length, 1, "no page is fetched that nobody wants");
});

test("what is wrong is said by class, with code, path and hint", async () => {
  const { user } = opened();
  const run = user.run();
  await assert.rejects(run.compose("poet"), (error) => {
    assert.ok(error instanceof InvalidInput && error instanceof MunimentError && error instanceof Error);
    assert.deepEqual([error.name, error.code, error.status, error.path], ["InvalidInput", "invalid_input", 422, "$.purpose"]);
    assert.match(error.hint, /planner/);
    assert.match(error.requestId, /^req_/);
    assert.equal(error.toJSON().code, "invalid_input");
    return true;
  });
  await assert.rejects(run.observeMany([{ role: "user", content: "a" }, { role: "bard", content: "b" }]), { path: "$[1].role" });
  await assert.rejects(user.replay("bld_none"), NotFound);
  const { m } = opened({ apiKey: "nobody" });
  await assert.rejects(m.user("ana").search("x"), Unauthorized);
  await assert.rejects(opened({ tenant: "other" }).user.search("x"), Forbidden);
  const slow = new Muniment({ baseUrl: URL_, apiKey: SLOW_KEY, maxRetries: 0 });
  await assert.rejects(
    (async () => { for (let at = 0; at < 9; at++) await slow.user("ana").search("x"); })(),
    (error) => error instanceof RateLimited && error.status === 429 && error.retryAfterMs > 0,
  );
});

test("what would be lost without a word is refused before it is sent", async () => {
  const { calls, fetch } = counted();
  const { m, user } = opened({ fetch });
  const run = user.run();
  const loop = {};
  loop.loop = loop;
  const wrong = [
    [NaN, "$.value"], [{ a: [1, Infinity] }, "$.value.a[1]"], [new Map([[1, 2]]), "$.value"], [{ s: new Set() }, "$.value.s"],
    [10n, "$.value"], [[undefined], "$.value[0]"], [() => 1, "$.value"], [new Date(NaN), "$.value"],
  ];
  for (const [value, path] of wrong) {
    await assert.rejects(run.remember("k", value, { sources: ["e"] }), { code: "invalid_input", path });
  }
  await assert.rejects(run.remember("k", loop, { sources: ["e"] }), InvalidInput);
  for (const name of ["", ".", "..", "\ud800"]) {
    await assert.rejects(m.user(name).search("x"), { code: "invalid_input", path: "$.user_id" });
  }
  for (const what of [{}, { event: undefined }, { event: "" }, { event: "a", fact: "b" }, { event: {} }, { fact: { id: "x" } }]) {
    await assert.rejects(user.forget(what), InvalidInput, "forgetting nothing in particular would erase the user");
  }
  await assert.rejects(run.observe("user", "x", {}, { idempotencyKey: "ключ" }), InvalidInput);
  for (const options of [{ baseUrl: "memory.example" }, { baseUrl: URL_, apiKey: "a\nb" }]) {
    assert.throws(() => new Muniment(options), InvalidInput);
  }
  assert.equal(calls.length, 0);
});

test("any operation is asked for by its address", async () => {
  const { m, user } = opened();
  const run = user.run();
  await run.observe("user", "hello");
  const state = await m.request("/v1/tenants/{tenant_id}/users/{user_id}/runs/{run_id}/state", "patch", {
    path: run.path, body: { goal: "book dinner", expected_version: 0 },
  });
  assert.deepEqual([state.goal, state.state_version], ["book dinner", 1]);
  const found = await m.request("/v1/tenants/{tenant_id}/users", "get", { query: { q: user.id } });
  assert.equal(found.items[0].user_id, user.id);
  const lines = await m.request("/v1/tenants/{tenant_id}/users/{user_id}/export", "get", { path: user.path });
  assert.ok(lines.trim().split("\n").every((line) => JSON.parse(line)), "JSON lines are text");
  await assert.rejects(m.request("/v1/tenants/{tenant_id}/users", "get", { query: { q: "x", limit: 0 } }), { path: "$.limit" });
  assert.ok((await user.forgetEverything()).receipt_id);
  assert.deepEqual((await all(user.events())).filter((each) => each.body !== null), []);
});

test("a key of one's own names a write: the same is done once, another is refused", async () => {
  const { user } = opened();
  const run = user.run();
  const once = { idempotencyKey: "turn-1" };
  const first = await run.observe("user", "hello", {}, once);
  assert.equal((await run.observe("user", "hello", {}, once)).id, first.id);
  await assert.rejects(run.observe("user", "bye", {}, once), IdempotencyMismatch);
  assert.equal((await run.observe("user", "ho", { idempotency_key: "turn-2" })).id, (await run.observe("user", "ho", { idempotency_key: "turn-2" })).id);
  const builds = [await run.compose("responder", {}, { idempotencyKey: "p" }), await run.compose("responder", {}, { idempotencyKey: "p" })];
  assert.equal(builds[0].id, builds[1].id);
  assert.deepEqual(await said(user), ["hello", "ho"]);
  assert.ok(KEY);
});
