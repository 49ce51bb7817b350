/** A user's memory: what was said to whom, what is known, what was told, and the way to take it back. */

import { Build } from "./build.js";
import { followed, type ChangesOptions } from "./changes.js";
import { InvalidInput } from "./error_classes.js";
import { listed } from "./pages.js";
import { Run } from "./run.js";
import { newId, type CallOptions, type Transport } from "./transport.js";
import type {
  BuildFilter,
  BuildSummary,
  Changes,
  EventFilter,
  Fact,
  FactFilter,
  Hit,
  Identified,
  LedgerEntry,
  Receipt,
  Records,
  Resolution,
  Resolved,
  RunArguments,
  RunFilter,
  RunState,
  SearchArguments,
  Telling,
} from "./types.js";

const USER = "/v1/tenants/{tenant_id}/users/{user_id}";

/** One thing to forget, with all that was derived from it. */
export type Forgetting =
  | { event: string | Identified }
  | { fact: string | { readonly fact_id: string } }
  | { session: string };

export class User {
  readonly id: string;
  readonly tenant: string;
  readonly #transport: Transport;

  /** See `Muniment.user`. */
  constructor(transport: Transport, tenant: string, id: string) {
    this.#transport = transport;
    this.tenant = tenant;
    this.id = id;
  }

  /** The names of the user in an address, for `Muniment.request`. */
  get path(): { tenant_id: string; user_id: string } {
    return { tenant_id: this.tenant, user_id: this.id };
  }

  /**
   * A run: the handle that writes. Nothing is sent yet; the first write starts it. With a `run_id` of a run that is
   * there, that is taken up again; without, it is a new one, in the `session_id` or one of its own.
   */
  run(given: RunArguments = {}): Run {
    const id = given.run_id ?? newId("run");
    return new Run(this.#transport, this, id, given.run_id === undefined ? { session_id: id, ...given } : given);
  }

  // -- what memory holds ------------------------------------------------------------------------------

  /** What memory holds on a query, best first: events, facts and episodes of all sessions. */
  async search(
    query: string,
    given: SearchArguments = {},
    options?: CallOptions,
    context: Readonly<Record<string, unknown>> = {},
  ): Promise<Hit[]> {
    return (await this.#post<Records["HitList"]>("search", { query, ...given }, options, context)).items;
  }

  /** The user's events, session by session. */
  events(filter: EventFilter = {}, options?: CallOptions): AsyncGenerator<LedgerEntry, void, undefined> {
    return this.#list("events", filter, options);
  }

  /** What is known of the user. */
  facts(filter: FactFilter = {}, options?: CallOptions): AsyncGenerator<Fact, void, undefined> {
    return this.#list("facts", filter, options);
  }

  runs(filter: RunFilter = {}, options?: CallOptions): AsyncGenerator<RunState, void, undefined> {
    return this.#list("runs", filter, options);
  }

  /** The packets that were composed, without their contents. */
  builds(filter: BuildFilter = {}, options?: CallOptions): AsyncGenerator<BuildSummary, void, undefined> {
    return this.#list("builds", filter, options);
  }

  /** The words of an event, of one that is too long to stand in its entry too. */
  async content(event: string | Identified, options?: CallOptions): Promise<string> {
    const event_id = typeof event === "string" ? event : event.id;
    const template = `${USER}/events/{event_id}/content`;
    const told = await this.#transport.ask({ method: "get", template, names: { ...this.path, event_id } }, options);
    return told as string;
  }

  // -- what was told, and why -------------------------------------------------------------------------

  /** A build as it was composed, to the byte, whatever was written since. */
  async replay(build: string | Identified, options?: CallOptions): Promise<Build> {
    const build_id = typeof build === "string" ? build : build.id;
    const template = `${USER}/builds/{build_id}`;
    const told = await this.#transport.ask({ method: "get", template, names: { ...this.path, build_id } }, options);
    return new Build(told as Records["Build"], this);
  }

  /** Which builds told these words, or which answers said them, and from which events. */
  async why(text: string, options?: CallOptions): Promise<Telling[]> {
    return (await this.#post<Records["TellingList"]>("why", { text }, options)).items;
  }

  /** The words that a pointer names: an event's id, or a place in an event, in a chunk of a document, in a source. */
  resolve(pointer: Records["ResolveArguments"]["pointer"], options?: CallOptions): Promise<Resolved> {
    return this.#post("resolve", { pointer }, options);
  }

  /** Which sentences of an answer cite what of a build. See `Build.resolve`. */
  resolveAnswer(build: string | Identified, answer: string, options?: CallOptions): Promise<Resolution> {
    const build_id = typeof build === "string" ? build : build.id;
    const asking = { method: "post", template: `${USER}/builds/{build_id}/resolve`, body: { answer } };
    return this.#transport.ask({ ...asking, names: { ...this.path, build_id } }, options) as Promise<Resolution>;
  }

  // -- taking it back ---------------------------------------------------------------------------------

  /** Erase one event, fact or session with all that was derived from it. */
  async forget(what: Forgetting, options?: CallOptions): Promise<Receipt> {
    const named = Object.entries(what).filter(([, value]) => value !== undefined && value !== null);
    const [kind, value] = named[0] ?? [];
    const id = typeof value === "string" ? value : (value as { id?: string; fact_id?: string } | undefined);
    const given = typeof id === "string" ? id : kind === "fact" ? id?.fact_id : id?.id;
    if (named.length !== 1 || kind === undefined || typeof given !== "string" || given === "") {
      // Sent without a name, it would erase the user.
      throw new InvalidInput("one event, fact or session is forgotten at a time", {
        path: "$",
        hint: "name one of them; forgetEverything() erases the user",
      });
    }
    return this.#forget({ [kind]: given }, options);
  }

  /** Erase all that there is of this user. */
  forgetEverything(options?: CallOptions): Promise<Receipt> {
    return this.#forget({}, options);
  }

  // -- keeping up -------------------------------------------------------------------------------------

  /** Where things stand now: a beginning for `changes`. */
  async position(options?: CallOptions): Promise<string> {
    return (await this.changesAfter(undefined, options)).position;
  }

  /** What was committed after a position, in one answer. */
  changesAfter(position?: string, options?: CallOptions): Promise<Changes> {
    const query = { after: position };
    const asking = { method: "get", template: `${USER}/changes`, names: this.path, query };
    return this.#transport.ask(asking, options) as Promise<Changes>;
  }

  /**
   * What is committed, as it is committed, by whichever process: ids and kinds. It goes on until the loop is left or the
   * signal aborts; a lost connection is taken up where it broke off. `position` of what came last is where to begin
   * `after` another time. Where a `reset` is told, look at everything again.
   */
  changes(options: ChangesOptions = {}): AsyncGenerator<Changes, void, undefined> {
    return followed(this.#transport, { template: `${USER}/changes`, names: this.path }, options);
  }

  #forget(body: Record<string, string>, options?: CallOptions): Promise<Receipt> {
    const asking = { method: "post", template: `${USER}/forget`, names: this.path, body, repeats: true };
    return this.#transport.ask(asking, options) as Promise<Receipt>;
  }

  #post<T>(what: string, body: unknown, options?: CallOptions, query?: Readonly<Record<string, unknown>>): Promise<T> {
    const asking = { method: "post", template: `${USER}/${what}`, names: this.path, body, query };
    return this.#transport.ask(asking, options) as Promise<T>;
  }

  #list<T>(what: string, query: object, options?: CallOptions): AsyncGenerator<T, void, undefined> {
    const asking = { template: `${USER}/${what}`, names: this.path, query: { ...query } };
    return listed<T>(this.#transport, asking, options);
  }
}
