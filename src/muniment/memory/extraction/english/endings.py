"""What somebody says no longer holds of them: `i dont live in rome anymore`, `quit my job at Acme`."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.memory.extraction.english.reading import make_rule
from muniment.memory.extraction.english.slots import read_firm, read_name, read_place, read_things
from muniment.memory.extraction.english.words import DIETS, FOODS, JOBS
from muniment.memory.extraction.grammar import Place, Reader, Rule, Told

__all__ = ["ENDINGS"]

_NOT = r" (?:don't|do not|no longer)"
_AM_NOT = r"(?:'m| am) (?:not|no longer)"
_HAVE = r"(?:'ve| have)?(?: just| recently| finally)*"
_LEFT = rf"{_HAVE} (?:quit|left|resigned from|lost)"
_STOP = r"(?=$|[,.!;)]| (?:any ?more|any longer|now|after all|and|but|so|because|since|last|this|yesterday|today|recently|in|two|three|a)\b)"

_NO_NOUN = rf"(?=$|[,.!;)]| (?:any ?more|any longer|now|after all|altogether|completely|entirely|for good|and|but|so|because|since|when|after|last|this|yesterday|today|recently|in|two|three|a)\b)(?!,? (?:and |or )?(?:{DIETS})\b)"
"""Behind a word for a diet that nothing is made of: `I stopped keto in spring`, never `I finished the keto book`."""


_VALUE = r"(?P<value>[a-z]+(?: (?!any ?more\b|any longer\b|now\b|after\b|and\b|but\b|so\b|last\b|this\b|today\b|yet\b)[a-z]+)?)"


def _where(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = read_place(place.view, match.end())
    if found is not None:
        yield Told("user.location", found.value, found.start, found.end)


def _firm(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = read_firm(place.view, match.end())
    if found is not None:
        yield Told("user.employer", found.value, found.start, found.end)


def _left(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I quit my job`: whichever it was, unless it is named."""
    joint = re.compile(r" (?:at|with|from|by)(?: my job at)? ").match(place.view.text, match.end())
    found = read_firm(place.view, joint.end()) if joint is not None else None
    if found is not None:
        yield Told("user.employer", found.value, found.start, found.end)
    elif re.compile(_STOP).match(place.view.text, match.end()):
        yield Told("user.employer", None, match.start(), match.end())


def _what(key: str) -> Reader:
    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        span = match.span("value")
        yield Told(key, place.view.verbatim(*span), *span)

    return read


def _any_of(*keys: str) -> Reader:
    """Whichever of these stands with that value: only what was said can end."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        span = match.span("value")
        value = place.view.verbatim(*span)
        for key in keys:
            for said in (value, f"a {value}", f"an {value}", f"my {value}"):
                yield Told(key, said, *span)

    return read


def _borne(match: re.Match[str], _place: Place) -> Iterator[Told]:
    """What the body bears now, in each way it may have been said, of one thing or of several.

    It is health; stores of before have it as a diet.
    """
    for found in re.compile(r"(?!(?:and|or|nor|to)\b)[a-z]+").finditer(match["value"]):
        what, at = found[0], match.start("value") + found.start()
        for said in (f"{what} intolerant", f"{what}-intolerant", f"intolerant to {what}", f"{what} intolerance"):
            yield Told("user.health", said, at, at + len(what))
        yield Told("user.diet", f"{what} intolerant", at, at + len(what))


def _none_of(key: str) -> Reader:
    def read(match: re.Match[str], _place: Place) -> Iterator[Told]:
        yield Told(key, None, *match.span())

    return read


def _no_more(key: str) -> Reader:
    """What stands behind the pattern, with a word behind it that says no more."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        for found in read_things(place.view, match.end()):
            is_over = "longer" in match[0] or re.compile(r" any ?more\b| any longer\b").match(
                place.view.text, found.end
            )
            if is_over:
                yield Told(key, found.value, found.start, found.end)

    return read


def _no_name(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`Don't call me Jo`: the name is given up, whatever else is asked."""
    named = read_name(place.view, match.end(), is_said=True, most=2)
    if named is not None:
        yield Told("user.nickname", named.value, named.start, named.end)


ENDINGS: tuple[Rule, ...] = (
    make_rule("not called so", r"\s?(?:please |pls )*(?:don't|do not|never|stop)(?: ever)? call(?:ing)? me ", _no_name, leaves_out="terse"),
    make_rule("not called so", r"(?: don't| do not|'d rather not| hate to|'d rather you didn't)(?: like| want)?(?: it when people| to be| being| people)? call(?:ed|ing)?(?: me)? ", _no_name),
    make_rule("not called so", r" (?:don't|no longer) go by ", _no_name),
    make_rule("no longer lives in", rf"{_NOT} (?:actually )?live in ", _where),
    make_rule("no longer lives in", rf"{_AM_NOT} (?:living|based) in ", _where),
    make_rule("moved away from", rf"{_HAVE} moved (?:away from|out of) ", _where),
    make_rule("no longer works for", rf"{_NOT} work (?:at|for) ", _firm),
    make_rule("left a job", rf"{_LEFT} my (?:job|position|role|post)\b", _left),
    make_rule("left a job", rf"{_HAVE} (?:quit|resigned from|retired from) (?=[a-z])", _firm),
    make_rule("left a job", r"(?: was| got|'ve been| have been)(?: just)? (?:laid off|fired|let go)(?! up)\b", _left),
    make_rule("no longer eats so", rf"{_AM_NOT} (?:a |an )?(?:strict )?(?P<value>{DIETS})\b(?! (?:enough|yet))", _what("user.diet")),
    make_rule("no longer eats so", rf"{_HAVE} (?:stopped|quit|gave up|given up) being (?:a |an )?(?P<value>{DIETS})\b(?![ -](?:friendly|curious))", _what("user.diet")),
    make_rule("no longer eats so", rf"{_HAVE} (?:(?:stopped|quit|gave up|given up|dropped)(?: doing| eating| going)?|finished (?:being|doing)) (?P<value>{DIETS}){_NO_NOUN}", _what("user.diet")),
    make_rule("no longer eats so", rf"{_HAVE} (?:stopped|quit|gave up|given up|dropped|finished|ended|abandoned)(?: doing| following| with)? (?:a |an |the |my |our |that )?(?:strict )?(?P<value>{DIETS})(?:(?<= diet)| diet){_NO_NOUN}", _what("user.diet")),
    make_rule("no longer eats so", rf"(?:'m| am) (?:done|finished|through) (?:with|being|doing) (?P<value>{DIETS})(?: diet)?{_NO_NOUN}", _what("user.diet")),
    make_rule("bears it", rf"{_AM_NOT} (?:actually |really |even )?(?P<value>[a-z]+(?:,? (?:and|or|nor) [a-z]+)?)[- ]intolerant\b(?! (?:enough|yet|to|of)\b)", _borne),
    make_rule("bears it", rf"{_AM_NOT} (?:actually |really |even )?intolerant to (?P<value>[a-z]+(?:,? (?:and|or|nor) (?:to )?[a-z]+)?){_STOP}", _borne),
    make_rule("bears it", r" (?:don't|do not|no longer) have (?:a |an |my |any )?(?P<value>[a-z]+) intolerance\b", _borne),
    make_rule("bears it", rf"{_HAVE} (?:outgrew|outgrown|got over|lost) my (?P<value>[a-z]+) intolerance\b", _borne),
    make_rule("eats again", rf" (?:eat|am eating|'m eating) (?P<value>{FOODS}) again\b", _what("user.avoids")),
    make_rule("no allergy", rf"{_AM_NOT} (?:actually |really )?allergic to (?P<value>[a-z]+(?: [a-z]+)?){_STOP}", _what("user.allergy")),
    make_rule("no allergy", r" (?:don't|do not|no longer) have (?:a|an|my) (?P<value>[a-z]+(?: [a-z]+)?) allergy\b", _what("user.allergy")),
    make_rule("no allergy", rf"{_HAVE} outgrew my (?P<value>[a-z]+(?: [a-z]+)?) allergy\b", _what("user.allergy")),
    make_rule("no longer likes", rf"{_NOT}(?: really)? (?:like|love|enjoy) ", _no_more("user.likes")),
    make_rule("no longer dislikes", rf"{_NOT} (?:hate|dislike) ", _no_more("user.dislikes")),
    make_rule("takes no more", rf"(?:{_NOT} take|{_HAVE} (?:stopped|quit) (?:taking|using)|{_AM_NOT} (?:on|taking)|(?:'m| am) off) {_VALUE}{_STOP}", _what("user.medication")),
    make_rule("has no children", rf"{_NOT} have (?:any )?(?:kids|children)\b", _none_of("user.children")),
    make_rule("has no more", rf"{_NOT} have (?:a |an |any |my |the )?{_VALUE}{_STOP}", _any_of("user.health", "user.pet", "user.dog", "user.cat", "user.owns")),
    make_rule("has no more", rf"{_HAVE} (?:sold|totall?ed|got rid of|gave away|traded in) my {_VALUE}{_STOP}", _any_of("user.owns")),
    make_rule("no longer speaks", rf"{_NOT} speak (?P<value>[a-z]+){_STOP}", _what("user.language")),
    make_rule("is no longer", rf"{_AM_NOT} (?P<value>married|single|engaged|muslim|christian|catholic|jewish|buddhist|hindu|religious){_STOP}", _any_of("user.relationship", "user.religion")),
    make_rule("no longer works as", rf"{_AM_NOT} (?:a|an) (?P<value>{JOBS})(?: any ?more| any longer)?{_STOP}", _what("user.job")),
    make_rule("no longer works as", rf"{_NOT} work as (?:a|an) (?P<value>{JOBS})\b", _what("user.job")),
)  # fmt: skip
