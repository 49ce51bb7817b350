"""What a message says of its speaker that lasts and bears on advice, beyond what becomes a fact (MP-17).

"We write everything in Go", "our data must stay in the EU", "I'm afraid of flying", "money is tight": no key of a fact
holds these, and who asks for advice is helped by them. They are read as facts are, by the same guards: nothing asked,
supposed, wished for, reported or quoted, nothing of somebody else. Pure; proposes to no store.
"""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby

from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.english.grammar import ENGLISH
from muniment.memory.extraction.english.reading import group, make_rule, told
from muniment.memory.extraction.english.slots import read_place
from muniment.memory.extraction.english.words import either
from muniment.memory.extraction.grammar import Grammar, Place, Reader, Rule, Talk, Told
from muniment.memory.extraction.languages.choice import language_of
from muniment.memory.extraction.sentences import sentences
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["propose_standing", "read_with", "technology_words", "unsupposed", "with_rules"]

_WORDS = WordList(__package__, "standing.txt")
_SAID_MAX = 20
"""In one message: more is a list, and nobody's plain word."""
_REST = r"[^.!?;]{0,100}"
_HOW = r"(?: (?:all|also|already|always|both|currently|mainly|mostly|only|primarily|still|usually|now|just|really|do|exclusively|generally|strictly|never|rarely|normally))*"
_CAN_NOT = r"(?:can't|cannot|can not|couldn't|am unable to|'m unable to|'m not able to|don't|do not|never)"
_LASTING = (
    r"(?=\s*(?:[,.!;)]|$)| (?:at all|any ?more|because|since|with|due|well|very|much|far|long|anything|heavy|weights|an? (?:car|bike|bicycle|horse|motorbike)"
    r"|bikes?|cars?|horses|at night|in the dark|in traffic|on (?:motorways|highways)|for long|more than|and|or|but|yet|planes?|on planes?)\b)"
    r"(?![^.!?;]{0,60}\b(?:today|tonight|tomorrow|this (?:morning|afternoon|evening|week|weekend|month)|until|(?:mon|tues|wednes|thurs|fri|satur|sun)day|now i can)\b)"
)
"""Behind what somebody cannot do: that they cannot at all, and not just now, or in a manner of speaking."""
_BE = r"(?:'m| am|'re| are)"


@cache
def technology_words() -> frozenset[str]:
    """Words of software and machines."""
    return frozenset(_WORDS.words("technology"))


def propose_standing(text: str, role: str, ts: str) -> list[Proposal]:
    """What the text says for sure of how things lastingly are with its speaker. Only users speak of themselves."""
    return read_with(_grammar(), text, role, ts)


def read_with(grammar: Grammar, text: str, role: str, ts: str) -> list[Proposal]:
    """What the rules of a grammar read in the English sentences of a text."""
    if role != "user":
        return []
    talk, found = Talk(ts), []
    for language, said in groupby(sentences(text), lambda sentence: language_of(sentence.text, text)):
        if language == "english":
            found += grammar.propose(text, list(said), talk)
    kept = [proposal for proposal in found if proposal.quote in text]
    return kept if len(kept) <= _SAID_MAX else []


@cache
def _grammar() -> Grammar:
    return with_rules(_rules())


def with_rules(rules: tuple[Rule, ...]) -> Grammar:
    """English with other rules and the same guards."""
    return replace(
        ENGLISH, rules=(), passing=rules, endings=(), correct=None, mend=None, around=None, accepts=None, wide=None
    )


def _rules() -> tuple[Rule, ...]:
    return (*_work_rules(), *_limit_rules(), *_means_rules(), make_rule("standing base", _WE_LIVE, _base))


def _read(attribute: str, pattern: str, *, may_doubt: bool = False) -> Rule:
    """A rule whose value is what it says. With `may_doubt`, words that else tell of a doubt belong to it (`have to`)."""
    read = unsupposed(attribute) if may_doubt else group(attribute)
    return make_rule(f"standing {attribute}", pattern, read, negates=True, may_doubt=may_doubt)


def _read_by(read: Reader, attribute: str, pattern: str, *, may_doubt: bool = False) -> Rule:
    return make_rule(f"standing {attribute}", pattern, read, negates=True, may_doubt=may_doubt)


_SUPPOSED = re.compile(
    r"\b(?:if|unless|whether|would|could|might|should|maybe|perhaps|probably|possibly|wish|imagine|suppose|assuming|pretend"
    r"|used to|when i was|back then|thinking|hope|hoping|tomorrow|will|shall|let's|jok(?:e|ing)|kidding|almost|had to)\b|'(?:ll|d)\b"
)


def unsupposed(attribute: str) -> Reader:
    """The value as it was written, where its clause supposes nothing, wishes for nothing and is no story of before."""
    read = group(attribute)

    def read_plain(match: re.Match[str], place: Place) -> Iterator[Told]:
        stop = max(match.end(), place.clause.end)
        if _SUPPOSED.search(place.view.text, place.clause.start, stop) is None:
            yield from read(match, place)

    return read_plain


_IN_CODE = re.compile(r"\b(?:write|writing|written|code|program|develop|build|built)\b.{0,40} in (?!spring\b)(\w+)")


def _stack(match: re.Match[str], place: Place) -> Iterator[Told]:
    """What somebody works with, where it names a technology for sure: `rust` is one in `we write it in rust`."""
    for each in group("stack")(match, place):
        if _names_technology(str(each.value)):
            yield each


def _names_technology(text: str) -> bool:
    also_words = frozenset(_WORDS.words("also a word"))
    named = technology_words() - frozenset(_WORDS.words("too general"))
    coded = {found.casefold() for found in _IN_CODE.findall(text)}
    words = [word.strip(".,!?:;()\"'") for word in text.split()]
    for before, word in zip(("", *words), words, strict=False):
        small = word.casefold()
        is_a_name = word != small and before != "with"  # with Julia, with Ruby: somebody, it may be
        if small in named and (small not in also_words or is_a_name or small in coded):
            return True
    return False


def _duty(match: re.Match[str], place: Place) -> Iterator[Told]:
    """What must be, where it is of the work: of one's own duties only where a technology or a rule is named."""
    for each in unsupposed("constraint")(match, place):
        text = str(each.value)
        words = set(_DUTY_WORD.findall(text.casefold()))
        is_of_work = not words.isdisjoint(_WORDS.words("rules of work")) or _names_technology(text)
        is_own = text[:2].casefold() == "i "
        if is_of_work or (not is_own and not words.isdisjoint(technology_words())):
            yield each


_DUTY_WORD = re.compile(r"[\w+#.-]*[\w+#]")
_WE_LIVE = rf"\bwe(?:'ve| have)?{_HOW} (?:live|moved|relocated|settled)(?: back| over| down| out)? (?:in|to) "


def _base(match: re.Match[str], place: Place) -> Iterator[Told]:
    """Where a family lives. A `we` may be a firm, so it becomes no fact, and what a firm moves to is none."""
    found = read_place(place.view, match.end())
    if found is not None and technology_words().isdisjoint(found.value.casefold().split()):
        yield told(place, "base", found.value, found)


def _work_rules() -> tuple[Rule, ...]:
    """What somebody works with, and what it must do."""
    named = rf"(?<![\w-])(?:{either(tuple(sorted(technology_words())))})(?![\w-])"
    ours = r"(?:our|my) (?:[a-z-]+ ){0,3}?[a-z-]+"
    product = r"(?:the (?:app|application|service|services|system|site|website|product|platform|project|software|code|data|database|api|tool|team|company|client|customer))"
    must = r"(?:must|has to|have to|needs? to|can only|may only|can't|cannot|must not|mustn't|may not|(?:is|are|'s|'re) (?:not |only )?(?:allowed|required|permitted|supposed|bound) to|(?:isn't|aren't) allowed to)"
    return (
        _read_by(_stack, "stack", rf"\b(?P<value>(?:i|we){_HOW}(?: don't| do not| no longer)? (?:use|run|write|code|program|develop|deploy|host|build|ship|maintain|work)\b[^.!?;]{{0,50}}?{named}{_REST})"),
        _read_by(_stack, "stack", rf"\b(?P<value>(?:all )?{ours} (?:is|are|runs?|lives?|works?|uses?)\b[^.!?;]{{0,50}}?{named}{_REST})"),
        _read_by(_stack, "stack", rf"\b(?P<value>(?:everything|all of it) (?:here )?(?:is|runs|lives) (?:written |built |hosted |deployed )?(?:in|on|with) [^.!?;]{{0,30}}?{named}{_REST})"),
        _read_by(_stack, "stack", rf"\b(?P<value>we{_BE}{_HOW} (?:on|using|running|stuck with|stuck on|hosted on|built on|an? (?:[a-z+#.-]+ ){{1,2}}shop)\b[^.!?;]{{0,30}}?(?:{named}{_REST}|shop))"),
        _read("team", rf"\b(?P<value>(?:we{_BE}|we have|our team is|i(?:'m| am) in|i work in) (?:only )?(?:an? )?(?:small |large |tiny |big )?(?:team|startup|start-up|company|firm|group|shop) of (?=[^.!?;]{{0,30}}?\b(?:\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|a dozen|a few|developers|engineers|people|designers|students|nurses|teachers)\b)(?![^.!?;]*\bgame){_REST})"),
        _read("team", r"\b(?P<value>(?:i(?:'m| am)|we(?:'re| are)) (?:building|developing|doing|making|running|maintaining) (?:this|it|the [a-z]+)(?: all)? (?:alone|by (?:myself|ourselves)|on my own|as a solo [a-z]+)(?! in (?:the|a|this) game))"),
        _read_by(_duty, "constraint", rf"\b(?P<value>(?:we|i|{ours}|{product}){_HOW} {must} (?:be |not |only |comply|support|work|run|stay|use|keep|store|handle|meet|fit|scale|ship){_REST})", may_doubt=True),
        _read("constraint", rf"\b(?P<value>(?:we|i)(?:'re| are|'m| am|aren't| aren't) (?:not )?(?:allowed|permitted|required) to (?!tell|say|talk|discuss|know|leave|go|come|be|disclose|complain|touch|sit|see|speak|ask){_REST})", may_doubt=True),
    )  # fmt: skip


def _limit_rules() -> tuple[Rule, ...]:
    """What somebody cannot do, is afraid of, lives with."""
    aids = either(
        (
            "wheelchair",
            "walker",
            "rollator",
            "cane",
            "crutches",
            "hearing aid",
            "hearing aids",
            "guide dog",
            "walking stick",
        )
    )
    kin = r"(?:i|my (?:[a-z]+ ){0,2}?[a-z]+)"
    return (
        _read("limit", rf"\b(?P<value>i(?:'m| am){_HOW} (?:so |very |really |terribly |a bit |deathly )?(?:afraid|scared|terrified|frightened) of (?!what\b|that\b|it\b|nothing\b|no\b|no one\b|nobody\b|losing\b|missing\b|asking\b|saying\b|being\b|(?:the|my|this|an?) (?:exam|test|interview|result|future|meeting|answer|boss)){_REST})", may_doubt=True),
        _read("limit", rf"\b(?P<value>i (?:have|suffer from) (?:a |an )?(?:terrible |bad |real )?(?:fear of|phobia of|vertigo|claustrophobia){_REST})"),
        _read("limit", rf"\b(?P<value>i{_HOW} {_CAN_NOT}(?: really)? (?:do|cope|deal|sit|stand|walk|sleep) (?:very |so |that )?(?:well|for long|far){_REST})"),
        _read("limit", rf"\b(?P<value>i{_HOW} (?:can't|cannot|can not|never learned to|never learnt to|'m not able to|am not able to|don't) (?:really )?(?:swim|drive|ride|cycle|ski|climb|lift|run|jump|kneel|fly|cook|bake|sew|dance|sing)\b{_LASTING}{_REST})"),
        _read("limit", rf"\b(?P<value>i{_HOW} (?:can't|cannot|can not|don't) (?:tolerate|handle|take|bear|like) (?:the )?(?:heat|cold|sun|sunlight|crowds?|noise|heights|stairs|caffeine|spice|spicy)\b(?! from\b| of\b){_REST})"),
        _read("limit", rf"\b(?P<value>{kin} (?:uses?|needs?|walks? with|relies on|gets? around (?:in|with)) (?:a |an |his |her |my )?(?:electric )?(?:{aids})\b(?! (?:seat|chair|ramp|access)){_REST})"),
        _read("limit", rf"\b(?P<value>i(?:'m| am){_HOW} (?:a bit |very |completely |partly |legally |partially )?(?:colou?r[- ]?blind|left-handed|short-sighted|near-sighted|nearsighted|hard of hearing|deaf|blind|dyslexic|housebound|claustrophobic)\b(?! drunk| date| spot| to (?:his|her|their|the|its|this|that|your|my)\b){_REST})"),
        _read("limit", rf"\b(?P<value>i (?:have|'ve got) (?:very |really )?(?:small|big|large|tiny|wide|narrow|flat|sensitive|dry|oily|weak|bad|poor) (?:hands|feet|skin|teeth|eyes|eyesight|hearing|stomach|ankles?|wrists?)\b(?! to fill| for (?:music|detail)){_REST})"),
        _read("schedule", rf"\b(?P<value>(?:i|we){_HOW} (?:only |just )?have (?:only )?(?:time|(?:about |around )?(?:\w+ ){{1,2}}(?:minutes|hours?)(?: free)?) (?:before|after|in|on|at|between|until|a day|a week|per|each|every)\b{_REST})"),
        _read("schedule", rf"\b(?P<value>(?:i|we){_HOW} work (?:the )?(?:night|late|early|rotating|weekend|day|evening) ?(?:shifts?|s)\b{_REST}|(?:i|we){_HOW} work (?:nights|weekends|evenings|shifts)\b{_REST})"),
    )  # fmt: skip


def _means_rules() -> tuple[Rule, ...]:
    """What somebody can spend, and what they have to do with."""
    money = rf"(?:[$€£] ?\d[\d.,]*k?|\d[\d.,]*k? ?(?:[$€£]|{either(_WORDS.words('currencies'))}\b))"
    things = either((*_WORDS.words("things of a home"), "washing machine", "air conditioning", "credit card"))
    willing = (
        r"(?:can't|cannot|can not|don't want to|do not want to|won't|can only|can|want to|am willing to|'m willing to)"
    )
    sum_ = rf"(?:{money}|(?:so |too |that |very )?much\b(?! (?:time|attention|longer|of|heed))|a (?:lot|fortune)\b(?! of (?:time|attention))|\d[\d.,]*\b(?! ?(?:minutes|hours|days|weeks|weekends|nights|months|years|times|%|percent)))"
    behind = r"(?=\s*(?:[,.!;)]|$)| (?:right|now|here|at|in|any|so|and|but|because|for|yet|either|anymore|to|or|since|nor|with|though|these|this|where|anyway|currently|left|myself|there)\b)"
    return (
        _read("budget", rf"\b(?P<value>(?:my|our) (?:[a-z-]+ ){{0,3}}?budget(?: [a-z ]{{1,40}}?)? (?:is|are|was set (?:at|to)) (?!what\b|none of\b|a (?:joke|mess)){_REST})", may_doubt=True),
        _read("budget", rf"\b(?P<value>(?:i|we)(?:'m| am|'re| are|'ve got| have)?{_HOW} (?:on )?a (?:very |really |pretty )?(?:tight|small|limited|low|student|fixed|modest) budget{_REST})", may_doubt=True),
        _read("budget", rf"\b(?P<value>(?:money|cash) is (?:very |really |pretty |a bit |quite )?(?:tight|short|scarce){_REST})", may_doubt=True),
        _read("budget", rf"\b(?P<value>(?:i(?:'m| am)|we(?:'re| are)){_HOW} (?:broke|short of money|short on money|low on cash|saving (?:up|money)){_REST})", may_doubt=True),
        _read("budget", rf"\b(?P<value>(?:i|we){_HOW} {willing} (?:really )?afford (?!to (?!pay|buy|spend|rent|eat|go|travel|fly)|the (?:risk|time)|(?:an?|any) (?:mistakes?|delays?|risks?)){_REST})", may_doubt=True),
        _read("budget", rf"\b(?P<value>(?:i|we){_HOW} {willing} (?:really )?(?:spend|pay) (?:more than |at most |up to |about |around |over |only )*{sum_}{_REST})", may_doubt=True),
        _read("budget", rf"^(?:(?:please|so|and|but|well|ideally|preferably|okay|ok),? )*(?P<value>(?:no more than|not more than|at most|up to|under|nothing over|nothing above) {money}(?:,? (?:please|if possible|a night|a month|per [a-z]+|in total|max|each|all in|tops))*)[.!]*\s*$", may_doubt=True),
        _read("budget", rf"\b(?P<value>anything (?:over|above|beyond) {money} (?:is|would be) (?:too|out|more than|beyond|not){_REST})", may_doubt=True),
        _read("budget", rf"\b(?P<value>(?:i|we)(?: have|'ve got|'ve)(?: got)? (?:only |about |around |roughly |up to |just )*{money}(?: (?:to spend|for|left|a|per|each|every|saved|set aside|available|in total|all in|max|tops)\b{_REST}|(?=[.!]*\s*$)))", may_doubt=True),
        _read("lacks", rf"\b(?P<value>(?:i|we){_HOW} (?:don't|do not|no longer|haven't got|have no|own no)(?: (?:have|own|has))?(?: an?| any| my own| our own)? (?:[a-z]+ )?(?:{things}){behind}{_REST})"),
    )  # fmt: skip
