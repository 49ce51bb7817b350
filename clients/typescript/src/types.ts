/** Types that are read off the OpenAPI document: records by name, what an operation takes, and what it answers. */

import type { components, operations, paths } from "./openapi.js";
import type { CallOptions } from "./transport.js";

/** Every record by its name: `Records["Fact"]`. */
export type Records = components["schemas"];

export type Appended = Records["Appended"];
export type Changes = Records["Changes"];
export type Citation = Records["Citation"];
export type CitedSentence = Records["CitedSentence"];
export type EventSpan = Records["EventSpan"];
export type Fact = Records["Fact"];
export type FoldResult = Records["FoldResult"];
export type Hit = Records["Hit"];
export type LedgerEntry = Records["LedgerEntry"];
export type MemoryPacket = Records["MemoryPacket"];
export type Problem = Records["Problem"];
export type BuildSummary = ItemOf<"/v1/tenants/{tenant_id}/users/{user_id}/builds">;
export type Receipt = Records["Receipt"];
export type Resolution = Records["Resolution"];
export type Resolved = Records["Resolved"];
export type RunRef = Records["RunRef"];
export type RunState = Records["RunState"];
export type Telling = Records["Telling"];

/** What may be absent may also be undefined; a point in time may be a `Date`; an event or a build stands for its id. */
export type Given<T> = {
  [K in keyof T]: GivenAs<K, T[K]> | (object extends Pick<T, K> ? undefined : never);
};
type GivenAs<K, V> = K extends Moments
  ? V | Date
  : K extends "sources" | "exclude"
    ? readonly (string | Identified)[]
    : K extends "build"
      ? string | Identified
      : V;
type Moments = "ts" | "now" | "at" | "since" | "until" | "valid_from" | "valid_to";

/** Something with an id, such as an entry or a build. */
export interface Identified {
  readonly id: string;
}

export type Purpose = Records["ComposeArguments"]["purpose"];
export type Role = Records["ObserveArguments"]["role"];
export type ObserveArguments = Given<Omit<Records["ObserveArguments"], "role" | "content">>;
export type ObserveToolArguments = Given<Omit<Records["ObserveToolArguments"], "name" | "content">>;
export type Observation = Given<Records["ObserveArguments"]> & { tool?: Records["ToolCall"] | undefined };
export type RecordArguments = Given<Omit<Records["RecordArguments"], "messages">>;
type Remembered = Omit<Records["RememberArguments"], "key" | "value">;
/** The server answers what is missing; a program learns it when it is compiled. */
export type RememberArguments = Given<Remembered & Required<Pick<Remembered, "sources">>>;
export type SearchArguments = Given<Omit<Records["SearchArguments"], "query">>;
export type ComposeArguments = Given<Omit<Records["ComposeArguments"], "purpose">>;
export type FinishArguments = Given<Pick<Records["FinishRunArguments"], "stop_reason" | "verifier_result">>;
export type RunArguments = Given<Omit<Records["StartRunArguments"], "start">>;
export type EventFilter = Given<QueryOf<operations["events"]>>;
export type FactFilter = Given<QueryOf<operations["facts"]>>;
export type RunFilter = Given<QueryOf<operations["memory_runs_of_user"]>>;
export type BuildFilter = Given<QueryOf<operations["memory_builds_of_user"]>>;

// -- any operation, by its address ------------------------------------------------------------------

type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? (Q extends object ? Omit<Q, "cursor"> : object) : object;

export type Path = keyof paths;
export type Method = "get" | "post" | "patch" | "delete";
type Operation<P extends Path, M> = M extends keyof paths[P] ? Exclude<paths[P][M], undefined> : never;

/** The methods that an address takes. */
export type MethodOf<P extends Path> = {
  [M in Method]: Operation<P, M> extends never ? never : M;
}[Method];

type Names<O> = O extends { parameters: { path: infer N } } ? N : object;
type BodyOf<O> = O extends { requestBody?: { content: infer C } }
  ? C extends { "application/json": infer B }
    ? B
    : never
  : never;
type Part<Name extends string, T> = [T] extends [never]
  ? object
  : object extends T
    ? { [K in Name]?: T | undefined }
    : { [K in Name]: T };
type IsRequired<O> = O extends { requestBody: object } ? true : false;

/** What an operation is asked with: the names in its address (without the tenant, which is the client's), query, body. */
export type Asked<P extends Path, M extends MethodOf<P>> = AskedOf<Operation<P, M>> & CallOptions;
type AskedOf<O> = Part<"path", Omit<Names<O>, "tenant_id"> & { tenant_id?: string }> & {
  query?: (O extends { parameters: { query?: infer Q } } ? Q : never) | undefined;
} & (IsRequired<O> extends true ? { body: BodyOf<O> } : { body?: BodyOf<O> | undefined });

type ContentOf<A> = A extends { content: infer C } ? (C extends { "application/json": infer B } ? B : string) : undefined;
type AnswerOf<O> = O extends { responses: infer R } ? { [S in keyof R]: ContentOf<R[S]> }[keyof R] : never;

/** What an operation answers. */
export type Answer<P extends Path, M extends MethodOf<P>> = AnswerOf<Operation<P, M>>;

/** The addresses whose answer is a page of a list. */
export type ListPath = {
  [P in Path]: AnswerOf<Operation<P, "get">> extends { items: unknown[]; next?: string } ? P : never;
}[Path];
/** What the list at an address holds. */
export type ItemOf<P extends ListPath> =
  AnswerOf<Operation<P, "get">> extends { items: (infer T)[] } ? T : never;
