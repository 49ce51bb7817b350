/** A packet that was composed, and the messages that it makes. */

import type { MemoryPacket, Records, Resolution } from "./types.js";
import type { CallOptions } from "./transport.js";
import type { User } from "./user.js";
import { DIVIDER, REMINDER } from "./words.js";

type WireBuild = Records["Build"];

export interface OpenAIMessage {
  role: "system" | "user";
  content: string;
}

export interface AnthropicText {
  type: "text";
  text: string;
  cache_control?: { type: "ephemeral" };
}

export interface AnthropicMessage {
  role: "user";
  content: AnthropicText[];
}

export interface MessageOptions {
  /** Put the question behind the context; `true` unless given. */
  includeQuery?: boolean;
  /** Remind the model to cite; `true` unless given. */
  cite?: boolean;
}

export class Build implements WireBuild {
  readonly id: string;
  /** The contract: what is told, with the evidence of each part, the budget, and why this and not that. */
  readonly packet: MemoryPacket;
  /** What goes into the prompt. */
  readonly text: string;
  readonly tokens: number;
  /** What each mark of the text refers to: `{"1": "evt_…"}`. */
  readonly marks: Record<string, string>;
  /** Does memory hold something on the question? */
  readonly found: boolean;
  readonly request: WireBuild["request"];
  readonly rules: WireBuild["rules"];
  /** How much of the text, from its beginning, seldom changes from packet to packet; in code points. */
  readonly stable_chars: number;
  readonly #user: User;

  constructor(wire: WireBuild, user: User) {
    this.id = wire.id;
    this.packet = wire.packet;
    this.text = wire.text;
    this.tokens = wire.tokens;
    this.marks = wire.marks;
    this.found = wire.found;
    this.request = wire.request;
    this.rules = wire.rules;
    this.stable_chars = wire.stable_chars;
    this.#user = user;
  }

  /** The beginning of the text that seldom changes: what a prompt cache can hold. */
  get stableText(): string {
    return [...this.text].slice(0, this.stable_chars).join("");
  }

  /** Which sentences of a model's answer cite what, and which marks do not exist. */
  resolve(answer: string, options?: CallOptions): Promise<Resolution> {
    return this.#user.resolveAnswer(this.id, answer, options);
  }

  /** A system message with the context, and the question as the last user message. What is empty is left out. */
  toOpenAI(options: MessageOptions = {}): OpenAIMessage[] {
    const [context, asked] = this.#asked(options);
    const messages: OpenAIMessage[] = [];
    if (context.length > 0) messages.push({ role: "system", content: context.join("\n") });
    if (asked !== "") messages.push({ role: "user", content: asked });
    return messages;
  }

  /** One user message: context, then, behind a divider, the question. `cache` sets a breakpoint behind what seldom changes. */
  toAnthropic(options: MessageOptions & { cache?: boolean } = {}): AnthropicMessage[] {
    const [context, asked] = this.#asked(options);
    const stable = options.cache === true ? this.stableText : "";
    const blocks: AnthropicText[] = [];
    if (stable !== "") {
      blocks.push({ type: "text", text: stable, cache_control: { type: "ephemeral" } });
      context[0] = this.text.slice(stable.length);
    }
    const last = context.length - 1;
    if (asked !== "" && last >= 0) context[last] = `${context[last]?.trimEnd()}${DIVIDER}`;
    for (const text of [...context, asked]) if (text !== "") blocks.push({ type: "text", text });
    return blocks.length > 0 ? [{ role: "user", content: blocks }] : [];
  }

  /** The texts of the context, and the question; the reminder is the end of what comes last of them. */
  #asked({ includeQuery = true, cite = true }: MessageOptions): [string[], string] {
    const context = this.text === "" ? [] : [this.text];
    const asked = includeQuery ? this.request.query : "";
    if (cite && Object.keys(this.marks).length > 0) {
      if (asked !== "") return [context, `${asked}\n\n${REMINDER}`];
      context.push(REMINDER);
    }
    return [context, asked];
  }
}
