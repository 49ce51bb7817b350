"""How attempts at one task differ (RC-20): drawn from a seed, so that the same seed gives the same attempts.

`kroll` attempts are plain: the same prompt, another seed and temperature for whoever samples. `matts` attempts are made
to contrast: each differs from the one before in where it starts, how it plans, in which order it takes its tools, and
whether it goes over its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from muniment.contracts.runs import RunConfig
from muniment.core.canonical import digest
from muniment.core.policy import RolloutPolicy

__all__ = ["PLAN_STYLES", "SEED_PROMPTS", "draw_config", "way_of"]

T = TypeVar("T")

SEED_PROMPTS = (
    "Start from what is asked for in the end.",
    "Start from what is given.",
    "Start from what most often goes wrong.",
    "Start from the simplest case that could work.",
)
PLAN_STYLES = {
    "direct": "Answer at once, then check the answer.",
    "stepwise": "Make a short plan and follow it step by step.",
    "backward": "Work backwards from the goal.",
    "alternatives": "Weigh two different ways and take the better one.",
}
"""What a plan is called in a run's settings, and what the agent is told."""
_SEED_BITS = 32
_ORDER_SIGN = ">"


def draw_config(mode: str, seed: str, number: int, policy: RolloutPolicy, tools: Sequence[str] = ()) -> RunConfig:
    """The settings of one attempt of a group; `number` counts them from 0."""
    drawn: dict[str, object] = {
        "temperature": _turn(policy.temperatures, seed, number, "temperature"),
        "seed": _number(seed, f"seed:{number}") % 2**_SEED_BITS,
    }
    if mode == "matts":
        drawn |= {
            "seed_prompt": _turn(SEED_PROMPTS, seed, number, "seed_prompt"),
            "plan_style": _turn(tuple(PLAN_STYLES), seed, number + number // len(SEED_PROMPTS), "plan_style"),
            "self_refine_steps": (number + _number(seed, "refine")) % (policy.refines_max + 1),
        }
        if len(tools) > 1:
            drawn["tool_order"] = _ORDER_SIGN.join(_shuffled(tools, seed, number))
    return RunConfig.from_wire({key: value for key, value in drawn.items() if value is not None})


def way_of(config: RunConfig | None) -> str:
    """What an agent is told of its settings: nothing, where they are for its sampler alone."""
    if config is None:
        return ""
    order = config.tool_order
    lines = [
        config.seed_prompt or "",
        PLAN_STYLES.get(config.plan_style or "", ""),
        f"Try the tools in this order: {', '.join(order.split(_ORDER_SIGN))}." if order else "",
    ]
    return " ".join(line for line in lines if line)


def _turn(choices: Sequence[T], seed: str, number: int, axis: str) -> T | None:
    """Attempts take turns through the choices, from a place that the seed draws: neighbours never agree."""
    return choices[(_number(seed, axis) + number) % len(choices)] if choices else None


def _shuffled(names: Sequence[str], seed: str, number: int) -> list[str]:
    return sorted(dict.fromkeys(names), key=lambda name: (_number(seed, f"order:{number}:{name}"), name))


def _number(seed: str, axis: str) -> int:
    return int.from_bytes(digest(f"{seed}\n{axis}".encode("utf-8", "surrogatepass"))[:8])
