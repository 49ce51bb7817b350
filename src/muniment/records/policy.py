"""The numbers and switches of the ground, as one frozen record whose hash can be cited. Units stand last in names."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from muniment.records.base import Integer, Record
from muniment.records.compaction_policy import CompactionPolicy
from muniment.records.compose_policy import ComposePolicy
from muniment.records.corpus_policy import CorpusPolicy
from muniment.records.flow_policy import FlowMapPolicy
from muniment.records.learn_policy import LearnPolicy
from muniment.records.memory_policy import MemoryPolicy
from muniment.records.patterning_policy import PatterningPolicy
from muniment.records.recall_policy import RecallPolicy
from muniment.records.research_policy import ResearchPolicy
from muniment.records.rollout_policy import RolloutPolicy
from muniment.records.route_policy import RoutePolicy
from muniment.records.rule_policy import RulePolicy
from muniment.records.tree_policy import TreePolicy
from muniment.records.verify_policy import FactCheckPolicy
from muniment.text.canonical import Written, canonical_text
from muniment.text.hashing import digest_of

__all__ = ["LedgerPolicy", "Policy"]

Positive = Annotated[Integer, Field(ge=1)]


class LedgerPolicy(Record):
    """What the door of the ledger does."""

    redact_secrets: bool = True
    """Replace keys, tokens and card numbers before anything is hashed or stored (LG-10)."""
    flag_instructions: bool = True
    """Flag text from tools and outside that reads like instructions (LG-08)."""
    inline_bytes_max: Positive = 64 * 1024
    """Content over this lies in a blob (LG-09)."""
    content_bytes_max: Positive = 32 * 1024 * 1024
    """Content over this is refused."""
    body_bytes_max: Positive = 1024 * 1024
    """Metadata, tags, entities and tool arguments together, as canonical JSON."""
    batch_entries_max: Positive = 100_000
    """Entries in one `observe_many`, which is one transaction."""
    index_turns: bool = True
    """Index messages and tool results as they are written, so that `search` finds them."""
    clock_back_ms_max: Annotated[Integer, Field(ge=0)] = 300_000
    """How far the clock may step back within a session before we refuse; less is held."""


class Policy(Record):
    """Everything that can be tuned. `policy_id` names it, `digest` pins it."""

    policy_id: str = "default"
    schema_version: Literal["policy.v1"] = "policy.v1"
    ledger: LedgerPolicy = LedgerPolicy.model_construct()
    memory: MemoryPolicy = MemoryPolicy.model_construct()
    recall: RecallPolicy = RecallPolicy.model_construct()
    compose: ComposePolicy = ComposePolicy.model_construct()
    corpus: CorpusPolicy = CorpusPolicy.model_construct()
    compaction: CompactionPolicy = CompactionPolicy.model_construct()
    verify: FactCheckPolicy = FactCheckPolicy.model_construct()
    research: ResearchPolicy = ResearchPolicy.model_construct()
    learn: LearnPolicy = LearnPolicy.model_construct()
    rules: RulePolicy = RulePolicy.model_construct()
    rollout: RolloutPolicy = RolloutPolicy.model_construct()
    route: RoutePolicy = RoutePolicy.model_construct()
    flow: FlowMapPolicy = FlowMapPolicy.model_construct()
    tree: TreePolicy = TreePolicy.model_construct()
    patterning: PatterningPolicy = PatterningPolicy.model_construct()

    @cached_property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))

    @cached_property
    def written(self) -> Written:
        """`to_wire` as canonical JSON: it is stored with every build."""
        return Written(canonical_text(self.to_wire()))
