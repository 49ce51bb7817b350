/**
 * A memory for any model of the AI SDK: middleware that records what is said, composes what the model is told, and
 * records the answer with the build it was given; and `cited`, which says what an answer rests on.
 *
 * The packet stands behind your own system prompt, so that a prompt cache of that holds: at the end of your last leading
 * system message, or as a message of its own behind it where that one ends a cached part (it has provider options).
 * What the caller sends itself is not told twice: of this session nothing stands in the packet.
 */

import { MessagesDiffer, MunimentError, type Build, type Run, type User } from "@muniment/client";
import { wrapLanguageModel, type LanguageModelMiddleware } from "ai";

type Params = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["transformParams"]>>>;
type Prompt = Params["prompt"];
type Model = Parameters<typeof wrapLanguageModel>[0]["model"];
type Generated = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>>;
type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
type StreamPart = Streamed["stream"] extends ReadableStream<infer P> ? P : never;

export interface MemoryOptions {
  user: User;
  /** The conversation; a new one unless given. */
  session?: string;
  /** The budget of the packet; the server's policy unless given. */
  maxTokens?: number;
  /** Where memory fails: `open`, the model is asked without it; `closed`, the error is thrown. `open` unless given. */
  onError?: "open" | "closed";
  /** What is told of a failure that was passed over. */
  warn?: (message: string) => void;
}

/** What one call was told, and with which messages its answer is recorded. */
interface Call {
  messages: Message[];
  build: Build;
}

interface Message {
  role: string;
  content: string | null;
  tool_calls?: { id: string; type: "function"; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

/** The model with a memory. The id of the build is in the answer's `providerMetadata.muniment.buildId`. */
export function withMemory(model: Model, options: MemoryOptions): ReturnType<typeof wrapLanguageModel> {
  return wrapLanguageModel({ model, middleware: memory(options) });
}

export function memory(options: MemoryOptions): LanguageModelMiddleware {
  const { user, session, maxTokens, onError = "open", warn = console.warn } = options;
  const calls = new WeakMap<Params, Call>();
  // One run for each session, taken up again by whoever goes on with that session.
  const runId = `ai-sdk:${user.id}:${session}`;
  let run: Run = session === undefined ? user.run() : user.run({ run_id: runId, session_id: session });

  async function record(messages: Message[], build?: Build): Promise<void> {
    try {
      await run.record(messages, { build });
    } catch (error) {
      if (!(error instanceof MessagesDiffer)) throw error;
      run = user.run(); // the list was edited or cut: it is another conversation
      await run.record(messages, { build });
    }
  }

  async function remembered<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (onError === "closed" || !(error instanceof MunimentError)) throw error;
      warn(`a call went on without memory: ${what} (${error.code})`);
      return undefined;
    }
  }

  async function keep(params: Params, answer: Message): Promise<void> {
    const call = calls.get(params);
    if (call === undefined || (answer.content === null && answer.tool_calls === undefined)) return;
    await remembered("its answer was not recorded", () => record([...call.messages, answer], call.build));
  }

  return {
    specificationVersion: "v3",

    async transformParams({ params }) {
      const told = await remembered("no packet was composed", async () => {
        const messages = messagesOf(params.prompt);
        await record(messages);
        const query = messages.filter((each) => each.role === "user").at(-1)?.content ?? "";
        const given = { query, exclude_session: true, max_tokens: maxTokens };
        const build = await run.compose("responder", given, { signal: params.abortSignal });
        return { messages, build };
      });
      if (told === undefined) return params;
      const sent = { ...params, prompt: withPacket(params.prompt, told.build) };
      calls.set(sent, told);
      return sent;
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      await keep(params, answerOf(result.content));
      return { ...result, providerMetadata: marked(result.providerMetadata, calls.get(params)) };
    },

    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      return { ...rest, stream: followed(stream, (parts) => keep(params, answerOf(parts)), calls.get(params)) };
    },
  };
}

/** The packet behind the caller's own system prompt. */
export function withPacket(prompt: Prompt, build: Build): Prompt {
  const packet = build.toOpenAI({ includeQuery: false }).map((each) => each.content).join("\n\n");
  if (packet === "") return prompt;
  const at = prompt.findIndex((each) => each.role !== "system");
  const leading = at === -1 ? prompt.length : at;
  const own = prompt[leading - 1];
  const rest = prompt.slice(leading);
  if (own?.role !== "system" || own.providerOptions !== undefined) {
    return [...prompt.slice(0, leading), { role: "system", content: packet }, ...rest];
  }
  return [...prompt.slice(0, leading - 1), { ...own, content: `${own.content}\n\n${packet}` }, ...rest];
}

/** A sentence of an answer, with the words of the events that it cites. */
export interface Cited {
  text: string;
  evidence: { id: string; words: string }[];
  unknownMarks: string[];
}

/** What each sentence of an answer rests on. */
export async function cited(user: User, buildId: string, answer: string): Promise<Cited[]> {
  const { sentences } = await user.resolveAnswer(buildId, answer);
  return Promise.all(
    sentences.map(async ({ text, evidence_ids, unknown_marks }) => ({
      text,
      evidence: await Promise.all(evidence_ids.map(async (id) => ({ id, words: await user.content(id) }))),
      unknownMarks: unknown_marks,
    })),
  );
}

/** The id of the build that an answer was given. */
export function buildIdOf(metadata: Generated["providerMetadata"]): string | undefined {
  const id = metadata?.["muniment"]?.["buildId"];
  return typeof id === "string" ? id : undefined;
}

// -- between the AI SDK's messages and those that `record` takes ----------------------------------------

/** A prompt as Chat Completions messages. Files are named, not recorded; reasoning is left out. */
function messagesOf(prompt: Prompt): Message[] {
  return prompt.flatMap((message): Message[] => {
    if (message.role === "system") return [{ role: "system", content: message.content }];
    if (message.role === "assistant") return [answerOf(message.content)];
    if (message.role === "user") {
      const texts = message.content.map((part) =>
        part.type === "text" ? part.text : `[file: ${part.filename ?? part.mediaType}]`,
      );
      return [{ role: "user", content: texts.join("\n") }];
    }
    return message.content.flatMap((part) =>
      part.type === "tool-result" ? [{ role: "tool", tool_call_id: part.toolCallId, content: outputOf(part.output) }] : [],
    );
  });
}

type AnswerPart = { type: string; text?: string; toolCallId?: string; toolName?: string; input?: unknown };

/** An answer, whole or from its stream: its text and its calls. */
function answerOf(parts: readonly AnswerPart[]): Message {
  const text = parts.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
  const calls = parts.flatMap(({ type, toolCallId, toolName, input }) => {
    if (type !== "tool-call" || toolCallId === undefined || toolName === undefined) return [];
    const args = JSON.stringify(typeof input === "string" ? JSON.parse(input || "{}") : (input ?? {}));
    return [{ id: toolCallId, type: "function" as const, function: { name: toolName, arguments: args } }];
  });
  const said: Message = { role: "assistant", content: text === "" ? null : text };
  return calls.length > 0 ? { ...said, tool_calls: calls } : said;
}

function outputOf(output: { type: string; value?: unknown; reason?: string | undefined }): string {
  if (output.value === undefined) return output.reason ?? output.type;
  return typeof output.value === "string" ? output.value : JSON.stringify(output.value);
}

/** The same stream; what came is kept when it ends, and also where the reader leaves: then without calls. */
function followed(
  stream: ReadableStream<StreamPart>,
  keep: (parts: AnswerPart[]) => Promise<void>,
  call: Call | undefined,
): ReadableStream<StreamPart> {
  const reader = stream.getReader();
  const parts: AnswerPart[] = [];
  const source: UnderlyingDefaultSource<StreamPart> = {
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) {
        await keep(parts);
        return controller.close();
      }
      if (value.type === "text-delta") parts.push({ type: "text", text: value.delta });
      if (value.type === "tool-call") parts.push(value);
      const isLast = value.type === "finish";
      controller.enqueue(isLast ? { ...value, providerMetadata: marked(value.providerMetadata, call) } : value);
    },
    async cancel(reason) {
      await reader.cancel(reason);
      await keep(parts.filter((part) => part.type === "text"));
    },
  };
  return new ReadableStream<StreamPart>(source, { highWaterMark: 0 }); // what nobody has read has not been said
}

function marked(metadata: Generated["providerMetadata"], call: Call | undefined): NonNullable<Generated["providerMetadata"]> {
  return call === undefined ? (metadata ?? {}) : { ...metadata, muniment: { buildId: call.build.id } };
}
