"""What a text is made of, counted: one definition for each word of the constraint language.

- A word is a run of letters, digits and underscores; a Han or kana character is one by itself.
- A sentence ends at `.`, `!` or `?` before white space or a closing sign, and at `。`, `！`, `？`. A full stop after an
  abbreviation or an initial ends none, a line break ends none, a list number with a full stop counts as one.
- A paragraph is what stands between separators: blank lines, or a separator that is given.
"""

from __future__ import annotations

from muniment.core.text.analyzer import stop_words
from muniment.core.text.patterns import lazy_pattern

__all__ = [
    "bullet_count",
    "capital_word_count",
    "headings",
    "highlight_count",
    "paragraphs",
    "placeholder_count",
    "sentence_count",
    "titles",
    "word_count",
]

_WORD = lazy_pattern(r"\w+")
_IDEOGRAPHS = lazy_pattern("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")

_END = lazy_pattern(r"(?s)[.!?](?=[)\";}\]*:@'({\[!?]|\s+\S)|[。！？]+(?=.)")
_TOKEN_BEFORE = lazy_pattern(r"[^\s()\"`{\[:;&#*@}\],]+\Z")
_NEXT = lazy_pattern(r"\s+(?:[(\"'\[{*]*)(\S+)")
_INITIAL = lazy_pattern(r"[^\W\d]")
_NUMBER = lazy_pattern(r"-?[.,]?\d[\d,.-]*")
_LABEL = lazy_pattern(r"(?:^|\n)[ \t]*\w\Z")
_CLOSING = lazy_pattern(r"[\"')\]}]+(?=\s|\Z)")
_ABBREVIATIONS_TEXT = """
mr mrs ms dr prof st sr jr rev hon gen col maj capt lt sgt sen rep gov pres ph.d m.d b.a m.a b.sc m.sc
inc ltd co corp bros dept vs jan feb aug sept oct nov dec ave blvd rd mt ft
u.s u.k u.n u.s.a e.u d.c n.y l.a a.m p.m a.d b.c e.g i.e cf viz approx
"""
_ABBREVIATIONS = frozenset(_ABBREVIATIONS_TEXT.split())
"""Titles, firms, months, streets, countries, hours, Latin: what any style guide lists."""

_HIGHLIGHT = lazy_pattern(r"\*([^\n*]*)\*")
_STRONG = lazy_pattern(r"\*\*([^\n*]*)\*\*")
_HEADING = lazy_pattern(r" {0,3}(#{1,6})(?=[ \t])")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})")
_BLANK_LINES = lazy_pattern(r"\n[ \t]*\n\s*")

_CONTRACTION = lazy_pattern(r"(?i)(?<=\w)(?=n't\b)|(?<=[^'\s])(?='(?:s|m|d|ll|re|ve)\b)")
_APART = lazy_pattern(r"[\s,;:@#$%&?!()\[\]{}<>\"`“”«»…]+|\.\.\.|--")


def word_count(text: str) -> int:
    count = len(_WORD.findall(text))
    if not text.isascii():
        count += sum(len(run) - 1 for run in _IDEOGRAPHS.findall(text))
    return count


def sentence_count(text: str) -> int:
    """At least one, unless the text is blank."""
    text = text.strip()
    if not text:
        return 0
    count, start = 1, 0
    for found in _END.finditer(text):
        sign = found[0]
        if sign == "." and not _ends_sentence(text, start, found.start()):
            continue
        end = found.end()
        closing = _CLOSING.match(text, end)
        if closing is not None:
            end = closing.end()
        if end >= len(text):
            break
        count += 1
        start = end
    return count


def _ends_sentence(text: str, start: int, dot: int) -> bool:
    """Does the full stop at `dot` end a sentence that began at `start`?"""
    if text[dot + 1 : dot + 2] == "." or text[dot - 1 : dot] == ".":
        return False
    found = _TOKEN_BEFORE.search(text, max(start, dot - 40), dot)
    token = found[0] if found is not None else ""
    following = _NEXT.match(text, dot + 1)
    after = following[1] if following is not None else ""
    bare = token.lower()
    is_initial = len(token) == 1 and _INITIAL.match(token) is not None
    if not is_initial and bare not in _ABBREVIATIONS and bare.rpartition("-")[2] not in _ABBREVIATIONS:
        return not (after[:1].islower() and _NUMBER.fullmatch(token))
    if not after[:1].isupper():
        return False
    if is_initial and _LABEL.search(text, max(0, dot - 20), dot):
        return True  # the letter of a list
    return after.lower().strip(".,;:!?'\"") in stop_words("english")


def paragraphs(text: str, separator: str | None = None) -> list[str]:
    """The paragraphs of a text; with a separator, empty ones inside are kept, so that they can be counted."""
    if separator is None:
        return [part for part in _BLANK_LINES.split(text.strip()) if part.strip()]
    parts = text.split(separator)
    if not parts[0].strip():
        del parts[0]
    if parts and not parts[-1].strip():
        del parts[-1]
    return parts


def bullet_count(text: str) -> int:
    """Lines that begin with `-`, or with one `*` and something after it."""
    lines = [line.lstrip() for line in text.split("\n")]
    last = len(lines) - 1
    return sum(
        line.startswith("-") or (line.startswith("*") and (line[1:2] or (number < last and "\n") or "*") != "*")
        for number, line in enumerate(lines)
    )


def placeholder_count(text: str) -> int:
    """Parts in square brackets, each on one line."""
    count = 0
    for line in text.split("\n"):
        at = line.find("[")
        while at >= 0 and (end := line.find("]", at)) >= 0:
            count += 1
            at = line.find("[", end)
    return count


def titles(text: str) -> list[str]:
    """What stands in double angle brackets, each on one line."""
    found = []
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end - 2 and (name := line[start:end].strip("<>").strip()):
            found.append(name)
    return found


def highlight_count(text: str) -> int:
    """Parts in single asterisks, and parts in double ones."""
    parts = _HIGHLIGHT.findall(text) + _STRONG.findall(text)
    return sum(1 for part in parts if part.strip())


def headings(text: str) -> list[tuple[int, str]]:
    """Markdown headings outside of code fences: level and words."""
    found, fence = [], ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if opening is not None and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        elif not fence and (heading := _HEADING.match(line)) is not None:
            found.append((len(heading[1]), line[heading.end() :].strip().rstrip("#").rstrip()))
    return found


def capital_word_count(text: str) -> int:
    """Words all in capitals; of a contraction, each part."""
    return sum(1 for part in _APART.split(_CONTRACTION.sub(" ", text)) if part.isupper())
