"""Trust: where words come from, how it travels, and words that try to give orders (LG-08)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from muniment.errors import InvalidInput
from muniment.records.entry import TRUST_ORDER, Role, Trust

__all__ = ["lowest_trust", "reads_like_instructions", "trust_of"]

_RANK = {level: rank for rank, level in enumerate(TRUST_ORDER)}
_BY_ROLE: dict[Role, Trust] = {
    "user": "user",
    "system": "user",
    "developer": "user",
    "assistant": "assistant",
    "tool": "tool",
}

_INSTRUCTIONS = re.compile(
    r"""(?ix)
    (?:ignore|disregard|forget|override|bypass)\s(?:\w+\s){0,4}?(?:previous|prior|earlier|above|preceding|all|your|any|the)
        \s(?:\w+\s){0,3}?(?:instructions?|prompts?|rules?|guidelines?|directions?|messages?|context)
    | (?:new|updated|important|urgent)\s(?:system\s)?instructions?\s?(?::|for\s(?:you|the\s(?:ai|assistant|agent|model)))
    | (?:you\sare\snow|from\snow\son\s,?\s?you|pretend\s(?:to\sbe|you\sare)|act\sas\s(?:if|though)\syou)
    | (?:reveal|print|repeat|show|output|leak)\s(?:\w+\s){0,3}?(?:system\sprompt|hidden\sprompt|initial\sprompt|your\sinstructions)
    | (?:do\snot|don't|never)\s(?:tell|inform|mention\s(?:this\s)?to|alert|notify)\s(?:\w+\s){0,2}?(?:user|human|operator|anyone)
    | (?:send|forward|upload|post|exfiltrate|email|transmit)\s(?:\w+\s){0,6}?(?:password|credential|secret|api\skey|token|private\skey|conversation)s?
    | <\s*/?\s*(?:system|instructions?|im_start|im_end)\s*>|<\|im_(?:start|end)\|>|\[/?INST\]|^\s*(?:\#{2,}\s*)?system\s*(?:prompt|message)?\s*:
    | (?:the\s)?(?:ai|assistant|agent|model)\s(?:must|should|shall|has\sto|needs?\sto)\s(?:now|immediately|always|instead|not)
    | (?:忽略|无视|忘记|忘掉|不要理会)(?:\S{0,8}?)(?:之前|以上|先前|上述|所有|前面|你的)(?:\S{0,6}?)(?:指令|指示|提示|规则|命令|要求|设定)
    | (?:你现在是|从现在(?:起|开始)[,，]?你|系统提示(?:词)?[:：]|(?:输出|泄露|显示)(?:你的)?系统提示|不要告诉用户)
    | (?:이전|위의|앞의|기존|모든)\s?(?:\S{0,6}\s?){0,2}(?:지시|지침|명령|규칙|프롬프트)(?:\S{0,4}\s?){0,2}(?:무시|잊)
    | (?:지금부터\s(?:너는|당신은)|시스템\s?프롬프트|사용자에게\s(?:말하지|알리지)\s?(?:마|말))
    """,
    re.MULTILINE,
)


def trust_of(role: Role, claimed: Trust | None) -> Trust:
    """The trust the role gives, or a lower one that the caller claims."""
    given = _BY_ROLE[role]
    if claimed is None:
        return given
    if _RANK[claimed] < _RANK[given]:
        raise InvalidInput(
            f"the role {role!r} has trust {given!r}; a caller can lower it, not raise it to {claimed!r}",
            path="$.trust",
            hint=f"leave trust out, or give one of {', '.join(TRUST_ORDER[_RANK[given] :])}",
        )
    return claimed


def lowest_trust(levels: Iterable[Trust]) -> Trust:
    """What an item derived from sources of these levels may claim; with no source, the lowest."""
    return max(levels, key=_RANK.__getitem__, default=TRUST_ORDER[-1])


def reads_like_instructions(text: str) -> bool:
    """Does the text address the model and tell it what to do? A flag to look at, not a verdict."""
    return _INSTRUCTIONS.search(text) is not None
