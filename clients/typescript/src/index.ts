/**
 * `@muniment/client`: evidence-first memory for agents, over HTTP.
 *
 * What is the client's own is in camelCase; records and arguments keep the names of the document.
 */

export { Build, type AnthropicMessage, type AnthropicText, type MessageOptions, type OpenAIMessage } from "./build.js";
export type { ChangesOptions } from "./changes.js";
export { Muniment } from "./client.js";
export * from "./error_classes.js";
export { ConnectionFailed, MunimentError, TimedOut } from "./errors.js";
export { Run } from "./run.js";
export type { CallOptions, ClientOptions } from "./transport.js";
export type * from "./types.js";
export { User, type Forgetting } from "./user.js";
