"""What is wrong with a rule's words: disguises, orders, links, cheating, and what the policy forbids.

A text is read as it stands and as it looks: composed, without what nobody sees, with look-alike letters as the letters
they look like. Every repetition in a pattern is bounded: a draft cannot choose how long it is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple
from unicodedata import category, name, normalize

from muniment.core.text.patterns import lazy_pattern
from muniment.rules.promotion.records import LintFinding
from muniment.rules.rulebook.findings import finding

__all__ = ["Checks", "as_it_looks", "word_findings"]


class Checks(NamedTuple):
    """What other rooms know of texts, handed in."""

    reads_like_instructions: Callable[[str], bool]
    find_secret: Callable[[str], str | None]
    """The kind of secret that a text holds, if it holds one."""
    forbidden: tuple[str, ...] = ()


_HIDDEN = frozenset(
    [
        *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, 0x2800),
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),
        *range(0x2028, 0x202F),
        *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFFC),
        *range(0xE0000, 0xE1000),
    ]
)
"""Zero width, bidirectional, invisible, variation selectors, tags."""
_JOINING = frozenset("\u200c\u200d\ufe0e\ufe0f")
_PLAIN = frozenset("\n\t")
_LOOKS = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнАВЕКМНОРСТУХІЈЅονρικταΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwkmtbhABEKMHOPCTYXIJSovpiktaABEZHIKMNOPTYX",
)
_FOREIGN = frozenset(chr(code) for code in _LOOKS)
_WORD = lazy_pattern(r"[^\W\d_]{2,}")
_LATIN = lazy_pattern("[A-Za-z\u00c0-\u024f]")
_OPAQUE = lazy_pattern(r"[A-Za-z0-9+/=_-]{100}")
_ROLE = lazy_pattern(
    r"(?m)<\|[a-z_]{1,32}\|>|</?(?:assistant|user|human|developer|tool)>"
    r"|^[ \t>#*-]{0,8}(?:assistant|user|human|developer|system)[ \t]{0,4}:"
)
_LINK = lazy_pattern(
    r"\b(?:https?|ftp|wss?|file|data|javascript|vbscript):[^\s<>\"')\]]{1,2000}|\bwww\.[^\s<>\"')\]]{2,2000}"
)
_CARRIES = lazy_pattern(
    r"^(?:file|data|javascript|vbscript|wss?|ftp):|[?{}$@]|%7b|//(?:\d{1,3}\.){3}\d{1,3}\b|//\[|//(?:0x|\d{8})"
    r"|\b(?:webhook|ngrok|requestbin|pastebin|burpcollaborator|interact\.sh)"
)
_MAILBOX = lazy_pattern(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_HOST = lazy_pattern(
    r"\b(?:[a-z0-9-]{1,63}\.){1,4}(?:com|net|org|io|co|ai|dev|app|xyz|info|biz|ru|cn|kr|jp|de|uk|fr|in|me|cc|tv|site|online"
    r"|top|link|click|live|cloud|onion|example|test|invalid|local|localhost)\b(?!\()"
)
_PRIVATE = (
    r"(?:pass(?:word|code|phrase)s?|credentials?|(?:credit\s{1,4}|bank\s{1,4})?card\s{1,4}(?:numbers?|details?)|cvv|pin\s{1,4}(?:numbers?|codes?)"
    r"|api\s{1,4}keys?|access\s{1,4}tokens?|social\s{1,4}security\s{1,4}numbers?|ssns?|account\s{1,4}numbers?|private\s{1,4}keys?)"
)
_COLLECTS = lazy_pattern(
    r"\b(?:keep|store|save|note|collect|record|remember|log|repeat|say|tell|share|send|mail|e-?mail|forward|post|upload|copy"
    r"|include|add|append|write|show|print|disclose)\s{1,4}(?:[\w'’-]{1,40}\s{1,4}){0,5}?" + _PRIVATE
)
_TAKES = (
    r"(?:the\s{1,4})?(?:whole\s{1,4}|full\s{1,4})?(?:conversation|transcript|chat\s{1,4}history|system\s{1,4}prompt"
    r"|what\s{1,4}the\s{1,4}(?:customer|user|client)\s{1,4}(?:said|told|wrote))"
)
_SENDS = lazy_pattern(r"\b(?:send|mail|e-?mail|forward|post|upload|transmit|leak|exfiltrate|copy)\s{1,4}" + _TAKES)
_IMAGE = lazy_pattern(r"!\[[^\]]{0,200}\]\s{0,4}\(|<(?:img|iframe|script|link|object|embed)\b")
_REMOTE = lazy_pattern(
    r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{0,300}\|\s{0,4}(?:sudo\s{1,4})?(?:ba|z|da|k)?sh\b"
    r"|\b(?:ba|z|da|k)?sh\s{1,4}<\(\s{0,4}(?:curl|wget)\b"
    r"|\b(?:eval|exec)\s{0,4}\(\s{0,4}(?:requests\.get|urlopen|fetch|atob|base64)"
    r"|\bbase64\s{1,4}(?:-d|--decode)\b[^\n]{0,100}\|\s{0,4}(?:ba|z|da|k)?sh\b|\brm\s{1,4}-[a-z]{0,4}[rf][a-z]{0,4}\s{1,4}[/~]"
)
_CHECKS = r"(?:tests?|checks?|verifiers?|verification|graders?|validations?|assertions?|linters?|guardrails?|safety)\b"
_SOME = (
    r"(?:(?:the|all|any|every|each|these|those|this|that|its|your|our|failing|failed|slow|flaky|hidden|remaining|other"
    r"|unit|integration|regression|output|format|safety|of)\s{1,4}){0,4}"
)
_GAMES = lazy_pattern(
    r"\b(?:skip|disable|bypass|delete|remove|comment\s{1,4}out|silence|turn\s{1,4}off|stub\s{1,4}out|ignore)\s{1,4}"
    + _SOME
    + _CHECKS
    + r"|\b(?:(?:say|claim|pretend)\s{1,4}(?:that\s{1,4})?|(?:report|state|write|print|answer)\s{1,4}that\s{1,4})"
    + _SOME
    + _CHECKS
    + r"\s{1,4}(?:[\w'’-]{1,40}\s{1,4}){0,2}?(?:pass(?:es|ed)?|succeed(?:s|ed)?|green)\b"
    + r"|\b(?:edit|change|rewrite|weaken|loosen)\s{1,4}"
    + _SOME
    + _CHECKS
    + r"\s{1,4}(?:[\w'’-]{1,40}\s{1,4}){0,4}?pass\b"
    + r"|\bhard-?code\s{1,4}(?:[\w'’-]{1,40}\s{1,4}){0,3}?(?:expected|outputs?|answers?|results?)\b"
)
_INTERNAL = lazy_pattern(
    r"\blook\s{1,4}(?:first\s{1,4})?at\s{1,4}(?:say|ask|answer|call)\b(?!\s{1,4}\w)"
    r"|(?<![\w:/.-])(?:(?:first|recovered|repeat|own|steps):[a-z_]|order:[\w.-]{1,80}>|args:[\w.-]{1,80}\("
    r"|arg:[\w.-]{1,80}=|check:(?:made|none|last)\b|error:left\b)"
    r"|\b(?:trace|run|evt|event|rule|tac|tactic|mem|draft|test|gate|replay|prm|canary|fold|plan|fc)_[0-9a-f]{12,64}\b"
)
"""Steps of ours that are no tool (`say`), features as they are counted (`first:search`), and ids."""
_SAID = ("$.title", "$.body")
_NEGATED = lazy_pattern(
    r"(?:\b(?:do\s{1,4}not|don['’]t|never|must\s{1,4}not|should\s{1,4}not|avoid|without)\b[^.;:\n]{0,40})$"
)


def word_findings(path: str, text: str, checks: Checks) -> Iterator[LintFinding]:
    """What is wrong with one text of a rule."""
    looks = as_it_looks(text)
    lowered = looks.lower()
    yield from _disguises(path, text)
    if any(map(checks.reads_like_instructions, dict.fromkeys((text, looks)))):
        yield finding("injection", path)
    for code, pattern in (("role_marker", _ROLE), ("runs_remote_code", _REMOTE)):
        if (found := pattern.search(lowered)) is not None:
            yield finding(code, path, repr(found[0][:60]))
    if path in _SAID and (found := _INTERNAL.search(lowered)) is not None:
        yield finding("internal_words", path, repr(found[0][:60]))
    if (cheat := _cheat(lowered)) is not None:
        yield finding("games_the_verifier", path, repr(cheat[:80]))
    if (taken := _unless_warned(_COLLECTS, lowered) or _unless_warned(_SENDS, lowered)) is not None:
        yield finding("takes_private_data", path, repr(taken[:80]))
    if (kind := checks.find_secret(text) or checks.find_secret(looks)) is not None:
        yield finding("secret", path, kind)
    if _OPAQUE.search(looks) is not None:
        yield finding("opaque_text", path)
    yield from _links(path, lowered)
    folded = looks.casefold()
    for words in checks.forbidden:
        if as_it_looks(words).casefold() in folded:
            yield finding("forbidden_pattern", path, repr(words[:60]))


def as_it_looks(text: str) -> str:
    """The text as a reader sees it."""
    shown = "".join(char for char in normalize("NFKC", text) if ord(char) not in _HIDDEN)
    return shown.translate(_LOOKS) if not shown.isascii() and _LATIN.search(shown) else shown


def _disguises(path: str, text: str) -> Iterator[LintFinding]:
    controls = sorted({char for char in text if category(char) == "Cc" and char not in _PLAIN})
    if controls:
        yield finding("control_character", path, ", ".join(f"U+{ord(char):04X}" for char in controls[:4]))
    hidden = sorted({char for before, char in pairwise(f" {text}") if _is_hidden(before, char)})
    if hidden:
        yield finding("hidden_character", path, ", ".join(map(_character_name, hidden[:4])))
    for word in _WORD.findall(text) if not text.isascii() else ():
        if not _FOREIGN.isdisjoint(word) and _LATIN.search(word):
            yield finding("mixed_script", path, repr(word[:40]))
            return


def _is_hidden(before: str, char: str) -> bool:
    """Emoji, and scripts that need them, join by signs that hide text elsewhere."""
    if char in _JOINING and not before.isascii():
        return ord(before) in _HIDDEN and before + char != "\ufe0f\u200d"
    return ord(char) in _HIDDEN or category(char) in ("Co", "Cs")


def _links(path: str, lowered: str) -> Iterator[LintFinding]:
    links: list[str] = _LINK.findall(lowered)
    carrying = [link for link in links if _CARRIES.search(link)]
    mailbox = _MAILBOX.search(lowered)
    if mailbox is not None:
        yield finding("mailbox", path, repr(mailbox[0][:80]))
    elif not links and (host := _HOST.search(lowered)) is not None:
        yield finding("host", path, repr(host[0][:80]))
    if carrying or _IMAGE.search(lowered):
        yield finding("link_out", path, repr(carrying[0][:80]) if carrying else "an embedded image or frame")
    elif links:
        yield finding("link", path, repr(links[0][:80]))


def _cheat(lowered: str) -> str | None:
    """Advice to cheat; not a warning against it."""
    return _unless_warned(_GAMES, lowered)


def _unless_warned(pattern: re.Pattern[str], lowered: str) -> str | None:
    """What the pattern finds, where it is not warned of."""
    for found in pattern.finditer(lowered):
        if _NEGATED.search(lowered[max(0, found.start() - 60) : found.start()]) is None:
            return found[0]
    return None


def _character_name(char: str) -> str:
    """A character by its code point and its name in Unicode."""
    return f"U+{ord(char):04X} {name(char, '')}".strip()
