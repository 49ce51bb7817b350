"""Rules on what somebody aims at, and on dated trips and lasting appointments."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.memory.extraction.english.reading import ADVERB, BE, HAVE, make_rule, told
from muniment.memory.extraction.english.slots import Slot, read_doing, read_name, read_place
from muniment.memory.extraction.grammar import Place, Rule, Told

__all__ = ["PASSING", "RULES"]

_LASTING = re.compile(
    r"(?:learn (?:how|to|a |the |[a-z]+(?=$|[,.]| and))|improve my|become|reduce|cut (?:down|back)|lose (?:weight|some|\d)|save|quit (?:smoking|drinking|vaping|sugar|coffee|caffeine|social)|run (?:a|my first|the)|get (?:into|better at|fit|healthier|in shape|married|promoted|back into|certified|a degree)|start (?:a|my|an) (?:business|company|family|blog|career|garden|podcast|channel|youtube)|"
    r"travel|buy (?:a|my|our) (?:first )?(?:house|home|car|flat|apartment|condo)|read more|eat (?:healthier|less|more|better|cleaner)|exercise more|master|build (?:a|my|up) (?:business|career|muscle|house|home|portfolio|savings|strength)|write (?:a|my|an) (?:book|novel|memoir|screenplay)|open (?:a|my|an)|pursue|adopt|"
    r"stay (?:fit|healthy|active|consistent|in shape)|spend more|pay off|retire|graduate|publish|launch|make a difference|help (?:people|others|kids|the community|those)|work in|have (?:a family|kids|my own)|give back|earn|climb|compete|volunteer|"
    r"be (?:more (?:active|organized|productive|mindful|independent)|a better|an?|fluent|healthier)|go (?:back to (?:school|college|university|work)|to (?:college|grad|law|med|culinary)) |raise|transition|live (?:more|authentically|healthier|a healthier)|continue my|make (?:more|healthier))\b"
)
_LASTING_DOING = re.compile(
    r"(?:learning (?:how|to|a|the)|becoming|reducing|cutting (?:down|back)|losing|saving|quitting|running (?:a|my|for)|getting (?:into|better at|fit|married|a degree|certified|a dog|a cat|a pet)|starting (?:a|my|an)|traveling|buying (?:a|my|our) (?:first |new )?(?:house|home|car|flat|apartment|condo|place)|mastering|building (?:a|my|up)|"
    r"writing (?:a|my|an)|opening (?:a|my|an)|pursuing|adopting|publishing|launching|going (?:back to (?:school|college|university|work)|to (?:college|grad|law|med))|volunteering|working in|counseling|teaching|helping|a career|a degree|a master's|law school|med school|grad school)\b"
)
_BY_DATE = re.compile(
    r"by (?:the end of |early |late |mid-?)?(?:january|february|march|april|may|june|july|august|september|october|november|december|next (?:week|month|year|summer)|the end of|\d{4}|christmas|graduation)\b"
)


_CUT = re.compile(r" and (?:was|were|wondering|i|i'm|would|need|am)\b")


def _aimed_at(place: Place, at: int) -> Slot | None:
    """What follows, without what another verb says behind it."""
    found = read_doing(place.view, at, 16)
    if found is None:
        return None
    cut = _CUT.search(place.view.text, found.start, found.end)
    end = cut.start() if cut is not None else found.end
    for last in (" and", " to", " of", " for", " the", " a"):
        if place.view.text[found.start : end].endswith(last):
            end -= len(last)
    return Slot(place.view.verbatim(found.start, end), found.start, end)


def _aim(match: re.Match[str], place: Place) -> Iterator[Told]:
    """An aim in so many words: whatever follows is it."""
    found = _aimed_at(place, match.end())
    if (
        found is not None
        and len(found.value.split()) > 1
        and not re.match(
            r"(?:know|ask|see if|get your|hear|say|share|thank|tell|find out|make sure|check|be sure|use this)\b",
            found.value.lower(),
        )
    ):
        yield told(place, "goal", found.value, found)


def _lasting_aim(match: re.Match[str], place: Place) -> Iterator[Told]:
    """An aim if what follows is something that lasts."""
    text = place.view.text
    stop = re.compile(r"[,;!?]| but | so ").search(text, match.end())
    is_dated = _BY_DATE.search(text, match.end(), stop.start() if stop is not None else len(text)) is not None
    if _LASTING.match(text, match.end()) or (is_dated and place.subject.left_out == "no"):
        yield from _aim(match, place)


_WISHED = re.compile(
    r"(?:become|learn (?:how to|to|[a-z]+(?=$|[,.]))|run a|write a (?:book|novel|memoir)|start (?:a|my own) (?:business|company|family)|own a|travel|buy a (?:house|home)|adopt|open (?:a|my own)|pursue|lose weight|invest|retire|be an?|live authentically|help (?:people|others)|make a difference|give back|have (?:a family|kids))\b"
)


def _wish(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I want to become a nurse`: a wish that lasts."""
    if _WISHED.match(place.view.text, match.end()):
        yield from _aim(match, place)


def _lasting_doing(match: re.Match[str], place: Place) -> Iterator[Told]:
    if _LASTING_DOING.match(place.view.text, match.end()):
        yield from _aim(match, place)


_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_WHEN = re.compile(
    rf"[a-z' ]{{0,40}}?,? ?(?:in|on|from|this|next|for|over|during|between|around|at the end of|)? ?"
    rf"(?P<value>(?:early |late |mid-? ?)?{_MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?)?(?: ?(?:-|–|to|until|and) ?(?:{_MONTH} )?\d{{1,2}}(?:st|nd|rd|th)?)?(?:,? \d{{4}})?|\d{{1,2}}(?:st|nd|rd|th)?(?: ?(?:-|–|to) ?\d{{1,2}}(?:st|nd|rd|th)?)? (?:of )?{_MONTH}(?: \d{{4}})?|"
    r"(?:this|next) (?:summer|winter|spring|fall|autumn|month|year|week|weekend|christmas)|\d{1,2}/\d{1,2}(?: ?- ?\d{1,2}/\d{1,2})?)(?![a-z])"
)
_WITH = re.compile(r"[\w' ,-]{0,40}?\b(?:with|w/) (?:my (?:[a-z]+ ){1,2})?(?=[a-z])")
_LONG = re.compile(
    r"[a-z' ]{0,30}?for (?:about |around )?(?P<value>(?:\d+|a|one|two|three|four|five|six|seven|ten|a few|a couple of) (?:days|weeks|months|week|month|nights|day))\b"
)


def _trip(match: re.Match[str], place: Place) -> Iterator[Told]:
    """A trip to a place, with when, how long and with whom."""
    where = read_place(place.view, match.end())
    if where is None:
        return
    text, name = place.view.text, place.view.text[where.start : where.end].removeprefix("the ").partition(",")[0]
    trip = f"trip.{name.replace(' ', '_')}"
    when = _WHEN.match(text, where.end)
    if when is not None:
        yield Told(f"{trip}.dates", place.view.verbatim(*when.span("value")), *when.span("value"))
    lasting = _LONG.match(text, where.end)
    if lasting is not None:
        yield Told(f"{trip}.duration", place.view.verbatim(*lasting.span("value")), *lasting.span("value"))
    company = _WITH.match(text, where.end)
    named = read_name(place.view, company.end(), most=2) if company is not None else None
    if named is not None:
        yield Told(f"{trip}.companion", named.value, named.start, named.end)


_HOURS = re.compile(
    r"(?P<value>(?:from )?\d{1,2}(?::\d{2})? ?(?:am|pm)?\s?(?:-|–|to|till|until)\s?\d{1,2}(?::\d{2})? ?(?:am|pm)?(?: (?:on |every )?[a-z, ]{3,40}?days?)?|(?:the )?(?:night|day|early|late|evening|morning|graveyard) shifts?|nights|weekends|part[- ]time|full[- ]time|(?:mon|tues|wednes|thurs|fri|satur|sun)days?(?: (?:to|through|-|and) (?:mon|tues|wednes|thurs|fri|satur|sun)days?)?)(?![\w-])"
)


def _hours(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = _HOURS.match(place.view.text, match.end())
    if found is not None:
        yield told(place, "schedule", place.view.verbatim(*found.span("value")), found.span("value"))


_GOING = rf"(?:{BE}|{BE} planning on|{BE} planning)?{ADVERB}\s?(?:going|flying|traveling|travelling|heading|off|driving|visiting|planning a trip|planning a vacation|planning a holiday|taking a trip|have a trip|'ve got a trip|'ve booked a trip|booked a trip|booked flights|planning to (?:go|travel|fly|visit)|planning on (?:going|traveling|visiting)|going on a trip|planning a (?:solo |family |road |business |backpacking |weekend |two-week |\d-day )?(?:trip|vacation|holiday|getaway))(?: back| over| down| up| away)?(?: on [a-z]+)?(?: from [a-z ]{{2,30}}?)? (?:to )?"

RULES: tuple[Rule, ...] = (
    make_rule("trip", _GOING, _trip, 0.85, of="user", may_doubt=True, leaves_out="opening"),
    make_rule("goal", r" (?:main |ultimate |long-term |big |biggest |current |next |personal |career |fitness |lifelong )?(?:goal|goals|dream|dreams|aim|ambition|objective|plan|new year's resolution|resolution|target)(?:'s| is| are| has always been| for this year is|\s?:)(?: to| of)? ", _aim, 0.9, is_owned=True, may_doubt=True),
    make_rule("goal", rf"{HAVE}{ADVERB}(?: always wanted to| dreamed of| dreamt of| dreamed about|'ve wanted to| have wanted to) ", _aim, 0.85, may_doubt=True),
    make_rule("goal", r"always wanted to ", _aim, 0.85, may_doubt=True, leaves_out="opening"),
    make_rule("goal", rf"(?:{BE})?{ADVERB}\s?(?:training|saving(?: up)?|working toward|working towards|aiming) (?:for|to) ", _aim, 0.85, may_doubt=True, leaves_out="opening"),
    make_rule("goal", rf"{HAVE} set (?:a|myself a|my) (?:goal|target)(?: to| of)? ", _aim, 0.9, may_doubt=True),
    make_rule("goal", rf"(?:{BE}|{HAVE} been)?{ADVERB}\s?(?:trying|hoping|looking|planning|working|aiming|determined|keen|striving) (?:hard )?(?:to|on) ", _lasting_aim, 0.8, may_doubt=True, leaves_out="opening"),
    make_rule("goal", rf"{ADVERB}(?: want|'d love| would love| hope| plan| intend| wants| hopes| plans) to ", _wish, 0.8, may_doubt=True),
    make_rule("goal", rf"(?:{BE}|{HAVE} been){ADVERB}\s?(?:thinking (?:of|about)|considering|planning on|keen on|interested in|looking into|dreaming of|dreaming about|hoping for) ", _lasting_doing, 0.8, may_doubt=True),
    make_rule("schedule", rf"{ADVERB}(?: work| works| do|'m on| am on|'m working| am working) ", _hours, 0.85),
    make_rule("schedule", r" (?:shifts?|working hours|work hours|hours|schedule|work schedule)(?:'s| is| are)(?: mostly| usually| always)? ", _hours, 0.85, is_owned=True),
)  # fmt: skip

PASSING: tuple[Rule, ...] = (
    make_rule("trip", r"\bmy (?:upcoming |next |first |solo |family |business |road |\d-day |two-week )*(?:trip|vacation|holiday|honeymoon|flight) to ", _trip, 0.85, may_ask=True, may_doubt=True),
    make_rule("goal", r"\b(?:it's been a dream|it's (?:always been )?my dream|a deadline(?= to)|(?:first )?steps? towards?|my (?:main |ultimate )?(?:goal|dream|aim) (?:of|is)) (?:to )?", _aim, 0.85, may_ask=True, may_doubt=True),
)  # fmt: skip
