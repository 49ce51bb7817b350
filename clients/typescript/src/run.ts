/** One run of an agent for a user: what is said and done in it, and the prompts that are composed for it. */

import { Build } from "./build.js";
import { listed } from "./pages.js";
import type { CallOptions, Transport } from "./transport.js";
import type {
  ComposeArguments,
  EventFilter,
  Fact,
  FinishArguments,
  FoldResult,
  Hit,
  Identified,
  LedgerEntry,
  Observation,
  ObserveArguments,
  ObserveToolArguments,
  Purpose,
  RecordArguments,
  Records,
  RememberArguments,
  Role,
  RunArguments,
  RunRef,
  RunState,
  SearchArguments,
} from "./types.js";
import type { User } from "./user.js";

const USER = "/v1/tenants/{tenant_id}/users/{user_id}";
const RUN = `${USER}/runs/{run_id}`;

export class Run {
  readonly id: string;
  readonly user: User;
  readonly #transport: Transport;
  readonly #begin: RunArguments;
  #started: Promise<RunRef> | undefined;

  /** See `User.run`. */
  constructor(transport: Transport, user: User, id: string, begin: RunArguments) {
    this.#transport = transport;
    this.user = user;
    this.id = id;
    this.#begin = begin;
  }

  /** The names of the run in an address, for `Muniment.request`. */
  get path(): { tenant_id: string; user_id: string; run_id: string } {
    return { ...this.user.path, run_id: this.id };
  }

  /** Write that the run has begun. Its first write does so too; where it has an objective, it is done before that. */
  start(options: CallOptions = {}): Promise<RunRef> {
    const body = { session_id: this.id, ...this.#begin, run_id: this.id };
    const asking = { method: "post", template: `${USER}/runs`, names: this.user.path, body, repeats: true };
    this.#started = this.#transport.ask(asking, options) as Promise<RunRef>;
    this.#started.catch(() => (this.#started = undefined));
    return this.#started;
  }

  // -- what happened ----------------------------------------------------------------------------------

  /** Record what somebody said. The entry's `id` is the evidence that facts and answers refer to. */
  observe(role: Role, content: string, given: ObserveArguments = {}, options?: CallOptions): Promise<LedgerEntry> {
    return this.#write("events", observed({ role, content, ...given }), options);
  }

  /** Record what a tool answered. */
  observeTool(name: string, content: string, given: ObserveToolArguments = {}, options?: CallOptions): Promise<LedgerEntry> {
    return this.#write("tool-results", { name, content, ...given }, options);
  }

  /** Record several in one transaction: all of them, in order, or none. */
  async observeMany(events: readonly Observation[], options?: CallOptions): Promise<LedgerEntry[]> {
    const told = await this.#write<Records["LedgerEntryList"]>("events/batch", events.map(observed), options);
    return told.items;
  }

  /**
   * Record a list of messages as an API has them: Chat Completions, Responses or Anthropic. Of a list that has grown only
   * what is new is written.
   */
  async record(messages: readonly unknown[], given: RecordArguments = {}, options?: CallOptions): Promise<LedgerEntry[]> {
    const told = await this.#write<Records["LedgerEntryList"]>("messages", observed({ messages, ...given }), options);
    return told.items;
  }

  /** Keep a fact under a key, with the events that say so. */
  remember(key: string, value: unknown, given: RememberArguments, options?: CallOptions): Promise<Fact> {
    return this.#write("facts", { key, value, ...given, sources: given.sources.map(idOf) }, options);
  }

  /** End the run. */
  finish(given: FinishArguments = {}, options?: CallOptions): Promise<RunState | FoldResult> {
    return this.#write("finish", given, options);
  }

  // -- what is told -----------------------------------------------------------------------------------

  /** What memory holds on a query, best first. */
  search(query: string, given: SearchArguments = {}, options?: CallOptions): Promise<Hit[]> {
    return this.user.search(query, given, options, { run_id: this.id, ...this.#names() });
  }

  /** Compose what a model is to be told: within a budget, each line with its evidence. */
  async compose(purpose: Purpose, given: ComposeArguments = {}, options?: CallOptions): Promise<Build> {
    const body = { purpose, ...given, exclude: given.exclude?.map(idOf) };
    return new Build(await this.#write<Records["Build"]>("compose", body, options), this.user);
  }

  /** This run's entries, in order. */
  events(filter: Omit<EventFilter, "session_id"> = {}, options?: CallOptions): AsyncGenerator<LedgerEntry, void, undefined> {
    return listed(this.#transport, { template: `${RUN}/events`, names: this.path, query: filter }, options);
  }

  async #write<T>(what: string, body: unknown, options: CallOptions = {}): Promise<T> {
    const { objective, done_definition, budgets } = this.#begin;
    if (objective !== undefined || done_definition !== undefined || budgets !== undefined) {
      const { idempotencyKey: _, ...rest } = options;
      await (this.#started ?? this.start(rest));
    }
    const asking = { method: "post", template: `${RUN}/${what}`, names: this.path, query: this.#names(), body };
    return (await this.#transport.ask(asking, options)) as T;
  }

  /** How a run begins that has not; one that is there is taken up as it stands. */
  #names(): Record<string, unknown> {
    const { agent_id, session_id, task_type, grants } = this.#begin;
    return { agent_id, session_id, task_type, grants };
  }
}

function observed<T extends { build?: string | Identified | undefined }>(given: T): T {
  return given.build === undefined ? given : { ...given, build: idOf(given.build) };
}

function idOf(given: string | Identified): string {
  return typeof given === "string" ? given : given.id;
}
