"""The numbers and switches of the ground, as one frozen record whose hash can be cited. Units stand last in names."""

from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from muniment.core.canonical import Written, canonical_text, digest_of
from muniment.core.policy.compaction import CompactionPolicy
from muniment.core.policy.compose import ComposePolicy
from muniment.core.policy.documents import CorpusPolicy
from muniment.core.policy.flow_map import FlowMapPolicy
from muniment.core.policy.learning import LearnPolicy
from muniment.core.policy.memory import MemoryPolicy
from muniment.core.policy.patterning import PatterningPolicy
from muniment.core.policy.recall import RecallPolicy
from muniment.core.policy.research import ResearchPolicy
from muniment.core.policy.rollouts import RolloutPolicy
from muniment.core.policy.routing import RoutePolicy
from muniment.core.policy.rules import RulePolicy
from muniment.core.policy.tree_search import TreePolicy
from muniment.core.policy.verify import FactCheckPolicy
from muniment.core.record import Integer, Record

__all__ = ["LedgerPolicy", "Policy"]

Positive = Annotated[Integer, Field(ge=1)]


class LedgerPolicy(Record):
    """What the door of the ledger does."""

    redact_secrets: bool = True  # LG-10
    """Replace keys, tokens and card numbers before anything is hashed or stored."""
    flag_instructions: bool = True  # LG-08
    """Flag text from tools and outside that reads like instructions."""
    inline_bytes_max: Positive = 64 * 1024  # LG-09
    """Content over this lies in a blob."""
    content_bytes_max: Positive = 32 * 1024 * 1024
    """Content over this is refused."""
    body_bytes_max: Positive = 1024 * 1024
    """Metadata, tags, entities and tool arguments together, as canonical JSON."""
    analysis_chars_max: Positive = 64 * 1024
    """Characters of an event that are analysed for sentences, dates, names and facts. What stands behind them is stored
    and found by its words."""
    analysis_pieces_max: Positive = 4_096
    """Sentences, clauses and lines of an event that are analysed; the rest is stored and found by its words."""
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

    @classmethod
    def from_earlier(cls, value: dict[str, Any]) -> Self:
        """A policy as some version wrote it, less the settings that this one does not have."""
        return cls.from_wire(_known_settings(cls, value))

    @cached_property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))

    @cached_property
    def written(self) -> Written:
        """`to_wire` as canonical JSON: it is stored with every build."""
        return Written(canonical_text(self.to_wire()))


def _known_settings(record: type[Record], value: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name in value.keys() & record.model_fields.keys():
        kind, setting = record.model_fields[name].annotation, value[name]
        if isinstance(kind, type) and issubclass(kind, Record) and isinstance(setting, dict):
            setting = _known_settings(kind, setting)
        known[name] = setting
    return known
