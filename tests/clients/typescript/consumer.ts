/** What the types say: compiled, never run. What is marked as wrong has to be. */

import {
  Muniment, MunimentError, NotFound, RateLimited, TimedOut, type Build, type Changes, type Fact, type Hit, type LedgerEntry, type Records,
} from "@muniment/client";

type Is<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const is = <T extends true>(): T => true as T;

export async function typed(signal: AbortSignal, maybe: string | undefined): Promise<void> {
  const m = new Muniment({ baseUrl: "https://memory.example.com", apiKey: maybe, tenant: "acme", fetch, timeoutMs: 1000, maxRetries: 2 });
  const ana = m.user("ana");
  const run = ana.run({ session_id: maybe, budgets: { tokens: 1000 } });
  const said = await run.observe("user", "I moved.", { ts: new Date(), metadata: { from: { app: 1 } }, tags: ["a"] }, { signal });
  is<Is<typeof said, LedgerEntry>>();
  // @ts-expect-error a role is one of five
  await run.observe("bard", "I sing.");
  // @ts-expect-error there is no such argument
  await run.observe("user", "I moved.", { mood: "glad" });
  await run.observeTool("weather", "12 °C", { args: { city: "Berlin" }, ok: true });
  // @ts-expect-error a fact has sources
  await run.remember("user.city", "Berlin", {});
  const fact = await run.remember("user.city", { name: "Berlin" }, { sources: [said, "evt_1"], valid_from: "2026-05-01T00:00:00Z" });
  is<Is<typeof fact, Fact>>();
  const build = await run.compose("responder", { query: maybe, max_tokens: 512, exclude: [said] });
  is<Is<typeof build, Build>>();
  // @ts-expect-error a purpose is one of three
  await run.compose("poet");
  const wire: Records["Build"] = build;
  build.packet.long_term.facts satisfies Fact[];
  build.toOpenAI({ cite: false })[0]?.content satisfies string | undefined;
  build.toAnthropic({ cache: true })[0]?.content[0]?.text satisfies string | undefined;
  (await ana.search("where", { k: 3 })) satisfies Hit[];
  await ana.forget({ event: said });
  await ana.forget({ fact });
  // @ts-expect-error nothing in particular would be everything
  await ana.forget({});
  for await (const entry of ana.events({ kind: "message", since: new Date(), limit: 5 })) is<Is<typeof entry, LedgerEntry>>();
  // @ts-expect-error there is no such kind
  ana.events({ kind: "song" });
  for await (const changes of ana.changes({ after: maybe, signal })) {
    is<Is<typeof changes, Changes>>();
    for (const entry of changes.entries ?? []) entry.first_seq satisfies number;
  }
  const state = await m.request("/v1/tenants/{tenant_id}/users/{user_id}/runs/{run_id}/state", "patch", {
    path: run.path, body: { goal: "book dinner" }, signal,
  });
  state.state_version satisfies number;
  const health = await m.request("/v1/health", "get");
  health satisfies object;
  // @ts-expect-error it is a list of the user's: the user is missing
  await m.request("/v1/tenants/{tenant_id}/users/{user_id}/facts", "get");
  // @ts-expect-error there is nothing to delete there
  await m.request("/v1/health", "delete");
  // @ts-expect-error there is no such address
  await m.request("/v1/wealth", "get");
  // @ts-expect-error a search has a query
  await m.request("/v1/tenants/{tenant_id}/users/{user_id}/search", "post", { path: ana.path, body: { k: 3 } });
  for await (const each of m.list("/v1/tenants/{tenant_id}/users", { query: { q: "a" } })) each.user_id satisfies string;
  // @ts-expect-error it is no list
  m.list("/v1/health");
  try {
    await ana.replay(wire.id);
  } catch (error) {
    if (error instanceof NotFound) error.path satisfies string | undefined;
    else if (error instanceof RateLimited) error.retryAfterMs satisfies number | undefined;
    else if (error instanceof TimedOut || error instanceof MunimentError) error.code satisfies string;
  }
}
