"""Readings of an English sentence that may be facts: wide on purpose, each with what speaks for and against it.

A rule says what certain words mean. A reading here says only where a statement could stand: behind `i` and a verb,
behind `my`, at a word for an illness or a pastime, in `… is so relaxing`. Which of them are lasting facts of the speaker
is weighed by `acceptor`, on the features that stand here.
"""

# ruff: noqa: E501 - lists of features read best with few lines

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.stated.places import is_known_place
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.english.classes import noun_class, verb_class
from muniment.memory.extraction.english.words import KIN_KEYS, known_things
from muniment.memory.extraction.grammar import Clause
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.extraction.views import View

__all__ = ["Candidate", "Setting", "around", "candidates", "rule_features"]

_LIST = WordList(__package__, "readings.txt")
_TOKEN = re.compile(r"[^\W_]+(?:['’./-][^\W_]+)*|[$€£%]")
_I = frozenset(_LIST.words("speaker"))
_AUX = frozenset(_LIST.words("auxiliaries"))
_ADVERBS = frozenset(_LIST.words("adverbs"))
_MODALS = frozenset(_LIST.words("modals"))
_NOT = frozenset(_LIST.words("negations"))
_STOPS = frozenset(_LIST.words("phrase ends"))
_NOUN_STOPS = frozenset(_LIST.words("noun phrase ends"))
_DETERMINERS = frozenset(_LIST.words("determiners"))
_DEICTIC = frozenset(_LIST.words("at hand"))
_OFTEN = frozenset(_LIST.words("often"))
_ONCE = frozenset(_LIST.words("once"))
_PAST = frozenset(_LIST.words("past forms"))
_VERBS = {word: name for name in _LIST.words("verb groups") for word in _LIST.words(f"verbs: {name}")}
_PRAISE = frozenset(_LIST.words("praise"))
_CLASS_KEYS = dict(_LIST.pairs("class keys"))
_MENTIONED = frozenset(_LIST.words("mentioned"))
_VERB_KEYS = dict(_LIST.pairs("verb keys"))
_WORDS_MAX, _NOUN_WORDS_MAX = 12, 4


class Token(NamedTuple):
    word: str
    start: int
    end: int


class Candidate(NamedTuple):
    """A reading: what of the speaker, where its value stands, and what is seen around it."""

    attribute: str
    start: int
    end: int
    quote_start: int
    features: tuple[str, ...]
    clause: int
    """Where the clause begins that it stands in."""


class Setting(NamedTuple):
    """What is known of the sentence that a reading stands in."""

    view: View
    clauses: Sequence[Clause]
    quoted: Sequence[tuple[int, int]]
    stop: int
    around: tuple[str, ...] = ()
    """What is seen of the message around the sentence: see `around`."""


def rule_features(
    name: str, attribute: str, view: View, clause: Clause, around: tuple[str, ...], start: int, end: int
) -> tuple[str, ...]:
    """What is seen of a reading that a rule made."""
    tokens = [
        Token(match[0], *match.span()) for match in _TOKEN.finditer(view.text, clause.start, max(clause.end, end))
    ]
    inside = [at for at, token in enumerate(tokens) if token.start < end and start < token.end]
    if not inside:
        return (f"rule>{attribute}",)
    shared = _clause_features(around, clause, tokens)
    before = [tokens[inside[0] - back].word if inside[0] >= back else "^" for back in (1, 2)]
    own = (
        f"r:name={name}", f"r:prev={before[0]}", f"r:{name}/{before[0]}", f"r:prev2={before[1]} {before[0]}",
        f"r:next={tokens[inside[-1] + 1].word if inside[-1] + 1 < len(tokens) else '$'}",
        f"r:others={attribute.startswith('person')}",
    )  # fmt: skip
    return _candidate(
        view, "rule", attribute.split(".")[-1], tokens, inside[0], inside[-1] + 1, clause, (*shared, *own), quote=start
    ).features


_CODE = re.compile(
    r"```|\b(?:code|error|function|implement|implementation|api|database|deploy|debug|bug|server|equation|formula|algorithm)\b",
    re.I,
)
_PASSING = re.compile(
    r"(?:by the way|btw|also|speaking of|oh|actually|i mean|as for me|for me|recently|lately)\b", re.I
)


@remembered(4)
def _of_message(text: str) -> tuple[bool, bool]:
    """Whether a message asks, and whether it is about code: looked for once, not for each of its sentences."""
    return "?" in text, _CODE.search(text) is not None


def around(text: str, said: Sequence[Sentence], number: int) -> tuple[str, ...]:
    """What is seen of a message around one of its sentences."""
    sentence = said[number]
    lead = _PASSING.match(sentence.text)
    asks, is_on_code = _of_message(text)
    found = [
        f"s:question={sentence.is_question}", f"s:asks={asks}", f"s:at={min(number, 3)}", f"s:of={min(len(said), 6)}",
        f"s:words={min(len(sentence.text) // 40, 5)}", f"s:message={min(len(text) // 150, 6)}",
        f"s:lead={lead[0].lower() if lead is not None else ''}", f"s:exclaims={'!' in sentence.end}",
    ]  # fmt: skip
    if is_on_code:
        found.append("s:code")
    if number + 1 < len(said):
        found.append(f"s:next-asks={said[number + 1].is_question}")
    if number:
        found.append(f"s:before-asks={said[number - 1].is_question}")
    return tuple(found)


def candidates(setting: Setting) -> Iterator[Candidate]:
    """All readings of a sentence."""
    for clause in setting.clauses:
        if clause.start >= setting.stop or any(start <= clause.start < end for start, end in setting.quoted):
            continue
        tokens = [
            Token(match[0], *match.span()) for match in _TOKEN.finditer(setting.view.text, clause.start, clause.end)
        ]
        if not tokens:
            continue
        shared = _clause_features(setting.around, clause, tokens)
        taken: set[tuple[str, int]] = set()
        for found in _readings(setting.view, clause, tokens, shared):
            if (found.attribute, found.end) not in taken:
                taken.add((found.attribute, found.end))
                yield found


def _readings(view: View, clause: Clause, tokens: list[Token], shared: tuple[str, ...]) -> Iterator[Candidate]:
    for at, token in enumerate(tokens):
        if token.word in _I:
            yield from _predicate(view, clause, tokens, at, shared)
        elif token.word in ("my", "our"):
            yield from _owned(view, clause, tokens, at, shared)
        elif token.word.endswith("ing") and len(token.word) > 5 and verb_class(token.word):
            yield from _doing(view, clause, tokens, at, shared)
        yield from _mention(view, clause, tokens, at, shared)
    yield from _praised(view, clause, tokens, shared)


# -- behind `i` --------------------------------------------------------------------------------------------


def _predicate(
    view: View, clause: Clause, tokens: list[Token], at: int, shared: tuple[str, ...]
) -> Iterator[Candidate]:
    """`i usually cook at home`: the verb and what stands behind it."""
    subject = tokens[at].word
    signs = [suffix for suffix in ("'m", "'re", "'ve", "'d", "'ll") if subject.endswith(suffix)]
    verb = at + 1
    while verb < len(tokens):
        word = tokens[verb].word
        if word in _NOT:
            signs.append("not")
        elif word in _MODALS:
            signs.append("modal")
        elif word in _AUX:
            signs.append(word)
        elif word in _ADVERBS or (word.endswith("ly") and len(word) > 4):
            signs.append(f"adv-{word}")
        else:
            break
        verb += 1
    if verb >= len(tokens) or "not" in signs:  # what is denied is read by rules alone
        return
    word = tokens[verb].word
    group = _VERBS.get(word, "")
    base = "i" if subject.startswith("i") else "we"
    stop = _phrase_end(tokens, verb + 1)
    if stop == verb + 1 and not group:
        return
    first = verb + 1
    while first < stop and (
        tokens[first].word in _DETERMINERS
        or tokens[first].word in ("to", "that", "of", "for", "in", "on", "at", "with", "about", "as", "into")
    ):
        first += 1
    tense = _tense(word, signs)
    own = (
        f"p:{base}", f"p:tense={tense}", f"p:group={group or 'none'}", f"p:verb={word}", f"p:vclass={verb_class(word)}",
        f"p:{group or verb_class(word)}/{tense}", *(f"p:sign={sign}" for sign in signs),
        f"p:next={tokens[verb + 1].word if verb + 1 < len(tokens) else '$'}",
        f"p:{group or word}/{tokens[verb + 1].word if verb + 1 < len(tokens) else '$'}",
        f"p:prev={tokens[at - 1].word if at else '^'}", *_inner(tokens, verb, stop, group or verb_class(word)),
        f"p:group/adv={group}/{'adv' if any(sign.startswith('adv') for sign in signs) else ''}",
    )  # fmt: skip
    attribute = _VERB_KEYS.get(group, "habit")
    is_doing = attribute == "habit"
    begin = verb if is_doing or first >= stop else first
    yield _candidate(view, "pred", attribute, tokens, begin, stop, clause, (*shared, *own), quote=tokens[at].start)
    for thing in range(verb, min(verb + 5, stop)):
        if tokens[thing].word in ("a", "an", "some", "new", "two", "this"):
            end = _noun_end(view, tokens, thing + 1)
            if end > thing + 1:
                head = tokens[end - 1].word
                more = (
                    f"o:det={tokens[thing].word}", f"o:gap={thing - verb}", f"o:before={tokens[thing - 1].word}",
                    f"o:head={head}", f"o:class={_class_of(head)}", f"o:new={tokens[thing + 1].word == 'new'}",
                    f"o:{word}/{_class_of(head)}", f"o:{tense}/{_class_of(head)}",
                )  # fmt: skip
                features = (*shared, *own, *more)
                yield _candidate(
                    view, "thing", "owns", tokens, thing + 1, end, clause, features, quote=tokens[at].start
                )
            break


def _inner(tokens: list[Token], verb: int, stop: int, group: str) -> Iterator[str]:
    """The verb within: `trying to learn`, `thinking of buying`."""
    for at in range(verb + 1, min(verb + 4, stop)):
        word = tokens[at].word
        if (tokens[at - 1].word == "to" or word.endswith("ing")) and verb_class(word):
            yield f"p:inner={word}"
            yield f"p:inner-class={verb_class(word)}"
            yield f"p:{group}/{verb_class(word)}"
            yield f"p:inner-group={_VERBS.get(word, '')}"
            if at + 1 < stop:
                yield f"p:inner-next={tokens[at + 1].word}"
            return


def _tense(word: str, signs: list[str]) -> str:
    if word.endswith("ing"):
        return "been-ing" if "been" in signs else "ing"
    if word in _PAST or (word.endswith("ed") and len(word) > 3):
        return "perfect" if "'ve" in signs or "have" in signs else "past"
    return "modal" if "modal" in signs or "'d" in signs or "'ll" in signs else "present"


# -- behind `my` -------------------------------------------------------------------------------------------


def _owned(view: View, clause: Clause, tokens: list[Token], at: int, shared: tuple[str, ...]) -> Iterator[Candidate]:
    stop = _noun_end(view, tokens, at + 1)
    if stop <= at + 1:
        return
    head = tokens[stop - 1].word
    if any(token.word in KIN_KEYS for token in tokens[at + 1 : stop]):
        return
    kind = _class_of(head)
    attribute = _CLASS_KEYS.get(kind, "owns")
    own = (
        f"m:head={head}", f"m:class={kind}", f"m:first={tokens[at + 1].word}", f"m:prev={tokens[at - 1].word if at else '^'}",
        f"m:prev-class={verb_class(tokens[at - 1].word) if at else '^'}",
        f"m:next={tokens[stop].word if stop < len(tokens) else '$'}", f"m:words={stop - at - 1}", f"m:{tokens[at].word}",
        f"m:{kind}/{tokens[stop].word if stop < len(tokens) else '$'}",
    )  # fmt: skip
    yield _candidate(view, "my", attribute, tokens, at + 1, stop, clause, (*shared, *own), quote=tokens[at].start)


def _noun_end(view: View, tokens: list[Token], at: int) -> int:
    end = at
    while end < len(tokens) and end - at < _NOUN_WORDS_MAX and tokens[end].word not in _NOUN_STOPS:
        if end > at and not view.text[tokens[end - 1].end : tokens[end].start].isspace():
            break
        end += 1
    return end


# -- doings, mentions, praise ------------------------------------------------------------------------------


def _doing(view: View, clause: Clause, tokens: list[Token], at: int, shared: tuple[str, ...]) -> Iterator[Candidate]:
    before = tokens[at - 1].word if at else "^"
    if before in (
        "am",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "i'm",
        "we're",
        "it's",
        "he's",
        "she's",
        "you're",
        "they're",
    ):
        return
    stop = _phrase_end(tokens, at + 1)
    own = (
        f"g:verb={tokens[at].word}", f"g:vclass={verb_class(tokens[at].word)}", f"g:prev={before}",
        f"g:prev2={tokens[at - 2].word if at > 1 else '^'}", f"g:group={_VERBS.get(tokens[at].word, '')}",
        f"g:start={at == 0}",
    )  # fmt: skip
    yield _candidate(
        view, "doing", "likes", tokens, at, stop, clause, (*shared, *own), quote=tokens[max(0, at - 2)].start
    )


def _mention(view: View, clause: Clause, tokens: list[Token], at: int, shared: tuple[str, ...]) -> Iterator[Candidate]:
    """A word for something that people have, do or like."""
    word = tokens[at].word
    kind = _class_of(word)
    if at + 1 < len(tokens) and (pair := _class_of(f"{word}_{tokens[at + 1].word}")):
        kind = pair
    if view.is_capital(tokens[at].start) and at and is_known_place(word):
        kind = "place"
    attribute = _CLASS_KEYS.get(kind)
    if attribute is None or kind not in _MENTIONED:
        return
    before = [tokens[at - back].word if at >= back else "^" for back in (1, 2, 3)]
    own = (
        f"n:word={word}", f"n:class={kind}", f"n:prev={before[0]}", f"n:prev2={before[1]} {before[0]}",
        f"n:{kind}/{before[0]}", f"n:next={tokens[at + 1].word if at + 1 < len(tokens) else '$'}",
        *(f"n:group={_VERBS[token.word]}/{kind}" for token in tokens[:at] if token.word in _VERBS),
    )  # fmt: skip
    begin = at
    while begin and _is_part(tokens[begin - 1].word) and at - begin < 2:
        begin -= 1
    yield _candidate(
        view, "noun", attribute, tokens, begin, at + 1, clause, (*shared, *own), quote=tokens[max(0, begin - 2)].start
    )


def _is_part(word: str) -> bool:
    return (
        word not in _NOUN_STOPS
        and word not in _DETERMINERS
        and not verb_class(word)
        and word.isalpha()
        and word not in _I
    )


def _praised(view: View, clause: Clause, tokens: list[Token], shared: tuple[str, ...]) -> Iterator[Candidate]:
    """`pottery is so relaxing`."""
    for at, token in enumerate(tokens):
        if token.word not in ("is", "are", "has", "helps", "makes", "help", "make", "keeps", "was") or not at:
            continue
        rest = [each.word for each in tokens[at + 1 : at + 8]]
        praise = next((word for word in rest if word in _PRAISE), None)
        if praise is None and token.word in ("is", "are", "has", "was"):
            return
        begin = max(0, at - 7)
        own = (
            f"b:verb={token.word}", f"b:praise={praise}", f"b:first={tokens[begin].word}", f"b:me={'me' in rest}",
            f"b:my={'my' in rest}", f"b:head-class={_class_of(tokens[at - 1].word)}", f"b:ing={tokens[begin].word.endswith('ing')}",
        )  # fmt: skip
        yield _candidate(view, "praise", "likes", tokens, begin, at, clause, (*shared, *own), quote=tokens[begin].start)
        return


# -- features ----------------------------------------------------------------------------------------------


def _class_of(word: str) -> str:
    return "liked" if word in known_things() else noun_class(word)


def _phrase_end(tokens: list[Token], at: int) -> int:
    end = at
    while end < len(tokens) and end - at < _WORDS_MAX and tokens[end].word not in _STOPS:
        end += 1
    return end


def _clause_features(around: tuple[str, ...], clause: Clause, tokens: list[Token]) -> tuple[str, ...]:
    words = {token.word for token in tokens}
    found = [
        *around, f"c:asked={clause.is_asked}", f"c:doubt={clause.is_doubtful}", f"c:first={clause.is_first}",
        f"c:opens={tokens[0].word}", f"c:words={min(len(tokens) // 3, 5)}",
    ]  # fmt: skip
    found += [f"c:you={word}" for word in ("you", "your") if word in words]
    found += ["c:often"] if words & _OFTEN else []
    found += ["c:once"] if words & _ONCE else []
    found += [f"c:often={word}" for word in sorted(words & _OFTEN)]
    found += ["c:no-speaker"] if not words & _I and not words & {"my", "our", "me", "us"} else []
    return tuple(found)


def _candidate(
    view: View,
    kind: str,
    attribute: str,
    tokens: list[Token],
    begin: int,
    stop: int,
    clause: Clause,
    features: tuple[str, ...],
    *,
    quote: int,
) -> Candidate:
    stop = max(stop, begin + 1)
    words = [token.word for token in tokens[begin:stop]]
    classes = {_class_of(word) for word in words} - {""}
    own = [
        f"v:len={min(len(words), 8)}", f"v:first={words[0]}", f"v:last={words[-1]}", f"v:last-class={_class_of(words[-1])}",
        *(f"v:class={name}" for name in sorted(classes)),
        *(f"v:at-hand={word}" for word in words if word in _DEICTIC),
        *(["v:at-hand"] if _DEICTIC.intersection(words) else []),
        *(["v:digit"] if any(word[0].isdigit() for word in words) else []),
        *(["v:known"] if any(word in known_things() for word in words) else []),
    ]  # fmt: skip
    own += (
        [f"v:capital={capitals}"]
        if (capitals := sum(view.is_capital(token.start) for token in tokens[begin:stop]))
        else []
    )
    named = [f"{kind}|{each}" for each in (*features, *own)]
    named += [each for each in (*features, *own) if each[:2] in ("s:", "c:", "v:")]
    return Candidate(
        attribute,
        tokens[begin].start,
        tokens[stop - 1].end,
        min(quote, tokens[begin].start),
        (f"{kind}", f"{kind}>{attribute}", *named),
        clause.start,
    )
