/** The example for the Vercel AI SDK, with a model that reads what it is told and cites it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { convertArrayToReadableStream, MockLanguageModelV3 } from "ai/test";
import { main } from "./example/main.js";
import { buildIdOf, cited, withMemory } from "./example/memory.js";
import { all, opened, said } from "./room.mjs";

const USAGE = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const STOP = { unified: "stop", raw: "stop" };

/** A model that answers with the first line of its system prompt in which a word stands, and that line's mark. */
function reader(word) {
  const answer = ({ prompt }) => {
    const told = prompt.filter((each) => each.role === "system").map((each) => each.content).join("\n");
    const line = told.split("\n").find((each) => each.includes(word) && /^\[\d+\]/.test(each));
    return line === undefined ? "Thank you." : `You said so ${/^\[\d+\]/.exec(line)[0]}.`;
  };
  return new MockLanguageModelV3({
    doGenerate: async (options) => ({ content: [{ type: "text", text: answer(options) }], finishReason: STOP, usage: USAGE, warnings: [] }),
    doStream: async (options) => ({
      stream: convertArrayToReadableStream([
        { type: "stream-start", warnings: [] },
        { type: "text-start", id: "1" },
        ...answer(options).split(/(?<= )/).map((delta) => ({ type: "text-delta", id: "1", delta })),
        { type: "text-end", id: "1" },
        { type: "finish", finishReason: STOP, usage: USAGE },
      ]),
    }),
  });
}

test("what was said on Monday is cited on Friday, with the words that it rests on", async () => {
  const { user } = opened();
  const model = reader("Berlin");
  const lines = [];
  await main(model, user, (line) => lines.push(line));
  const [said_] = await all(user.events({ kind: "message", q: "Berlin" }));
  assert.equal(lines.at(-1), `        rests on ${said_.id}: “I moved to Berlin in May, and I do not eat meat.”`);
  const [system, asked] = model.doGenerateCalls[1].prompt;
  assert.ok(system.content.startsWith("You are a friendly assistant. Answer in one sentence.\n\nEvidence from memory"));
  assert.equal(asked.content[0].text, "Where do I live, and what do I not eat?");
  const answers = (await all(user.events({ kind: "message" }))).filter((each) => each.role === "assistant");
  assert.equal(answers.length, 2);
  assert.deepEqual(answers.flatMap((each) => each.body.cited?.evidence_ids ?? []), [said_.id]);
});

test("a stream is recorded once it ends, and where it is left; a cached prompt is not touched", async () => {
  const { user } = opened();
  await user.run().observe("user", "I moved to Berlin in May.");
  const model = reader("Berlin");
  const cache = { anthropic: { cacheControl: { type: "ephemeral" } } };
  const messages = [{ role: "system", content: "Be kind.", providerOptions: cache }, { role: "user", content: "Where do I live?" }];
  const result = streamText({ model: withMemory(model, { user, session: "s" }), messages, allowSystemInMessages: true });
  const text = await result.text;
  assert.match(text, /^You said so \[\d+\]\.$/);
  const buildId = buildIdOf(await result.providerMetadata);
  const [sentence] = await cited(user, buildId, text);
  assert.equal(sentence.evidence[0].words, "I moved to Berlin in May.");
  const [own, packet] = model.doStreamCalls[0].prompt;
  assert.deepEqual([own.content, own.providerOptions, packet.role], ["Be kind.", cache, "system"]);
  assert.match(packet.content, /^Evidence from memory/);
  const wrapped = withMemory(reader("Berlin"), { user, session: "t" });
  const { stream } = await wrapped.doStream({ prompt: [{ role: "user", content: [{ type: "text", text: "Where do I live?" }] }] });
  let parts = 0;
  for await (const part of stream) if (part.type === "text-delta" && ++parts === 2) break;
  const heard = (await all(user.events({ session_id: "t", kind: "message" }))).map((each) => each.body.content);
  assert.deepEqual(heard, ["Where do I live?", "You said "]);
});

test("steps with tools are recorded as the list grows, each once", async () => {
  const { user } = opened();
  let step = 0;
  const model = new MockLanguageModelV3({
    doGenerate: async () => ({
      content: step++ === 0
        ? [{ type: "text", text: "Let me see." }, { type: "tool-call", toolCallId: "c1", toolName: "weather", input: '{ "city":"Berlin" }' }]
        : [{ type: "text", text: "It is 12 °C." }],
      finishReason: step === 1 ? { unified: "tool-calls", raw: "tool_calls" } : STOP, usage: USAGE, warnings: [],
    }),
  });
  const weather = tool({
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
    execute: async () => ({ celsius: 12 }),
  });
  const wrapped = withMemory(model, { user, session: "s", onError: "closed" });
  const first = await generateText({ model: wrapped, prompt: "How warm is it?", tools: { weather }, stopWhen: stepCountIs(3) });
  assert.equal(first.text, "It is 12 °C.");
  const messages = [{ role: "user", content: "How warm is it?" }, ...first.response.messages, { role: "user", content: "Thanks." }];
  await generateText({ model: withMemory(model, { user, session: "s", onError: "closed" }), messages });
  const told = (await all(user.events())).filter((each) => ["message", "tool_result"].includes(each.kind));
  assert.deepEqual(told.map((each) => [each.role, each.body.content]), [
    ["user", "How warm is it?"], ["assistant", "Let me see."], ["tool", '{"celsius":12}'],
    ["assistant", "It is 12 °C."], ["user", "Thanks."], ["assistant", "It is 12 °C."],
  ]);
  assert.deepEqual(told[2].body.tool, { args: { city: "Berlin" }, call_id: "c1", name: "weather", ok: true });
  assert.deepEqual(await said(user), told.filter((each) => each.kind === "message").map((each) => each.body.content));
});

test("where memory fails the model is asked without it, or not at all, as was chosen", async () => {
  const warnings = [];
  const { user } = opened({ baseUrl: "http://127.0.0.1:9", maxRetries: 0 });
  const model = reader("Berlin");
  const open = withMemory(model, { user, warn: (line) => warnings.push(line) });
  assert.equal((await generateText({ model: open, prompt: "Hi" })).text, "Thank you.");
  assert.deepEqual(warnings, ["a call went on without memory: no packet was composed (connection_failed)"]);
  const closed = withMemory(model, { user, onError: "closed" });
  await assert.rejects(generateText({ model: closed, prompt: "Hi", maxRetries: 0 }), { code: "connection_failed" });
  assert.equal(model.doGenerateCalls.length, 1);
});
