// The Vercel AI SDK through a proxy: a turn, a stream and a tool in each of the three APIs. Says what came, as JSON.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const base = process.env.PROXY_URL;
const headers = (session) => ({ "muniment-user": "ana", "muniment-session": session });
const openai = (session) => createOpenAI({ baseURL: `${base}/v1`, apiKey: "k", headers: headers(session) });
const models = {
  chat: () => openai("chat").chat("small"),
  responses: () => openai("responses").responses("small"),
  messages: () => createAnthropic({ baseURL: `${base}/v1`, apiKey: "k", headers: headers("messages") })("small"),
};
const weather = tool({
  description: "The weather",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `12 degrees in ${city}`,
});

const said = {};
for (const [name, model] of Object.entries(models)) {
  const first = await generateText({ model: model(), prompt: "Where do I live?", maxRetries: 0 });
  const messages = [
    { role: "user", content: "Where do I live?" },
    ...first.response.messages,
    { role: "user", content: "Are you sure?" },
  ];
  const streamed = streamText({ model: model(), messages, maxRetries: 0 });
  const parts = [];
  for await (const part of streamed.textStream) parts.push(part);
  const asked = [...messages, ...(await streamed.response).messages, { role: "user", content: "How warm is it?" }];
  const tooled = await generateText({
    model: model(),
    messages: asked,
    tools: { weather },
    stopWhen: stepCountIs(3),
    maxRetries: 0,
  });
  said[name] = {
    text: first.text,
    build: first.response.headers["muniment-build"] ?? "",
    stream: parts.join(""),
    steps: tooled.steps.length,
    tooled: tooled.text,
  };
}
console.log(JSON.stringify(said));
