/** Made from the library by tools/make_typescript.py: do not edit. */

import { MunimentError } from "./errors.js";

/** The caller's data is wrong: fix it and call again. */
export class InvalidInput extends MunimentError {
  static override readonly code: string = "invalid_input";
}

/** Not JSON, or JSON we refuse (duplicate keys, NaN, lone surrogates, too deep). */
export class InvalidJson extends InvalidInput {
  static override readonly code: string = "invalid_json";
}

/** JSON that does not fit its contract; carries every issue found. */
export class InvalidRecord extends InvalidInput {
  static override readonly code: string = "invalid_record";
}

/** No such contract. */
export class UnknownKind extends InvalidInput {
  static override readonly code: string = "unknown_kind";
}

/** Over a stated limit. */
export class TooLarge extends InvalidInput {
  static override readonly code: string = "too_large";
}

/** A third party's file that could only be read by trusting or running it. */
export class UnsafeFile extends InvalidInput {
  static override readonly code: string = "unsafe_file";
}

/** A lesson that its evidence does not support, or that is not allowed; carries the reason. */
export class LessonRefused extends InvalidInput {
  static override readonly code: string = "lesson_refused";
}

/** Measurements too weak for the requested result. */
export class IllConditioned extends InvalidInput {
  static override readonly code: string = "ill_conditioned";
}

/** A function of the caller's crashed, hung or returned an invalid result. */
export class EvaluationFailed extends InvalidInput {
  static override readonly code: string = "evaluation_failed";
}

/** The thing named does not exist in this scope. */
export class NotFound extends MunimentError {
  static override readonly code: string = "not_found";
}

/** No such tenant, user, session. */
export class UnknownScope extends NotFound {
  static override readonly code: string = "unknown_scope";
}

/** The data is valid, but conflicts with the state of the store. */
export class Conflict extends MunimentError {
  static override readonly code: string = "conflict";
}

/** An id that exists already. */
export class DuplicateId extends Conflict {
  static override readonly code: string = "duplicate_id";
}

/** An optimistic lock lost; carries the current version. */
export class StaleState extends Conflict {
  static override readonly code: string = "stale_state";
}

/** The key was used before with another request. */
export class IdempotencyMismatch extends Conflict {
  static override readonly code: string = "idempotency_mismatch";
}

/** A write to a run that has ended. */
export class RunFinished extends Conflict {
  static override readonly code: string = "run_finished";
}

/** The run's compaction failed; carries the diagnosis. */
export class RunLocked extends Conflict {
  static override readonly code: string = "run_locked";
}

/** A research run is not there yet, or is past it. */
export class WrongStage extends Conflict {
  static override readonly code: string = "wrong_stage";
}

/** A gate of a research run does not hold; carries its metrics. */
export class GateFailed extends Conflict {
  static override readonly code: string = "gate_failed";
}

/** A list of messages does not begin with what was recorded of it. */
export class MessagesDiffer extends Conflict {
  static override readonly code: string = "messages_differ";
}

/** The clock reads earlier than what is recorded already. */
export class ClockWentBack extends Conflict {
  static override readonly code: string = "clock_went_back";
}

/** A build of a version that stored too little to compose it again. */
export class ComposedBefore extends Conflict {
  static override readonly code: string = "composed_before";
}

/** The caller lacks the grant for it. */
export class Forbidden extends MunimentError {
  static override readonly code: string = "forbidden";
}

/** A server rejected the request before processing it. */
export class Refused extends MunimentError {
  static override readonly code: string = "refused";
}

/** No key, or one that does not hold. */
export class Unauthorized extends Refused {
  static override readonly code: string = "unauthorized";
}

/** Too many requests under one key. */
export class RateLimited extends Refused {
  static override readonly code: string = "rate_limited";
}

/** Nothing answers at that address. */
export class UnknownRoute extends Refused {
  static override readonly code: string = "unknown_route";
}

/** The address does not take that method. */
export class WrongMethod extends Refused {
  static override readonly code: string = "wrong_method";
}

/** A body in a form that is not taken there. */
export class UnsupportedMedia extends Refused {
  static override readonly code: string = "unsupported_media";
}

/** The body did not come in time. */
export class TooSlow extends Refused {
  static override readonly code: string = "too_slow";
}

/** Too many requests of this tenant wait already. */
export class QueueFull extends Refused {
  static override readonly code: string = "queue_full";
}

/** Too many requests wait already, from all callers. */
export class Overloaded extends QueueFull {
  static override readonly code: string = "overloaded";
}

/** A server stopped the work: its caller has gone, and nothing was written. */
export class Stopped extends MunimentError {
  static override readonly code: string = "stopped";
}

/** It was not finished in its time limit. */
export class DeadlineExceeded extends Stopped {
  static override readonly code: string = "deadline_exceeded";
}

/** It was here and has been erased; carries the receipt's id. */
export class Forgotten extends MunimentError {
  static override readonly code: string = "forgotten";
}

/** Stored bytes are not what they were. */
export class IntegrityFailure extends MunimentError {
  static override readonly code: string = "integrity_failure";
}

/** A link of a session's hash chain does not hold. */
export class ChainBroken extends IntegrityFailure {
  static override readonly code: string = "chain_broken";
}

/** The data read differ from those written; names the entry or item, and the remedy. */
export class StoreDamaged extends IntegrityFailure {
  static override readonly code: string = "store_damaged";
}

/** A blob does not hash to its name. */
export class BlobCorrupt extends StoreDamaged {
  static override readonly code: string = "blob_corrupt";
}

/** Quoted text is not in the bytes it points to. */
export class QuoteMismatch extends IntegrityFailure {
  static override readonly code: string = "quote_mismatch";
}

/** A file of a run directory is not what the store holds. */
export class ArtifactEdited extends IntegrityFailure {
  static override readonly code: string = "artifact_edited";
}

/** The outside world failed; nothing was half-written. */
export class StorageFailure extends MunimentError {
  static override readonly code: string = "storage_failure";
}

/** Another writer held the lock past the deadline. */
export class StorageBusy extends StorageFailure {
  static override readonly code: string = "storage_busy";
}

/** The file or server refuses writes. */
export class StorageReadOnly extends StorageFailure {
  static override readonly code: string = "storage_read_only";
}

/** No space left. */
export class StorageFull extends StorageFailure {
  static override readonly code: string = "storage_full";
}

/** The connection broke; the outcome of the call is unknown. */
export class StorageLost extends StorageFailure {
  static override readonly code: string = "storage_lost";
}

/** The file is something else. */
export class NotADatabase extends StorageFailure {
  static override readonly code: string = "not_a_database";
}

/** Written by a newer or altered muniment. */
export class SchemaMismatch extends StorageFailure {
  static override readonly code: string = "schema_mismatch";
}

/** An embedding server failed; nothing was stored. */
export class EmbedderFailure extends MunimentError {
  static override readonly code: string = "embedder_failure";
}

/** No answer, through every attempt. */
export class EmbedderUnreachable extends EmbedderFailure {
  static override readonly code: string = "embedder_unreachable";
}

/** A refusal. */
export class EmbedderRefused extends EmbedderFailure {
  static override readonly code: string = "embedder_refused";
}

/** An answer other than the requested vectors. */
export class EmbedderMalformed extends EmbedderFailure {
  static override readonly code: string = "embedder_malformed";
}

/** A model server failed; nothing was proposed. */
export class ModelFailure extends MunimentError {
  static override readonly code: string = "model_failure";
}

/** No answer, through every attempt. */
export class ModelUnreachable extends ModelFailure {
  static override readonly code: string = "model_unreachable";
}

/** A refusal. */
export class ModelRefused extends ModelFailure {
  static override readonly code: string = "model_refused";
}

/** An answer of the wrong form. */
export class ModelMalformed extends ModelFailure {
  static override readonly code: string = "model_malformed";
}

/** Nothing was run: neither in a sandbox nor, ever, outside of one. */
export class SandboxFailure extends MunimentError {
  static override readonly code: string = "sandbox_failure";
}

/** A requirement is missing, or unavailable on this machine. */
export class SandboxUnavailable extends SandboxFailure {
  static override readonly code: string = "exec_unavailable";
}

/** The system or the policy refuses. */
export class SandboxDenied extends SandboxFailure {
  static override readonly code: string = "sandbox_denied";
}

/** Learning from a run failed by a defect or a plug-in; its judgement is kept. */
export class LearningFailed extends MunimentError {
  static override readonly code: string = "learning_failed";
}

/** The process that carried out a long work ended before the work did. */
export class Interrupted extends MunimentError {
  static override readonly code: string = "interrupted";
}

/** A model answered, and its answer could not be recorded; carries it. */
export class AnswerNotRecorded extends MunimentError {
  static override readonly code: string = "answer_not_recorded";
}

/** Used after close(). */
export class Closed extends MunimentError {
  static override readonly code: string = "closed";
}

/** An extra is not installed. */
export class MissingDependency extends MunimentError {
  static override readonly code: string = "missing_dependency";
}
