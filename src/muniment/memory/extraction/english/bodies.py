"""Rules on what somebody eats, and what their body does not bear: diets, intolerances, allergies, what is avoided.

Never what only sounds so: nobody's body is intolerant to bullies, and a noun behind the words makes them of it
(`lactose intolerant recipes`).
"""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.memory.extraction.english.reading import (
    ADVERB,
    BE,
    ENDS,
    HAVE,
    JOINTS,
    OVER,
    group,
    is_we,
    make_rule,
    told,
)
from muniment.memory.extraction.english.words import ALLERGENS, DIETS, FOODS, HEALTH, NO_ALLERGENS, NOT_BORNE
from muniment.memory.extraction.grammar import Place, Rule, Told

__all__ = ["BODIES"]

_NO_MORE = re.compile(
    r" (?:for (?:now|lent|a (?:week|month|while))|except|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|this week|today|curious|yet|until|once in)\b|-curious"
)
_EATERS = "(?:lacto-|ovo-|raw )?(?:vegetarian|vegan|pescatarian|pescetarian|flexitarian|fruitarian|carnivore|omnivore)"
"""Words for people who eat so, which have a plural."""
_STATE = rf"(?:{HEALTH}|(?:{NOT_BORNE})[- ]intolerant|intolerant to (?:{NOT_BORNE}))"
_NO_STATE = rf"(?! as an? )(?!(?:(?:,|,? and|,? or) {_STATE})+(?!{OVER}) [a-z])"
"""`blind as a bat`; `deaf and blind people`."""


# -- diets ------------------------------------------------------------------------------------------------


def _diet_and_state(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I'm vegetarian and lactose intolerant`."""
    yield told(place, "diet", match["value"].lower(), match.span("value"))
    yield told(place, "health", place.view.verbatim(*match.span("state")), match.span("state"))


_BARE_DIET = re.compile(r"(?:vegan|vegetarian|pescatarian)(?: here| btw|$|[,.!] (?:so|any|what|can))")
_NOT_ME = re.compile(
    r"\b(?:except|excepting|excluding|apart from|aside from|other than|all but|everyone but|but|besides|save|bar|minus|not)(?: for)? (?:me|myself|yours truly)\b"
    r"|\bi(?:'m| am) (?:not|no)(?=$|[,.!;)]| (?:one|a|an|myself|vegetarian|vegan|though|yet)\b)"
    r"|\bi(?:'m| am) (?:the (?:only|one|odd|exception)|an exception|an omnivore|a meat)"
    r"|\bi (?:still |do |also )*(?:eat|love|like) (?:meat|fish|steak|beef|pork|chicken|bacon|burgers|sausages)\b"
)
_CROWD = re.compile(
    r"(?: all| mostly)? (?:at work|around here|(?:at|in|on) (?:this|the|my|our) (?:town|office|village|city|country|company|firm|team|region|state|school|class|street|neighbou?rhood))\b"
)
"""Of whom somebody says `we` and may not mean themselves."""


def _diet(match: re.Match[str], place: Place) -> Iterator[Told]:
    text, span = place.view.text, match.span("value")
    is_bare = place.subject.left_out == "terse" and not place.talk.is_own
    if is_bare and not _BARE_DIET.match(text, span[0]):
        return
    if is_we(place) and (_NOT_ME.search(text, span[1]) or _CROWD.match(text, match.end())):
        return
    if not _NO_MORE.match(text, span[1]):
        yield told(place, "diet", match["value"].lower(), span)


# -- what the body does not bear ------------------------------------------------------------------------------


_BARE_STATE = re.compile(
    r"$|[.!;)…]| (?:here|btw|by the way|too|myself|since|because)\b|, (?:so|any|what|can|i|i'm|my|and|but|please|help|need|looking)\b"
)


def _intolerance(match: re.Match[str], place: Place) -> Iterator[Told]:
    """What the body does not bear is health, whatever else somebody eats: `user.diet` has one value at a time."""
    is_bare = place.subject.left_out == "terse" and not place.talk.is_own
    if is_bare and not _BARE_STATE.match(place.view.text, match.end("value")):
        return
    if match["first"]:
        first = place.view.verbatim(*match.span("first"))
        yield told(place, "health", f"{first} intolerant", match.span("first"))
    yield from group("health")(match, place)


_BORNE_NOT = re.compile(
    rf"(?:all |most |some |any |the )?(?P<value>{NOT_BORNE})(?: products| proteins?)?(?![\w-]){OVER}"
)


def _intolerances(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I'm intolerant to gluten and lactose`."""
    text, at = place.view.text, match.end()
    for _ in range(6):
        found = _BORNE_NOT.match(text, at)
        if found is None:
            return
        yield told(place, "health", f"intolerant to {place.view.verbatim(*found.span('value'))}", found.span("value"))
        joint = JOINTS.match(text, found.end())
        if joint is None:
            return
        at = joint.end()


def _allergens(match: re.Match[str], place: Place) -> Iterator[Told]:
    text, at, count = place.view.text, match.end(), 0
    while count < 6:
        found = re.compile(
            r"(?:all |most |some |any |the )?(?P<value>[a-z]+(?:[- ](?!too\b|as\b|and\b|or\b|so\b|but\b|which\b|btw\b|if\b|in\b|i\b|lol\b|since\b|also\b|that\b|is\b|are\b|can\b|my\b|we\b)[a-z]+)?)"
        ).match(text, at)
        if (
            found is None
            or any(word in NO_ALLERGENS for word in found["value"].split())
            or (count and not _is_allergen(found["value"]))
        ):
            return
        count += 1
        yield told(place, "allergy", place.view.verbatim(*found.span("value")), found.span("value"))
        joint = JOINTS.match(text, found.end())
        if joint is None:
            return
        at = joint.end()


_ALLERGEN = re.compile(rf"(?:{ALLERGENS})")


def _is_allergen(text: str) -> bool:
    return _ALLERGEN.match(text) is not None


def _listed_allergens(match: re.Match[str], place: Place) -> Iterator[Told]:
    for each in _allergens(match, place):
        if _is_allergen(str(each.value).lower()):
            yield each


def _named_allergy(match: re.Match[str], place: Place) -> Iterator[Told]:
    if not any(word in NO_ALLERGENS for word in match["value"].split()):
        yield told(place, "allergy", place.view.verbatim(*match.span("value")), match.span("value"))


def _avoided(match: re.Match[str], place: Place) -> Iterator[Told]:
    text, at = place.view.text, match.end()
    for _ in range(6):
        found = re.compile(rf"(?:any |much |too much |a lot of |anything with )?(?P<value>{FOODS})\b").match(text, at)
        if found is None or re.compile(
            r" (?:on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|today|tonight|this week|yet|right now)\b"
        ).match(text, found.end()):
            return
        yield told(place, "avoids", place.view.verbatim(*found.span("value")), found.span("value"))
        joint = JOINTS.match(text, found.end())
        if joint is None:
            return
        at = joint.end()


BODIES: tuple[Rule, ...] = (
    make_rule("diet", rf"{BE}{ADVERB}\s?(?:a |an )?(?P<value>{DIETS}),? (?:and|but) (?:also |i'm |i'm also )?{ADVERB}\s?(?P<state>{_STATE})(?![\w-]){_NO_STATE}{ENDS}", _diet_and_state, 0.95),
    make_rule("diet", rf"(?:{BE}|{HAVE} been)?{ADVERB}\s?(?:a |an |on a )?(?:strict |lifelong |committed |mostly |fully |100% )?(?P<value>{DIETS})(?![\w-])(?! (?:option|recipe|restaurant|meal|dish|food|friendly|place|cake|cheese|version)s?)", _diet, 0.95, leaves_out="terse"),
    make_rule("diet", rf"(?:(?:'re| are)(?: both| all)?|{HAVE} been){ADVERB}\s?(?:strict |lifelong |committed |mostly |fully )?(?P<value>{_EATERS})s(?![\w-])", _diet, 0.95),
    make_rule("diet", rf"{HAVE}{ADVERB}\s?(?:became|become|turned) (?P<value>{_EATERS})s(?![\w-])", _diet, 0.9),
    make_rule("intolerance", rf"(?:{BE})?{ADVERB}\s?(?:(?P<first>{NOT_BORNE}),? (?:and|or) )?(?P<value>(?:{NOT_BORNE})[- ]intolerant)(?![\w-]){OVER}", _intolerance, 0.95, leaves_out="terse"),
    make_rule("intolerance", rf"{BE}{ADVERB}\s?intolerant to ", _intolerances, 0.95),
    make_rule("diet", rf"{HAVE}{ADVERB}\s?(?:became|become|went|gone|turned|going) (?:a |fully |completely )?(?P<value>{DIETS})(?![\w-])", _diet, 0.9, leaves_out="opening"),
    make_rule("diet", r" (?:only eat|eat only|keep|keeps|eat|follow|follows|eats only|only eats) (?:a |an |strictly )?(?P<value>halal|kosher|vegan|vegetarian|plant-based|keto|paleo|gluten-free|low-carb|mediterranean)(?: food| meat| diet)?(?=$|[,.!])", _diet, 0.9),
    make_rule("diet", rf"{BE} on (?:a |an |the )?(?P<value>(?:[a-z]+[- ])?(?:keto|paleo|vegan|low-carb|low carb|gluten-free|mediterranean|vegetarian|carnivore|low sodium|low-sodium|diabetic))(?: diet)?(?=$|[,.!]| (?:and|now|since|so|for))", _diet, 0.9),
    make_rule("avoids", r" (?:don't|do not|doesn't|does not|can't|cannot|never|won't)(?: really| usually)? (?:eat|have|drink|do|touch|tolerate) ", _avoided, 0.9, negates=True),
    make_rule("avoids", rf"{ADVERB}\s?(?:avoid|avoids|am avoiding|have to avoid) ", _avoided, 0.9),
    make_rule("avoids", rf"{HAVE}{ADVERB} (?:quit|given up|gave up|cut out|stopped eating|stopped drinking) ", _avoided, 0.85),
    make_rule("allergy", rf"(?:{BE})?{ADVERB}\s?allergic to ", _allergens, 0.95, leaves_out="terse"),
    make_rule("allergy", rf"{ADVERB}(?: have| has|'ve got| got) (?:a|an) (?:severe |bad |mild |serious |terrible |slight )?(?P<value>[a-z]+(?: [a-z]+)?) allergy\b", _named_allergy, 0.95),
    make_rule("allergy", r"\s?(?:food )?allergies(?:\s?:| are| include) ", _listed_allergens, 0.9, is_owned=True, leaves_out="opening"),
)  # fmt: skip
