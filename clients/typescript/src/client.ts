/** The client: a server's memory, by tenant and user, and every operation by its address. */

import { listed } from "./pages.js";
import { Transport, type CallOptions, type ClientOptions } from "./transport.js";
import type { Answer, Asked, ItemOf, ListPath, MethodOf, Path } from "./types.js";
import { User } from "./user.js";

type Sent = CallOptions & { path?: Record<string, string>; query?: Record<string, unknown>; body?: unknown };

export class Muniment {
  readonly tenant: string;
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
    this.tenant = options.tenant ?? "default";
  }

  get baseUrl(): string {
    return this.#transport.baseUrl;
  }

  /** A user's memory. The name is yours to choose; nothing is sent yet. */
  user(id: string): User {
    return new User(this.#transport, this.tenant, id);
  }

  /**
   * Any operation of the OpenAPI document, by its address and method, typed by it. What takes an idempotency key is sent
   * with one. JSON is answered as what it says, JSON lines and text as text.
   */
  request<P extends Path, M extends MethodOf<P>>(
    path: P,
    method: M,
    ...[asked]: object extends Asked<P, M> ? [asked?: Asked<P, M>] : [asked: Asked<P, M>]
  ): Promise<Answer<P, M>> {
    const { path: names, query, body, ...options } = (asked ?? {}) as Sent;
    const asking = { method: method as string, template: path as string, names: this.#names(names), query, body };
    return this.#transport.ask({ ...asking, accept: "application/json, */*;q=0.5" }, options) as Promise<Answer<P, M>>;
  }

  /** The items of any list, of as many pages as it takes. */
  list<P extends ListPath>(
    path: P,
    ...[asked]: object extends Asked<P, "get" & MethodOf<P>>
      ? [asked?: Asked<P, "get" & MethodOf<P>>]
      : [asked: Asked<P, "get" & MethodOf<P>>]
  ): AsyncGenerator<ItemOf<P>, void, undefined> {
    const { path: names, query, ...options } = (asked ?? {}) as Sent;
    return listed<ItemOf<P>>(this.#transport, { template: path, names: this.#names(names), query }, options);
  }

  #names(given: Record<string, string> | undefined): Record<string, string> {
    return { tenant_id: this.tenant, ...given };
  }
}
