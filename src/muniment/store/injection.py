"""Prompt injection: detecting external text that tries to instruct the model that will read it (LG-08).

A text is flagged for marks that honest text hardly ever holds (marks of chat templates, invisible letters, a request to
drop earlier instructions), or by a small learned gate. A flag is a hint, not a verdict: a flagged text is kept, found
and shown with its flag, but not quoted to a model unless the caller asks for it. Every step is linear in the text.

The gate is a logistic regression over hashed words and pairs of words. `benchmarks.injection --fit` writes its weights.
Figures and sources: docs/decisions/0028-injections.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import sqrt
from typing import NamedTuple
from unicodedata import normalize
from zlib import crc32

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import read_data

__all__ = [
    "BUCKETS",
    "TERMS_MIN",
    "Gate",
    "has_injection_form",
    "reads_like_instructions",
    "split_name",
    "visible_text",
    "windows",
]

BUCKETS = 65_521
"""A prime just below 64 K, so that the weights and their threshold fit into 64 KiB."""
TERMS_MIN = 12
"""A window with fewer terms is scored as if it had this many: one word alone is no instruction."""
_THRESHOLD_BYTES = 4
_SENTENCE_WORDS = 32
"""Longer sentences are cut, so that an instruction cannot be diluted by words without a full stop."""
_LINE_WORDS = 4
"""A line with fewer words goes on in the next one: an instruction may be written one word to a line."""

_INVISIBLE = lazy_pattern(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0001-\U000e01ef]"
)
_ACCENTS = lazy_pattern("[\u0300-\u036f]")
_CJK = lazy_pattern("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TOKEN = lazy_pattern(r"[^\W\d_]{1,48}|\d+|[.!?。！？；\n]+|[^\w\s]")
_JOINT = lazy_pattern(r"[_\-./:+]+|(?<=[a-z])(?=[A-Z])")
"""Separators between the words of a name."""
_ENDS = frozenset(".!?。！？；\n")

_HIDDEN = lazy_pattern(
    "[\U000e0020-\U000e007e]{8}"  # tag letters; the flags of England, Scotland and Wales have five
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{8}"  # bytes smuggled in variation selectors
    "|[\u202d\u202e][^\u202c\n]{4}"  # text written backwards and displayed forwards
)
_FORMS = lazy_pattern(
    r"""(?mx)
    <\|\s?(?:im_start|im_end|im_sep|system|user|assistant|start_header_id|end_header_id|eot_id|endoftext)\b
    | \[/?inst\] | <</?sys>> | </?system(?:-reminder|-prompt|_prompt)?> | </(?:tool_result|function_results|user_input)>
    | ^\W{0,4}system\W{0,2}[:：]\s?(?:you\s|ignore\s|new\s)
    | \b(?:ignore|disregard|forget|override)\s{1,4}(?:[\w'’-]{1,20}\s{1,4}){0,4}?
      (?:previous|prior|above|earlier|your|all)\s{1,4}
      (?:[\w'’-]{1,20}\s{1,4}){0,3}?(?:instructions?|prompts?|rules|guidelines)\b
    | \b(?:reveal|print|repeat|show|leak)\s(?:[\w'’-]{1,20}\s){0,3}?(?:system\sprompt|hidden\sinstructions)\b
    | \b(?:ignorier|vergiss|vergesst|missacht)\w{0,6}\s(?:\w{1,20}\s){0,4}?(?:anweisung|vorgabe|regeln)
    | \b(?:ignore[rz]?|oublie[rz]?)\s(?:toutes\s)?(?:[tlv]es|vos)\s(?:\w{1,20}\s){0,2}?(?:instructions|consignes)\b
    | \b(?:ignor[ae]n?|olvid[ae]n?)\s(?:\w{1,20}\s){0,4}?instrucciones\b
    | (?:忽略|无视|不要理会)[^。！？\n]{0,12}(?:指令|指示|规则|提示)
    | (?:指示|命令|プロンプト)[^。\n]{0,8}(?:無視|忘れ)
    | (?:지시|지침|명령)[^.\n]{0,10}(?:무시|잊)
    """
)
"""Marks of chat templates, and in each language the plainest request to drop earlier instructions. Matched over lower
case without accents. Repetitions are bounded, so that hostile text cannot slow the match.
"""


def reads_like_instructions(text: str) -> bool:
    """Return whether the text tries to instruct the model that reads it."""
    return has_injection_form(text) or _gate().score(visible_text(text)) > 0


def has_injection_form(text: str) -> bool:
    """Return whether the text holds a mark or phrase of an injection. For texts that instruct by nature."""
    if not text.isascii() and _HIDDEN.search(text) is not None:
        return True
    return _FORMS.search(visible_text(text)) is not None


def split_name(name: str) -> str:
    """Split a name written as one word (`ignore_all_rules`, `ignoreAllRules`) into a text of words."""
    return _JOINT.sub(" ", name)


class Gate(NamedTuple):
    """The weight of every bucket of terms, and the score that a window must exceed."""

    weights: memoryview
    threshold: int

    def score(self, text: str) -> float:
        """Return how far the highest window of a text lies above the threshold."""
        weights = self.weights
        scores = (
            sum([weights[bucket] for bucket in window]) / sqrt(max(len(window), TERMS_MIN)) for window in windows(text)
        )
        return max(scores, default=-1.0) - self.threshold


@cache
def _gate() -> Gate:
    data = read_data("muniment.store", "injection.bin")
    threshold = int.from_bytes(data[:_THRESHOLD_BYTES], "little", signed=True)
    return Gate(memoryview(data)[_THRESHOLD_BYTES:].cast("b"), threshold)


def windows(text: str) -> Iterator[set[int]]:
    """The hashed terms of each sentence of a text in lower case, and of each two sentences in a row."""
    last: set[int] = set()
    for terms in _sentences(text):
        buckets = {crc32(term.encode()) % BUCKETS for term in terms}
        yield buckets
        if last:
            yield last | buckets
        last = buckets


def _sentences(text: str) -> Iterator[list[str]]:
    """The terms of each sentence: words and signs, and each two in a row; runs of one to three characters of Chinese,
    Japanese and Korean."""
    terms: list[str] = []
    last, words = "", 0
    for token in _TOKEN.findall(text):
        is_end = token[0] in _ENDS
        if (is_end and (token != "\n" or words >= _LINE_WORDS)) or words >= _SENTENCE_WORDS:
            if words:
                yield terms
            terms, last, words = [], "", 0
        if is_end:
            continue
        if not token.isascii() and _CJK.search(token) is not None:
            terms += [token[at : at + size] for size in (1, 2, 3) for at in range(len(token) - size + 1)]
            last = ""
            words += 1 + len(token) // 2
            continue
        words += token[0].isalnum()
        token = "0" if token.isdigit() else token
        terms.append(token)
        if last:
            terms.append(f"{last} {token}")
        last = token
    if words:
        yield terms


def visible_text(text: str) -> str:
    """The text in lower case, without accents and invisible characters."""
    if not text.isascii():
        text = _INVISIBLE.sub("", normalize("NFKC", text))
        text = normalize("NFC", _ACCENTS.sub("", normalize("NFD", text)))
    return text.lower()
