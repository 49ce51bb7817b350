"""A language as its file tells it: words, patterns over them, and what keeps a sentence from being taken at its word.

Sections of a file are lists of forms of regular expressions, a comma and a blank apart. `{name}` in a form stands for
the section of that name; in a rule about somebody else it stands for the section `name of others`, where there is one.
`<slot>` is a value to read: its form is in the section `slots` of the file, or of the one that languages of its script
share; where there is none it is one of the words of the section of its name, and its value what stands beside the word.

A rule is `key: pattern` or `key=value: pattern`; a key that begins with no owner is of whomever the sentence speaks.
Signs before a key: `!` the words themselves say no, `?` holds in a question too, `~` words of doubt are part of it, `@`
of the speaker alone, `*` of others alone, `^` at the beginning of a clause alone, `+` in an introduction alone, `&`
where children are spoken of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from muniment.core.text.word_lists import WordList

__all__ = ["LANGUAGES", "LATIN", "Rule", "Table", "signs_of", "table"]

LANGUAGES = ("chinese", "korean", "japanese", "spanish", "german", "french", "portuguese")
_SCRIPTS = {
    "chinese": "han", "korean": "hangul", "japanese": "kana", "spanish": "latin", "german": "latin", "french": "latin",
    "portuguese": "latin",
}  # fmt: skip
LATIN = tuple(language for language, script in _SCRIPTS.items() if script == "latin")
_NAMED = re.compile(r"\{([a-z][a-z ]*)\}")
_SLOT = re.compile(r"<([a-z]+)>")
_HEAD = re.compile(r"(?P<signs>[!?~@*^+&]*)(?P<key>[a-z.<>]+)(?:=(?P<value>[^:]+))?: (?P<pattern>.+)", re.DOTALL)
_PAIR = re.compile(r"([^=()]+)=(\w+)")
_PICTURE = "[\u2600-\u27bf\U0001f300-\U0001faff]+"
_NEVER = re.compile(r"(?!)")
_OTHERS = " of others"
OWNED = ("user.", "person.", "pet.", "trip.", "thing.")


class Rule(NamedTuple):
    """Words of this form say this."""

    key: str
    pattern: re.Pattern[str]
    slot: str | None
    """Whose words are the value; None where `value` is."""
    value: str | None
    signs: str
    is_of_others: bool

    @property
    def is_owned(self) -> bool:
        """Does the key say whose fact it is?"""
        return self.key.startswith(OWNED)


@dataclass(frozen=True, slots=True)
class Table:
    """A language, ready to read with."""

    language: str
    is_inflected: bool
    """Its verbs tell the speaker from others."""
    rules: tuple[Rule, ...]
    taken_back: tuple[Rule, ...]
    forms: dict[str, re.Pattern[str]]
    """Guards and the like by the name of their section; one that is not there matches nothing."""
    pairs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Words of closed slots, in small letters, and what they stand for; where nothing, the word itself."""

    @property
    def kin(self) -> frozenset[str]:
        """What people may be to the speaker, as keys have it."""
        return frozenset(self.pairs["kin"].values())

    def form(self, section: str) -> re.Pattern[str]:
        return self.forms.get(section, _NEVER)


class _File:
    def __init__(self, language: str) -> None:
        self.script = _SCRIPTS[language]
        self._words = WordList(__package__, f"{language}.txt")
        self._shared = WordList(__package__, f"{self.script}.txt" if self.script == "latin" else "signs.txt")

    def entries(self, section: str) -> tuple[str, ...]:
        for words in (self._words, self._shared):
            if section in words:
                return words.entries(section)
        return ()

    def items(self, section: str) -> list[str]:
        lines = [line for entry in self.entries(section) for line in entry.splitlines()]
        return [item for line in lines for item in line.strip().rstrip(",").split(", ") if item]

    def pairs(self, section: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for item in self.items(section):
            pair = _PAIR.fullmatch(item)
            found[(pair[1] if pair else item).casefold()] = pair[2] if pair else ""
        return found

    @property
    def slots(self) -> dict[str, str]:
        return {
            name: form
            for words in (self._shared, self._words)
            if "slots" in words
            for name, form in words.pairs("slots")
        }


def _word_of(item: str) -> str:
    pair = _PAIR.fullmatch(item)
    return pair[1] if pair else item


class _Maker:
    """Makes patterns out of the forms of a file."""

    def __init__(self, source: _File) -> None:
        self.source = source
        self.slots = source.slots
        self.closed: dict[str, dict[str, str]] = {}
        self.is_latin = source.script == "latin"

    def expand(self, form: str, *, is_of_others: bool, depth: int = 0) -> str:
        """A form with sections and slots written out."""
        assert depth < 12, f"a section of the file stands for itself: {form}"

        def section(match: re.Match[str]) -> str:
            name = match[1] + _OTHERS if is_of_others and self.source.items(match[1] + _OTHERS) else match[1]
            items = self.source.items(name)
            assert items, f"no section {name}"
            words = sorted((_word_of(item) for item in items), key=lambda item: (-len(item), item))
            return f"(?:{'|'.join(self.expand(item, is_of_others=is_of_others, depth=depth + 1) for item in words)})"

        return _NAMED.sub(section, form)

    def pattern(self, form: str, *, is_of_others: bool = False, whole: bool = True) -> re.Pattern[str]:
        expanded = self.expand(form, is_of_others=is_of_others)
        expanded = _SLOT.sub(self._group, expanded)
        expanded = self.expand(expanded, is_of_others=is_of_others)
        if self.is_latin and whole:
            expanded = rf"(?<!\w)(?:{expanded})(?!\w)"
        return re.compile(expanded, re.IGNORECASE)

    def _group(self, match: re.Match[str]) -> str:
        name = match[1]
        form = self.slots.get(name)
        if form is None:
            self.closed.setdefault(name, self.source.pairs(name))
            form = f"{{{name}}}"
        return f"(?P<{name}>{form})"

    def either(self, section: str) -> re.Pattern[str]:
        items = self.source.items(section)
        return self.pattern("|".join(items)) if items else _NEVER

    def rules(self, section: str) -> tuple[Rule, ...]:
        found: list[Rule] = []
        for entry in self.source.entries(section):
            head = _HEAD.fullmatch(entry.replace("\n", ""))
            assert head is not None, f"no rule: {entry}"
            found.extend(
                self._rule(head, is_of_others=is_of_others)
                for is_of_others in (False, True)
                if self._is_made(head, is_of_others=is_of_others)
            )
        return tuple(found)

    def _is_made(self, head: re.Match[str], *, is_of_others: bool) -> bool:
        if "*" in head["signs"]:
            return is_of_others
        if "@" in head["signs"] or head["key"].startswith(OWNED) or not self.is_latin:
            return not is_of_others
        if not is_of_others:
            return True
        return self.expand(head["pattern"], is_of_others=True) != self.expand(head["pattern"], is_of_others=False)

    def _rule(self, head: re.Match[str], *, is_of_others: bool) -> Rule:
        in_key = set(_SLOT.findall(head["key"]))
        slots = [
            name
            for name in _SLOT.findall(self.expand(head["pattern"], is_of_others=is_of_others))
            if name not in in_key
        ]
        assert head["value"] is not None or len(slots) == 1, f"one value a rule: {head[0]}"
        pattern = self.pattern(head["pattern"], is_of_others=is_of_others)
        return Rule(
            head["key"], pattern, None if head["value"] else slots[0], head["value"], head["signs"], is_of_others
        )


_GUARDS = (
    "silence", "doubt", "past", "question", "negation", "self", "person", "others", "introduction",
    "greeting", "begins", "children", "whole",
)  # fmt: skip
_REFUSALS = ("name", "place", "org", "things", "allergen", "thing", "field", "time", "first")


@cache
def table(language: str) -> Table:
    """The table of a language, made when it is first asked for."""
    source = _File(language)
    maker = _Maker(source)
    forms = {guard: maker.either(guard) for guard in _GUARDS}
    forms |= {f"no {name}": maker.either(f"no {name}") for name in _REFUSALS}
    forms["cut"] = maker.either("cut")
    forms |= {name: maker.pattern("|".join(source.items(name)), whole=False) for name in ("joins", "ands")}
    forms["clause"] = maker.pattern("|".join((*source.items("clause"), _PICTURE)), whole=False)
    rules, back = maker.rules("rules"), maker.rules("taken back")
    closed = maker.closed | {"kin": source.pairs("kin"), "months": source.pairs("months")}
    return Table(language, maker.is_latin, rules, back, forms, closed)


def signs_of(language: str) -> frozenset[str]:
    """Words by which a language in Latin letters is told."""
    return frozenset(_File(language).items("signs"))
