"""Chain of thought: found and taken out, so that summaries hold results and grounds and no thinking aloud (RC-20).

What is taken out: blocks that models mark as thinking, sections headed as such, and sentences in which someone talks
to himself. What remains is what was said to the reader.
"""

from __future__ import annotations

import re

from muniment.core.text.sentences import sentence_spans

__all__ = ["find_thoughts", "without_thoughts"]

_NAMES = "think|thinking|thoughts?|reasoning|reflection|scratch_?pad|chain_of_thought|cot|inner_monologue"
_OPENED = rf"<[ \t]*(?:(?:{_NAMES})\b[^>\n]{{0,80}}|\|begin_of_thought\|)>"
_CLOSED = rf"<[ \t]*(?:/[ \t]*(?:{_NAMES})[ \t]*|\|end_of_thought\|)>"
_SECTION = (
    r"(?:scratch\s?pad|chain[ -]of[ -]thought|inner monologue|thought process"
    r"|(?:my |internal |step[ -]by[ -]step )?(?:thinking|thoughts|reasoning)(?: process| trace| steps)?)"
)
_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE
_BLOCKS = (
    # A fence of its own.
    re.compile(rf"^(`{{3,}}|~{{3,}})[ \t]*(?:{_NAMES})\b[^\n]*\n.*?(?:^\1[ \t]*$|\Z)", _FLAGS),
    # A pair of tags, or one that is never closed.
    re.compile(rf"{_OPENED}.*?(?:{_CLOSED}|\Z)", _FLAGS),
    re.compile(r"<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|(?=<\|channel\|>)|\Z)", _FLAGS),
    # Some templates put the opening tag into the prompt: then all before the closing one is thinking.
    re.compile(rf"\A.*{_CLOSED}", _FLAGS),
    # A section under a heading, up to the next.
    re.compile(
        rf"^[ \t]*(?:#+[ \t]*|\*\*){_SECTION}[ \t]*:?(?:\*\*)?:?[ \t]*$.*?"
        r"(?=^[ \t]*(?:#+[ \t]*\S|\*\*[^*\n]+\*\*:?[ \t]*$)|\Z)",
        _FLAGS,
    ),
    # A paragraph under a label, up to an empty line or the next label.
    re.compile(
        rf"^[ \t]*(?:{_SECTION}|thought(?: \d+)?)[ \t]*:.*?(?=\n[ \t]*\n|^[ \t]*[A-Z][\w ]{{0,30}}:|\Z)", _FLAGS
    ),
)
_ALOUD = re.compile(
    r"""[\s>*_\-\d.)"“]{0,20}(?:
        (?:(?:ok(?:ay)?|alright|right|so|now|well|first|hm+|wait|actually|yes|no|and|but)[\s,.…—–-]+){0,3}
        (?:let(?:['’]s|\s+me|\s+us)\s+(?:just\s+)?(?:think|see|consider|reason|work\s+(?:this|it|that|through|out)|try
            |break|rethink|re-?(?:check|consider|read|calculate|compute|examine)|double[\s-]check|check|verify|start
            |figure|go\s+(?:step|through|over)|analy[sz]e|look|recall|walk|compute|calculate|first)\b
        |i(?:['’]m|\s+am)\s+(?:thinking|wondering|not\s+sure|trying\s+to)\b
        |i\s+(?:need|have|want|should|must|ought|might)\s+(?:to\s+)?(?:think|figure|consider|work\s+out|be\s+careful)\b
        |i\s+wonder\b
        |(?:what|how)\s+(?:if|about)\s+(?:i|we)\b
        |thinking\s+(?:step|out\s+loud|aloud|through)\b
        |step[\s-]by[\s-]step\s*[:,]
        |(?:maybe|perhaps)\s+(?:i|we)\b)
      | (?:hm+|uh+m*|umm+)\b|wait[,.!?…—–-]
      | (?:ok(?:ay)?|alright)[\s,]+so\b
      | (?:让我们?|我们)(?:来|先)?(?:想一?想|思考|考虑|分析|看看)|嗯[，,。…]
      | (?:음|흠)[,\s.…]|(?:생각해|따져)\s*(?:보자|봅시다)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_BLANKS = re.compile(r"\n\s*\n")
_SHOWN_CHARS = 80
_ROUNDS_MAX = 8


def without_thoughts(text: str) -> str:
    """A text with the thinking taken out; nothing, where marks stand in marks without end."""
    for _ in range(_ROUNDS_MAX):
        if not find_thoughts(text):
            return text
        for pattern in _BLOCKS:
            text = pattern.sub("\n", text)
        text = _BLANKS.sub("\n\n", "\n".join(map(_said, text.split("\n")))).strip()
    return ""


def find_thoughts(text: str) -> tuple[str, ...]:
    """Passages that read like thinking, each by its first words; none in what may stand in a summary."""
    marked = [found[0] for pattern in _BLOCKS for found in pattern.finditer(text) if found[0]]
    aloud = [each for line in text.split("\n") for each in _sentences(line) if _ALOUD.match(each)]
    return tuple(" ".join(each.split())[:_SHOWN_CHARS] for each in (*marked, *aloud))


def _said(line: str) -> str:
    """A line without the sentences in which someone thinks aloud."""
    sentences = _sentences(line)
    kept = [each for each in sentences if not _ALOUD.match(each)]
    return line if len(kept) == len(sentences) else " ".join(kept)


def _sentences(line: str) -> list[str]:
    return [line[start:end] for start, end in sentence_spans(line)]
