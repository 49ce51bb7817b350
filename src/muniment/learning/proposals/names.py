"""What a sentence names (calls, files, arguments, numbers, people, quoted words), and whether events bear it.

Names are told by their form, as they stand in English and in code. A plain word that happens to be a name is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from muniment.core.text.sentences import sentence_spans
from muniment.learning.quoted_words import contains_value, folded, words_in

__all__ = ["called_in", "names_in", "spoken_numbers", "stands_in"]

_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|「([^」\n]{1,200})」|(?<!\w)'([^'\n]{2,200})'(?!\w)"
)
_TOKEN = re.compile(r"[^\s,;()\[\]{}<>\"“”「」`!?，。；：、]+")
_ENDS = ".:'’…*"
_BEGINS_AFTER = (":", "—", "–", "…")
"""After these a word may have a capital that is no name's."""
_CODE = re.compile(r"[_/\\@#=]|::|^--?\w|[a-z][A-Z]|\w\.\w|\d")
_CAPITALS = re.compile(r"[A-Z]{2,}s?")
_PLAIN_CAPITALS = frozenset(
    {"ID", "IDs", "OK", "URL", "URLs", "API", "APIs", "NOT", "DO", "NEVER", "ALWAYS", "AND", "OR"}
)
_ABBREVIATED = frozenset({"e.g", "i.e", "etc", "vs", "and/or", "either/or", "n/a", "yes/no"})
_CALL = re.compile(
    r"\b(?:call|calls|calling|called|invoke|invokes|invoking|use|using|run|running|execute|executing)\s+"
    r"(?:(?:the|a|an|its|your|tool|function|command|only|just|always|either)\s+)*[`\"“']?([\w.:/-]+)",
    re.IGNORECASE,
)
_BARE_CALL = ("call", "invok")
_NO_NAME = frozenset({
    "it", "them", "this", "that", "these", "those", "tool", "tools", "function", "functions", "back", "again", "any",
    "each", "every", "more", "another", "same", "other", "no", "not", "on", "out", "for", "with", "all", "both", "one",
    "first", "only", "in", "to", "and", "or", "as", "of", "if", "when", "before", "after", "until", "once",
})  # fmt: skip
_SPOKEN = (
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty", "sixty",
    "seventy", "eighty", "ninety", "hundred", "thousand", "twice",
)  # fmt: skip
_SPOKEN_NUMBER = re.compile(rf"\b(?:{'|'.join(_SPOKEN)})\b", re.IGNORECASE)
_VALUES = {word: number for number, word in enumerate(_SPOKEN[:19], 2)} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
    "thousand": 1000, "twice": 2,
}  # fmt: skip


def names_in(text: str) -> list[str]:
    """What a text names, in its order, each once."""
    found = [(match.start(), next(part for part in match.groups() if part)) for match in _QUOTED.finditer(text)]
    bare = _QUOTED.sub(lambda match: " " * len(match.group()), text)
    for start, end in sentence_spans(bare):
        found += [(start + at, name) for at, name in _sentence_names(bare[start:end])]
    return list(dict.fromkeys(name for _, name in sorted(found)))


def _sentence_names(sentence: str) -> Iterator[tuple[int, str]]:
    tokens = [(match.start(), match.group()) for match in _TOKEN.finditer(sentence)]
    tokens = [(at, token) for at, token in tokens if token.strip(_ENDS)]
    for place, (at, raw) in enumerate(tokens):
        token = raw.strip(_ENDS)
        is_first = place == 0 or tokens[place - 1][1].endswith(_BEGINS_AFTER)
        if _is_code(token) or _is_capital(token, is_first=is_first):
            yield at, token.removesuffix("'s").removesuffix("’s")


def _is_code(token: str) -> bool:
    return _CODE.search(token) is not None and token.casefold() not in _ABBREVIATED


def _is_capital(token: str, *, is_first: bool) -> bool:
    """A name in capitals, or one with a capital where a sentence has none."""
    if token in _PLAIN_CAPITALS or token == "I" or token.startswith(("I'", "I’")):
        return False
    return _CAPITALS.fullmatch(token) is not None or (token[:1].isupper() and not is_first)


def spoken_numbers(text: str) -> dict[str, float]:
    """Numbers from two that the text spells out, by the word."""
    found = (match.group() for match in _SPOKEN_NUMBER.finditer(text))
    return {word: float(_VALUES[word.casefold()]) for word in found}


def called_in(text: str, tools: Collection[str]) -> list[str]:
    """What a text says is called: by the word after it, or because it is a tool's name."""
    known = {folded(tool): tool for tool in tools}
    found: list[str] = []
    for match in _CALL.finditer(text):
        token = match.group(1).strip(_ENDS + "-/")
        verb = match.group().casefold()
        is_name = bool(_CODE.search(token)) or folded(token) in known or verb.startswith(_BARE_CALL)
        if token and is_name and token.casefold() not in _NO_NAME:
            found.append(token)
    said = folded(text)
    found += [tool for name, tool in known.items() if _is_code(tool) and _holds(said, name)]
    return list(dict.fromkeys(found))


def stands_in(name: str, evidence: str, ts: str) -> bool:
    """Does a name stand in the words of the events? One of code as it is, any other by its words or its number."""
    said, wanted = folded(evidence), folded(name)
    if _holds(said, wanted):
        return True
    if any(sign in wanted for sign in "=:") and not wanted.startswith(("http:", "https:")):
        parts = [part.strip("\"'") for part in re.split(r"[=:]+", wanted)]
        return all(_holds(said, part) for part in parts if part)
    if _CODE.search(name) is not None and not _is_number(wanted):
        return False
    return bool(words_in(wanted)) and contains_value(evidence, name, ts)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).lstrip("$€£").removesuffix("%").isdecimal()


def _holds(said: str, wanted: str) -> bool:
    """Both folded: does it stand there, and not as a part of a longer word?"""
    if not wanted:
        return False
    before = r"(?<!\w)" if wanted[0].isalnum() or wanted[0] == "_" else ""
    after = r"(?!\w)" if wanted[-1].isalnum() or wanted[-1] == "_" else ""
    return re.search(before + re.escape(wanted) + after, said) is not None
