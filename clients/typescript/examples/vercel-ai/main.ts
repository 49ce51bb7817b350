/**
 * A conversation with a memory: what is said today is known in another session, and the answer says what it rests on.
 *
 *     muniment serve &
 *     AI_GATEWAY_API_KEY=… MODEL=openai/gpt-5-mini npx tsx main.ts
 */

import { Muniment, type User } from "@muniment/client";
import { gateway, generateText, type ModelMessage } from "ai";
import { buildIdOf, cited, withMemory, type Cited } from "./memory.js";

declare const process: { env: Record<string, string | undefined> };

const SYSTEM = "You are a friendly assistant. Answer in one sentence.";

type Model = Parameters<typeof withMemory>[0];

/** Ask in a session; the answer, and what its sentences rest on. */
export async function ask(model: Model, user: User, session: string, messages: ModelMessage[]): Promise<[string, Cited[]]> {
  const answer = await generateText({ model: withMemory(model, { user, session }), system: SYSTEM, messages });
  const buildId = buildIdOf(answer.providerMetadata);
  return [answer.text, buildId === undefined ? [] : await cited(user, buildId, answer.text)];
}

export async function main(model: Model, user: User, print: (line: string) => void): Promise<void> {
  const asked = [
    ["monday", "I moved to Berlin in May, and I do not eat meat."],
    ["friday", "Where do I live, and what do I not eat?"],
  ] as const;
  for (const [session, content] of asked) {
    const [text, sentences] = await ask(model, user, session, [{ role: "user", content }]);
    print(`${session}> ${content}\n        ${text}`);
    for (const { evidence, unknownMarks } of sentences) {
      for (const { id, words } of evidence) print(`        rests on ${id}: “${words}”`);
      for (const mark of unknownMarks) print(`        ${mark} names nothing that it was told`);
    }
  }
}

if (process.env["MODEL"] !== undefined) {
  const client = new Muniment({
    baseUrl: process.env["MUNIMENT_URL"] ?? "http://127.0.0.1:8765",
    apiKey: process.env["MUNIMENT_KEY"],
  });
  await main(gateway(process.env["MODEL"]), client.user("ana"), console.log);
}
