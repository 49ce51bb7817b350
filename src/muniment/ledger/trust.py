"""Trust: where words come from, how it travels, and words that try to give orders (LG-08)."""

from __future__ import annotations

import re

from muniment.errors import InvalidInput
from muniment.records.entry import TRUST_ORDER, Role, Trust
from muniment.semantics.trust import TRUST_RANK

__all__ = ["reads_like_instructions", "trust_of"]

_BY_ROLE: dict[Role, Trust] = {
    "user": "user",
    "system": "user",
    "developer": "user",
    "assistant": "assistant",
    "tool": "tool",
}

# Read over the text in lower case: (words of which one must stand in the text at all, what is then looked for).
# Every repetition is bounded: what comes from outside must not be able to choose how long we look at it.
_ORDERS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (tuple(hints.split()), re.compile(pattern, re.VERBOSE | re.MULTILINE))
    for hints, pattern in (
        (
            "ignore disregard forget override bypass",
            r"""(?:ignore|disregard|forget|override|bypass) \s{1,4} (?:[\w'’-]{1,40}\s{1,4}){0,4}?
                (?:previous|prior|earlier|above|preceding|all|your|any|the) \s{1,4} (?:[\w'’-]{1,40}\s{1,4}){0,3}?
                (?:instructions?|prompts?|rules?|guidelines?|directions?|messages?|context) \b""",
        ),
        (
            "instruction",
            r"""(?:new|updated|important|urgent) \s{1,4} (?:system\s{1,4})? instructions? \s?
                (?: : | for \s (?:you|the\s(?:ai|assistant|agent|model)) )""",
        ),
        (
            "you pretend",
            r"""(?:you\sare\snow|from\snow\son\s?,?\s?you|pretend\s(?:to\sbe|you\sare)
                |act\sas\s(?:if|though)\syou) \b""",
        ),
        (
            "prompt instruction",
            r"""(?:reveal|print|repeat|show|output|leak) \s{1,4} (?:[\w'’-]{1,40}\s{1,4}){0,3}?
                (?:system\sprompt|hidden\sprompt|initial\sprompt|your\sinstructions)""",
        ),
        (
            "user human operator anyone",
            r"""(?:do\snot|don't|never) \s (?:tell|inform|mention\s(?:this\s)?to|alert|notify) \s
                (?:[\w'’-]{1,40}\s{1,4}){0,2}? (?:user|human|operator|anyone) \b""",
        ),
        (
            "password credential secret key token conversation",
            r"""(?:send|forward|upload|post|exfiltrate|email|transmit) \s{1,4} (?:[\w'’-]{1,40}\s{1,4}){0,6}?
                (?:password|credential|secret|api\skey|token|private\skey|conversation) s?""",
        ),
        (
            "system instruction im_start im_end [inst] [/inst]",
            r"""<\s{0,4}/?\s{0,4}(?:system|instructions?|im_start|im_end)\s{0,4}> | <\|im_(?:start|end)\|> | \[/?inst\]
                | ^[ \t]{0,8} (?:\#{2,6}[ \t]{0,4})? system [ \t]{0,4} (?:prompt|message)? [ \t]{0,4} :""",
        ),
        (
            "must should shall has need",
            r"""\b (?:ai|assistant|agent|model) \s (?:must|should|shall|has\sto|needs?\sto) \s
                (?:now|immediately|always|instead|not) \b""",
        ),
        (
            "忽略 无视 忘记 忘掉 不要理会",
            r"""(?:忽略|无视|忘记|忘掉|不要理会) \S{0,8}? (?:之前|以上|先前|上述|所有|前面|你的) \S{0,6}?
                (?:指令|指示|提示|规则|命令|要求|设定)""",
        ),
        (
            "你现在是 从现在 系统提示 不要告诉用户",
            r"""你现在是 | 从现在(?:起|开始)[,，]?你 | 系统提示词?[:：]
                | (?:输出|泄露|显示)(?:你的)?系统提示 | 不要告诉用户""",
        ),
        (
            "무시 잊",
            r"""(?:이전|위의|앞의|기존|모든) \s? (?:\S{0,6}\s?){0,2}
                (?:지시|지침|명령|규칙|프롬프트) (?:\S{0,4}\s?){0,2} (?:무시|잊)""",
        ),
        (
            "지금부터 시스템 사용자에게",
            r"""지금부터\s(?:너는|당신은) | 시스템\s?프롬프트 | 사용자에게\s(?:말하지|알리지)\s?(?:마|말)""",
        ),
    )
)


def trust_of(role: Role, claimed: Trust | None) -> Trust:
    """The trust the role gives, or a lower one that the caller claims."""
    given = _BY_ROLE[role]
    if claimed is None:
        return given
    if TRUST_RANK[claimed] < TRUST_RANK[given]:
        raise InvalidInput(
            f"the role {role!r} has trust {given!r}; a caller can lower it, not raise it to {claimed!r}",
            path="$.trust",
            hint=f"leave trust out, or give one of {', '.join(TRUST_ORDER[TRUST_RANK[given] :])}",
        )
    return claimed


def reads_like_instructions(text: str) -> bool:
    """Does the text address the model and tell it what to do? A flag to look at, not a verdict."""
    lowered = text.lower()
    return any(
        any(hint in lowered for hint in hints) and pattern.search(lowered) is not None for hints, pattern in _ORDERS
    )
