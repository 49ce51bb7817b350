"""Artifacts of a run: its event log, verdicts, trace capsules, rollout summaries, and sandbox actions (Rulecraft
v0.5.15).
"""

from typing import Literal

from muniment.contracts.learning import Puct, Reward
from muniment.core.record import Absent, Confidence, Integer, Items, JsonObject, Number, OpenRecord, RulecraftRecord
from muniment.core.scope import Network, Outcome, SandboxTool, Verdict

# -- runs, verdicts and traces --------------------------------------------------------------------------


# -- verification -------------------------------------------------------------------------------------


class VerifierScores(OpenRecord):
    """Side scores of a verification."""

    holdout_score: Number | None = None
    safety_score: Number | None = None


class VerifierResult(RulecraftRecord):  # RC-01
    """One verification of one answer. Whether it is a PASS is worked out by one function, never a field."""

    verifier_id: str
    verdict: Verdict
    outcome: Outcome
    score: Confidence | None = None
    score_method: Literal["yes_logit", "pairwise_rank", "rule_check", "hybrid"] | None = None
    score_evidence: JsonObject | None = None
    failure_cluster_id: str | None = None
    notes: str | None = None
    reason_codes: Items[str] | None = None
    violated_constraints: Items[str] | None = None
    fgfc: JsonObject | None = None
    scores: Absent[VerifierScores] = None


class FGFCEvidence(OpenRecord):
    """Where a unit's verdict comes from."""

    source: Absent[Literal["x_ref", "artifact", "tool"]] = None
    ref: Absent[str] = None
    quote: str | None = None


class FGFCUnit(OpenRecord):
    """One sentence or atomic claim, judged."""

    unit_id: Absent[str] = None
    text: Absent[str] = None
    verdict: Absent[Literal["SUPPORTED", "REFUTED", "NOT_ENOUGH_INFO"]] = None
    error_type: Literal["PredE", "EntE", "CircE", "CorefE", "LinkE", "OutE"] | None = None
    evidence: Absent[Items[FGFCEvidence]] = None
    justification: str | None = None
    correction: str | None = None


class FGFCOverall(OpenRecord):
    """How many units of each verdict."""

    supported: Integer | None = None
    refuted: Integer | None = None
    nei: Integer | None = None


class FGFCMetrics(OpenRecord):
    """Figures of an evaluation, mostly offline."""

    sar: Number | None = None
    strict_acc: Number | None = None


class FGFCReport(RulecraftRecord):  # RC-17
    """A fine-grained fact check: where an answer is wrong, how, and by what evidence."""

    mode: Absent[Literal["infi_check_v1"]] = None
    unitization: Absent[Literal["sentence", "atomic_claim"]] = None
    units: Absent[Items[FGFCUnit]] = None
    overall: Absent[FGFCOverall] = None
    metrics: Absent[FGFCMetrics] = None


# -- rollouts -----------------------------------------------------------------------------------------


class RolloutRepr(OpenRecord):
    """Where the summary stands in representation space."""

    encoder_id: str | None = None
    dim: Integer | None = None
    summary_vec_id: str | None = None


class VerifierMirror(OpenRecord):
    """The verifier's word at the time of the summary."""

    verdict: Absent[Verdict] = None
    outcome: Absent[Outcome] = None


class CompactionPolicy(OpenRecord):
    """How a rollout was summarised. Nothing to do with a run's snapshots."""

    max_tokens: Integer | None = None
    forbid_cot: bool
    format: str | None = None


class RolloutSummary(RulecraftRecord):  # RC-20
    """One attempt in a few lines; synthesis reads these and nothing else."""

    summary_id: str
    trace_id: str
    answer: str
    key_reasoning: Items[str]
    assumptions: Absent[Items[str]] = None
    checks: Absent[Items[str]] = None
    confidence: Absent[Confidence] = None
    verifier_score: Number | None = None
    selection_score: Number | None = None
    repr: Absent[RolloutRepr] = None
    verifier_mirror: Absent[VerifierMirror] = None
    compaction_policy: Absent[CompactionPolicy] = None


# -- event log ----------------------------------------------------------------------------------------


class PolicySignals(OpenRecord):
    """What the router and the flow map saw."""

    risk_score: Number | None = None
    opp_score: Number | None = None
    efficiency: Number | None = None


class SelectedRuleMirror(OpenRecord):
    """A rule that was selected; `type` is an open string here."""

    rule_id: Absent[str] = None
    version: Absent[str] = None
    type: Absent[str] = None


class ExperimentBlock(OpenRecord):
    """Which experiment the run was part of."""

    kind: Literal["policy_search", "execution_eval", "rule_evolve", "scaling_law"] | None = None
    harness_id: str | None = None
    idea_id: str | None = None
    search_epoch: Integer | None = None
    population_id: str | None = None
    parent_ids: Items[str] | None = None
    mutation_ops: Items[str] | None = None
    exec_ok: bool | None = None
    exec_failure_class: str | None = None
    reward: Absent[Reward] = None


class ReuseSelectBlock(OpenRecord):
    """Which seed the run started from. `ReuseSelectMeta` is the same as a record of its own."""

    enabled: bool | None = None
    policy: str | None = None
    selected_state_id: str | None = None
    selected_score: Number | None = None
    puct: Absent[Puct] = None


class TreeSearchBlock(OpenRecord):  # RC-22
    """What a guided tree search did."""

    enabled: bool | None = None
    algo: str | None = None
    node_expanded: Integer | None = None
    depth_max: Integer | None = None
    frontier_max: Integer | None = None
    best_node_ref: str | None = None
    notes: str | None = None


class PraxisBlock(OpenRecord):
    """Conditional tactics retrieved and used."""

    enabled: bool | None = None
    policy: str | None = None
    retrieved_tactic_ids: Items[str] | None = None
    used_tactic_ids: Items[str] | None = None
    top_scores: Items[Number] | None = None
    notes: str | None = None


class MemoryRecallBlock(OpenRecord):  # RC-08
    """What a recall brought and what of it was used."""

    enabled: bool | None = None
    method: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    sources: Items[str] | None = None
    retrieved_ids: Items[str] | None = None
    used_ids: Items[str] | None = None
    top_scores: Items[Number] | None = None
    notes: str | None = None


class MemoryFoldBlock(OpenRecord):
    """What a fold produced; `trigger_kind` is an open string here."""

    enabled: bool | None = None
    fold_id: str | None = None
    trigger_kind: str | None = None
    ws_id: str | None = None
    produced_reasoning_ids: Items[str] | None = None
    produced_rule_draft_ids: Items[str] | None = None
    produced_reuse_state_ids: Items[str] | None = None
    action_plan_id: str | None = None
    action_record_ids: Items[str] | None = None
    notes: str | None = None


class MemoryActionsBlock(OpenRecord):
    """Which memory actions were applied."""

    enabled: bool | None = None
    plan_id: str | None = None
    op_ids: Items[str] | None = None
    notes: str | None = None


class RunConfig(OpenRecord):
    """What was jittered."""

    seed_prompt: str | None = None
    tool_order: str | None = None
    temperature: Number | None = None
    plan_style: str | None = None
    self_refine_steps: Integer | None = None


class RunBlock(OpenRecord):
    """How the run was carried out. The block may be missing, its mode not."""

    mode: Literal["main", "sot", "matts", "kroll", "synth", "tree"]
    cfg: Absent[RunConfig] = None


class SandboxBlock(OpenRecord):
    """What happened in the sandbox, in counts."""

    enabled: bool | None = None
    image_id: str | None = None
    network: Network | None = None
    allowlist: Items[str] | None = None
    turns: Integer | None = None
    actions_n: Integer | None = None
    files_read_n: Integer | None = None
    files_written_n: Integer | None = None
    external_fetch_n: Integer | None = None
    exec_fail_n: Integer | None = None
    traces_ref: Items[str] | None = None


class SynthInputs(OpenRecord):
    """What a synthesis read."""

    used_trace_ids: Items[str] | None = None
    used_summary_ids: Items[str] | None = None


class RunOutputs(OpenRecord):
    """What the run gave, by reference."""

    y_ref: str | None = None
    rollout_summary: RolloutSummary | None = None
    sot_signals: JsonObject | None = None
    synth_inputs: Absent[SynthInputs] = None


class EventLogVerifier(OpenRecord):
    """A mirror of the VerifierResult, as open strings."""

    verifier_id: Absent[str] = None
    verdict: Absent[str] = None
    outcome: Absent[str] = None


class RunCost(OpenRecord):
    """What the run cost."""

    latency_ms: Integer | None = None
    tokens_in: Integer | None = None
    tokens_out: Integer | None = None
    tool_calls: Integer | None = None


class RolloutSelectBlock(OpenRecord):
    """Which of K rollouts were chosen."""

    rollouts_n: Integer | None = None
    top_m: Integer | None = None
    selection_method: str | None = None
    selected_summary_ids: Items[str] | None = None
    diversity_score: Number | None = None


class ReprBlock(OpenRecord):
    """References into representation space."""

    encoder_id: str | None = None
    dim: Integer | None = None
    x_vec_id: str | None = None
    y0_vec_id: str | None = None
    summary_vec_ids: Items[str] | None = None


class EventLog(RulecraftRecord):  # RC-12, RC-27
    """The summary of one run, joined to its TraceCapsule by trace_id."""

    trace_id: str
    x_ref: str
    bucket_key: Absent[str] = None
    flow_tags: Items[str] | None = None
    policy_signals: Absent[PolicySignals] = None
    selected_rules: Items[SelectedRuleMirror]
    experiment: Absent[ExperimentBlock] = None
    reuse_select: Absent[ReuseSelectBlock] = None
    tree_search: Absent[TreeSearchBlock] = None
    praxis: Absent[PraxisBlock] = None
    memory_recall: Absent[MemoryRecallBlock] = None
    memory_fold: Absent[MemoryFoldBlock] = None
    memory_actions: Absent[MemoryActionsBlock] = None
    run: Absent[RunBlock] = None
    sandbox: Absent[SandboxBlock] = None
    sot_profile: str | None = None
    sot_max_turns: Integer | None = None
    outputs: Absent[RunOutputs] = None
    verifier: EventLogVerifier
    cost: Absent[RunCost] = None
    rollout_select: Absent[RolloutSelectBlock] = None
    repr: Absent[ReprBlock] = None


# -- trace --------------------------------------------------------------------------------------------


class TraceRefs(OpenRecord):
    """Where the originals lie."""

    x_ref: str | None = None
    injection_ref: str | None = None
    tool_trace_refs: Items[str] | None = None
    y_ref: str | None = None
    verifier_ref: str | None = None


class TraceCapsule(RulecraftRecord):  # RC-12
    """The context of a run, in references and not in text."""

    trace_id: str
    created_at: str
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    refs: Absent[TraceRefs] = None
    used_memory_ids: Items[str] | None = None
    used_rule_ids: Items[str] | None = None
    notes: str | None = None


# -- sandboxes ------------------------------------------------------------------------------------------


class SandboxCaps(OpenRecord):
    """Limits of a sandboxed run."""

    max_turns: Integer | None = None
    wall_ms: Integer | None = None
    cpu_ms: Integer | None = None
    mem_mb: Integer | None = None
    disk_mb: Integer | None = None


class SandboxPolicy(RulecraftRecord):
    """What a sandbox is and may do."""

    enabled: Absent[bool] = None
    image_id: str | None = None
    network: Absent[Network] = None
    allowlist: Items[str] | None = None
    caps: Absent[SandboxCaps] = None
    toolset: Absent[Items[SandboxTool]] = None
    workdir: str | None = None


class ActionObservation(OpenRecord):
    """What an action gave back; digests, not text."""

    ok: bool
    exit_code: Integer | None = None
    stdout_digest: str | None = None
    stderr_digest: str | None = None
    error_class: str | None = None


class ActionIo(OpenRecord):
    """Files an action read and wrote."""

    files_read: Items[str] | None = None
    files_written: Items[str] | None = None
    bytes_read: Integer | None = None
    bytes_written: Integer | None = None


class ActionNet(OpenRecord):
    """What an action fetched."""

    used: bool | None = None
    fetch_n: Integer | None = None
    domains: Items[str] | None = None


class SandboxActionTrace(RulecraftRecord):
    """One action in the sandbox; `args` are redacted before they stand here."""

    trace_id: str
    action_id: str
    turn: Integer
    tool: SandboxTool
    args: Absent[JsonObject] = None
    obs: Absent[ActionObservation] = None
    io: Absent[ActionIo] = None
    net: Absent[ActionNet] = None
