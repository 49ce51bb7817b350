/** A walk through the core with nothing but fetch and the types that openapi-typescript makes of the document. */

import type { components, operations } from "./openapi.js";

type Named = components["schemas"];
type Name = keyof operations;
type Body<N extends Name> = operations[N] extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;
type Answer<N extends Name> = operations[N]["responses"] extends infer R
  ? { [S in keyof R]: S extends 200 | 201 ? (R[S] extends { content: { "application/json": infer A } } ? A : never) : never }[keyof R]
  : never;

declare const process: { argv: string[] };

const ana = `${process.argv[2]}/v1/tenants/default/users/ana`;

async function post<N extends Name>(_name: N, path: string, body: Body<N>, key?: string): Promise<Answer<N>> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (key !== undefined) headers["Idempotency-Key"] = key;
  const response = await fetch(ana + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw (await response.json()) as Named["Problem"];
  return (await response.json()) as Answer<N>;
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

const said = await post("observe", "/runs/r1/events", { role: "user", content: "I moved to Berlin in May." }, "turn-1");
const found = await post("search", "/search", { query: "Where do I live?", k: 5 });
check(found.items.some((hit) => hit.id === said.id), "found");
const asked: Body<"compose"> = { purpose: "responder", query: "Where do I live?", max_tokens: 512 };
const build = await post("compose", "/runs/r1/compose", asked, "prompt-1");
check(build.text.includes("Berlin"), "composed");
const again = await post("compose", "/runs/r1/compose", asked, "prompt-1");
check(JSON.stringify(again) === JSON.stringify(build), "the same build");
const told = await post("why", "/why", { text: "Berlin" });
check(told.items.some((each) => each.build_id === build.id), "told");
const place = await post("resolve", "/resolve", { pointer: { namespace: "event", event_id: said.id, quote: "Berlin" } });
check(place.text === "Berlin", "resolved");
const receipt = await post("forget", "/forget", { event: said.id });
check(receipt.receipt_id !== "", "forgotten");
// @ts-expect-error a purpose is one of three
await post("compose", "/runs/r1/compose", { purpose: "poet" }).then(
  () => check(false, "refused"),
  (problem: Named["Problem"]) => check(problem.code === "invalid_input" && problem.path === "$.purpose", "refused"),
);
console.log("walked");
