"""How people state what may change about somebody: for each key the ways to say it, and how the value is read.

English, with the plainest ways of Chinese and Korean. A way that is matched here is no more than a candidate: whose it
is, and whether it is meant, asked, denied or only thought of, is seen in `core.text.stated.statements`.
"""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.stated.attribute_table import WORDS

__all__ = ["DATE", "KIN", "Mode", "Reading", "Way", "ways"]

Mode = Literal["is", "changes", "ends"]
"""A state; a state that is told as new; the end of one."""
Reading = Literal["place", "name", "may be named", "thing", "words", "day", "none", "group"]
"""How the value behind a match is read: the name of a place, a name, one that may be left out, a name or a noun, whatever words stand there, a day
of the year, no value at all, the group `value` of the match."""


class Way(NamedTuple):
    """A way to state something. Only a text that has one of the words is looked through for it.

    Where the pattern has a group `base` or `third`, the form of the verb tells who may be its subject. A group `of`
    holds whose it is: "my", "my sister's", "Ana's".
    """

    key: str
    mode: Mode
    words: frozenset[str]
    pattern: re.Pattern[str]
    value: Reading


KIN = (
    r"(?:best friend|friend|(?:half |step)?(?:brother|sister)s?|twin|parents|mother|mom|mum|father|dad|sons?|daughters?|kids?|children"
    r"|girlfriend|boyfriend|wife|husband|partner|fianc[eé]e?|spouse|boss|manager|colleague|coworker|co-worker|roommate|flatmate"
    r"|neighbou?rs?|cousin|uncle|aunt|nephew|niece|grandmother|grandfather|grandma|grandpa|grandparents|in-laws|mother-in-law|father-in-law"
    r"|teacher|coach|ex|landlord)"
)
_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
DATE = rf"(?i:{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?|(?:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|\d{{4}}-\d{{2}}-\d{{2}})(?!\w)"
_NAME = r"[A-ZÀ-ÖØ-Þ][\w-]{0,40}"
_OF = rf"(?P<of>\b[Mm]y|\b[Oo]ur|\b(?:[Mm]y|[Oo]ur) (?:[a-z]+ )?{KIN}['’]s?|\b{_NAME}['’]s)"
_BE = r"(?:\b(?:am|is|are|was|been|be|being|now|currently|still|got|just|I)|['’](?:m|s|re|ve))"
_HOW = r"(?:(?:not|no longer|never|now|currently|still|actually|also|just|recently|happily|finally|newly|mostly|permanently|full[- ]time|part[- ]time|remotely|strictly|both) ){0,3}"
_COMPANION = r"(?:(?:alone|together|abroad|with (?:my|our|his|her|their|the|two|three) [a-z-]+(?: [a-z-]+)?(?: and (?:my|our|his|her|two|three)? ?[a-z-]+)?|here|back|over|up|down|out|away|again|recently|finally|permanently|there),? ){0,2}"
_JOB = r"(?:job|position|role|gig|internship|post)"
_ROLES = (
    "engineer developer programmer designer manager nurse doctor teacher lawyer accountant analyst scientist researcher consultant chef cook"
    " barista waiter waitress baker pilot architect editor writer journalist librarian pharmacist electrician mechanic driver cashier"
    " receptionist secretary assistant intern paramedic dentist vet therapist psychologist surgeon translator tutor professor lecturer"
    " recruiter economist biologist chemist physicist technician administrator director clerk salesperson realtor lead head"
)
_NO_MORE = r"(?! (?!(?:and|but|now|with|last|this|for|in|from|because|so|which|yesterday|today|recently|instead|since|too|as|that|to|when|after|before|at|on|again|anymore|these)\b)[a-z])"
"""The noun goes on: "a phone case" is no phone."""
_PARTNER = r"(?:girlfriend|boyfriend|wife|husband|partner|fianc[eé]e?|spouse)"
_OWN_THINGS = (
    r"(?:manager|boss|supervisor|doctor|dentist|therapist|coach|mentor|advisor|landlord|accountant|lawyer|trainer|hairdresser|vet"
    r"|phone number|mobile number|number|email(?: address)?|address|gym|school|university|college|major|team|bank|budget|rent|salary|weight|height"
    r"|age|shoe size|deadline|goal|laptop|computer|bike|nickname|username|insurance|provider|locker|seat|flight|hotel|timezone|time zone)"
)


def _way(key: str, mode: Mode, words: str, pattern: str, value: Reading) -> Way:
    return Way(key, mode, frozenset(words.split()), lazy_pattern(pattern), value)


def _homes() -> tuple[Way, ...]:
    return (
        _way("home", "is", "live lives reside resides", rf"\b(?:(?P<base>live|reside)|(?P<third>lives|resides)) {_HOW}{_COMPANION}(?:in|near|outside) ", "place"),
        _way("home", "is", "living based residing located", rf"(?:{_BE}|[,;]|\b(?:love|hate|enjoy|and)) {_HOW}(?:living|based|residing|located) {_HOW}{_COMPANION}(?:in|near|outside|out of) ", "place"),
        _way("home", "is", "home house flat apartment place", r"(?P<of>\b[Mm]y|\b[Oo]ur) (?:home|house|flat|apartment|place) is (?:now )?in ", "place"),
        _way("home", "is", "city residence address location", rf"{_OF} (?:current |home )?(?:city|place of residence|residence|location) is (?:now )?", "place"),
        _way("home", "changes", "moved relocated", rf"\b(?:[Mm]oved|[Rr]elocated) {_COMPANION}(?:from {_NAME}(?: {_NAME}){{0,2}},? )?{_COMPANION}(?:to|into) ", "place"),
        _way("home", "changes", "settled", rf"\b[Ss]ettled {_COMPANION}(?:down )?(?:in|near) ", "place"),
        _way("home", "changes", "call calls", rf"\b(?:(?P<base>call)|(?P<third>calls)) (?P<value>{_NAME}(?: {_NAME}){{0,2}}) home\b", "group"),
        _way("home", "changes", "home", rf"(?P<value>\b{_NAME}(?: {_NAME}){{0,2}}) is (?:now )?(?P<of>my|our) (?:new )?home\b", "group"),
        _way("home", "ends", "moved", r"\b[Mm]oved (?:away from|out of|on from) ", "place"),
    )  # fmt: skip


def _jobs() -> tuple[Way, ...]:
    return (
        _way("employer", "is", "work works", rf"\b(?:(?P<base>work)|(?P<third>works)) {_HOW}(?:as (?:a|an|the) (?:[a-z-]+ ){{1,4}})?(?:at|for) ", "thing"),
        _way("employer", "is", "working employed", rf"(?:{_BE}|[,;]|\band) {_HOW}(?:[Ww]orking|[Ee]mployed) {_HOW}(?:as (?:a|an|the) (?:[a-z-]+ ){{1,4}})?(?:at|for|by) ", "thing"),
        _way("employer", "is", _ROLES, rf"{_BE} {_HOW}(?:an?|the) (?:[a-z-]+ ){{0,3}}?(?:{_ROLES.replace(' ', '|')}) (?:at|for|with) ", "name"),
        _way("employer", "is", "employer company", rf"{_OF} (?:current )?(?:employer|company) is (?:now )?", "name"),
        _way("employer", "changes", "started began", r"\b(?:[Ss]tarted|[Bb]egan)(?: (?:working|work|a (?:new )?(?:job|role|position)|my (?:new )?job))? (?:at|with|for) ", "name"),
        _way("employer", "changes", "job position role gig internship post", rf"\b(?:(?:[Gg]ot|gotten|landed|accepted|[Tt]ook|taken|[Ss]tarted|found|secured) (?:an?|my|the) (?:[a-z]+ ){{0,2}}?|(?:(?:[Gg]ot|gotten|have|has|landed|[Ss]tarted|[Tt]ook|taken|accepted|found) )?(?:an? |[Mm]y )?[Nn]ew (?:[a-z]+ )?){_JOB} (?:as (?:a|an|the) (?:[a-z-]+ ){{1,4}})?(?:at|with|from|for) ", "thing"),
        _way("employer", "changes", "hired offer", r"\b(?:got|was|been|am|were) (?:just |recently )?hired (?:by|at) |\b(?:accepted|took|signed) (?:an|the) offer (?:at|from|with) ", "thing"),
        _way("employer", "changes", "joined", r"\bjoined (?=(?:the )?[A-Z][\w&.-]*(?: [A-Z][\w&.-]*){0,2}(?: \w+)? as\b)|\bjoined the (?:team|staff|company) (?:at|of) ", "name"),
        _way("employer", "changes", "left quit", rf"\b(?:left|quit) (?:my {_JOB} at )?{_NAME}(?: {_NAME}){{0,2}} (?:for|to join|and joined|to work (?:at|for)|to start at) ", "name"),
        _way("employer", "changes", "switched changed", r"\b(?:switched|changed) (?:jobs|employers|companies),? (?:and now work |and I now work |from [\w&. -]{1,30}? )?(?:to|at|for) ", "name"),
        _way("employer", "ends", "quit left lost resigned", rf"\b(?:quit|left|lost|resigned from|gave up) my (?:[a-z]+ )?{_JOB}\b(?: (?:at|with) )?", "may be named"),
        _way("employer", "ends", "quit left resigned retired laid fired", r"\b(?:quit|left|resigned from|retired from|(?:laid off|fired|let go) (?:from|by)) (?=[A-Z])", "name"),
        _way("employer", "ends", "laid fired retired unemployed", r"\b(?:(?:got|was|been|am|were) (?:laid off|fired|let go)|retired|unemployed)\b(?! from| by)", "none"),
        _way("job", "is", "work works working", r"\b(?:(?P<base>work)|(?P<third>works)|working) as (?:a|an|the) ", "words"),
        _way("job", "is", "job occupation profession", rf"{_OF} (?:job|occupation|profession) is ", "words"),
        _way("job", "changes", "job position role gig", rf"\b(?:(?:[Gg]ot|gotten|have|has|landed|[Ss]tarted|[Tt]ook|taken|accepted|found) )?(?:an? |[Mm]y )?[Nn]ew (?:[a-z]+ )?{_JOB} as (?:a|an|the) ", "words"),
        _way("job", "changes", "started promoted became retrained", r"\b(?:started (?:working |work )?as|promoted to|became|retrained as) (?:a|an|the) ", "words"),
        _way("job", "ends", "quit left lost laid fired retired unemployed", rf"\b(?:quit|left|lost|resigned from|gave up) my (?:[a-z]+ )?{_JOB}\b|\b(?:laid off|got fired|was fired|retired|unemployed)\b", "none"),
    )  # fmt: skip


def _persons() -> tuple[Way, ...]:
    return (
        _way("birthday", "is", "birthday bday", rf"{_OF} (?:birthday|bday)(?:['’]s| is| falls)(?: actually| really| now)?(?: on)? (?={DATE})", "day"),
        _way("birthday", "is", "born", rf"\bborn on (?={DATE})", "day"),
        _way("name", "is", "name", r"(?P<of>\b[Mm]y) (?:full |first |real |legal )?name(?:['’]s| is)(?: now)? ", "name"),
        _way("name", "changes", "name", r"\bchanged (?P<of>my) (?:[a-z]+ )?name (?:from \w+ )?to ", "name"),
        _way("partner", "is", "girlfriend boyfriend wife husband partner fiance fiancé fiancée fiancee spouse", rf"(?P<of>\b[Mm]y) (?:new )?{_PARTNER}(?:['’]s name is| is called| is named| is|,)? (?=[A-Z])", "name"),
        _way("partner", "is", "dating seeing", rf"{_BE} {_HOW}(?:dating|seeing) ", "name"),
        _way("partner", "changes", "dating married engaged", r"\b(?:started dating|got (?:married|engaged) to|married(?: to)?|engaged to) (?=[A-Z])", "name"),
        _way("partner", "ends", "broke split", r"\b(?:broke|split) up\b(?: with )?", "may be named"),
        _way("partner", "ends", "divorced single", rf"{_BE} {_HOW}(?:divorced|single)\b(?! (?:from|mother|father|parent|mom|dad|malt))", "none"),
        _way("relationship", "is", "single engaged married divorced widowed separated", rf"{_BE} {_HOW}(?P<value>single|engaged|married|divorced|widowed|separated)\b(?! in\b| (?:mother|father|parent|mom|dad|malt))", "group"),
        _way("relationship", "ends", "broke split", r"\b(?:broke|split) up\b", "none"),
        _way("diet", "is", "vegan vegetarian pescatarian omnivore", rf"(?:{_BE}|\b(?:became|become|went|gone|turned|eat|eats)) {_HOW}(?:an? )?(?:strict |lifelong |committed |proud )?(?P<value>vegan|vegetarian|pescatarian|omnivore)\b(?! (?:food|restaurant|place|friend|option|recipe|dish|meal))", "group"),
        _way("diet", "is", "diet", r"\b(?:on|follow|follows|keep|switched to|started) an? (?:strict )?(?P<value>vegan|vegetarian|pescatarian) diet\b", "group"),
        _way("diet", "ends", "meat", r"\b(?:eat|eats|eating) meat again\b|\bstarted eating meat\b", "none"),
        _way("diet", "ends", "being", r"\b(?:stopped|quit|gave up|given up) being (?:an? )?(?P<value>vegan|vegetarian|pescatarian)\b", "group"),
        _way("study", "is", "study studies studying", rf"\b(?:(?P<base>study)|(?P<third>studies)|studying) {_HOW}at ", "name"),
        _way("study", "changes", "transferred", r"\btransferred (?:from [\w. -]{1,30}? )?to (?=(?:the )?[A-Z][\w ]{0,30}(?:University|College|School|Institute))", "name"),
    )  # fmt: skip


def _possessions() -> tuple[Way, ...]:
    found: list[Way] = []
    for key, section in (("car", "cars"), ("phone", "phones")):
        kinds = WORDS.words(section)
        words, what = (
            " ".join(kinds),
            rf"(?P<value>(?:[\w-]+ ){{0,2}}?(?:{'|'.join(kinds)})\b(?-i:(?: [A-Z\d][\w-]{{0,20}}){{0,2}})){_NO_MORE}",
        )
        new = r"(?:a |an |the |my |our )?(?:brand[- ]new |new |used |second-hand |electric |old )*"
        found += (
            _way(key, "is", words, rf"(?i)\b(?:(?P<base>drive|own|have|use|lease)|(?P<third>drives|owns|has|uses|leases)|driving|using) {_HOW}{new}{what}", "group"),
            _way(key, "is", words, rf"(?i){_OF} (?:car|truck|suv|van|phone|smartphone) is (?:now )?{new}{what}", "group"),
            _way(key, "changes", words, rf"(?i)\b(?:(?:upgraded|switched|changed) (?:from [\w -]{{1,30}}? )?to|picked up|(?:replaced|traded(?: in)?) [\w' ’-]{{1,30}}? (?:with|for)|bought|got|leased) {new}{what}", "group"),
            _way(key, "ends", words, rf"(?i)\b(?:sold|totaled|wrecked|lost|broke|traded in|got rid of) (?:my|our|the) (?:old )?{what}", "group"),
        )  # fmt: skip
    return tuple(found)


def _many() -> tuple[Way, ...]:
    return (
        _way("allergy", "is", "allergic allergy", r"\b(?:allergic|allergy) to ", "words"),
        _way("allergy", "is", "allergy", r"\b(?:have|has|got) (?:a|an|my) (?:severe |bad |mild |serious )?(?P<value>[a-z]+(?: [a-z]+)?) allergy\b", "group"),
        _way("allergy", "ends", "allergy", r"\b(?:outgrew|outgrown|lost|over) my (?P<value>[a-z]+(?: [a-z]+)?) allergy\b", "group"),
        _way("likes", "is", "love loves like likes enjoy enjoys", r"\b(?:(?P<base>love|like|enjoy)|(?P<third>loves|likes|enjoys)) (?=[a-z]+ing\b)", "words"),
        _way("likes", "is", "play plays practice practise drink drinks smoke smokes collect collects", r"\b(?:(?P<base>play|practi[cs]e|drink|smoke|collect)|(?P<third>plays|practi[cs]es|drinks|smokes|collects)) (?=(?:the )?[a-z])(?!with\b|in\b|it\b|that\b|this\b|a\b)", "words"),
        _way("likes", "is", "hobby hobbies", rf"{_OF} (?:main |favou?rite )?hobb(?:y is|ies are) ", "words"),
        _way("likes", "ends", "gave given quit stopped", r"\b(?:gave up|given up|quit|stopped)(?: (?:drinking|eating|having|using|taking|playing|smoking|doing|going to|practi[cs]ing|collecting))? (?!my (?:job|position|role)|being|dating)", "words"),
        _way("pet", "is", "dog cat pet puppy kitten rabbit parrot hamster", r"\b(?:have|has|got|adopted|own|owns) (?:a|an|one|two) (?:[a-z]+ )?(?P<value>(?:dog|cat|puppy|kitten|rabbit|parrot|hamster)s?(?:,? (?:named|called) [A-Z]\w*)?)", "group"),
        _way("pet", "ends", "died passed", rf"(?:\b(?:[Mm]y|[Oo]ur) (?:old )?(?:dog|cat|puppy|kitten|rabbit|parrot|hamster),? )?(?P<value>\b{_NAME}) (?:has )?(?:died|passed away)\b", "group"),
        _way("pet", "ends", "dog cat pet puppy kitten rabbit parrot hamster", r"\b(?:lost|gave away|buried|rehomed|put down) (?:my|our|the) (?:old )?(?P<value>(?:dog|cat|puppy|kitten|rabbit|parrot|hamster)s?(?:,? [A-Z]\w*)?)", "group"),
    )  # fmt: skip


def _my_things() -> tuple[Way, ...]:
    """ "My manager is Helen": the key is what it is called."""
    what = rf"(?P<what>[Ff]avou?rite [a-z]+(?: [a-z]+)?|{_OWN_THINGS})"
    words = (
        "favourite favorite manager boss supervisor doctor dentist therapist coach mentor advisor landlord accountant lawyer trainer"
        " hairdresser vet number email address gym school university college major team bank budget rent salary weight height age size"
        " deadline goal laptop computer bike nickname username insurance provider locker seat flight hotel timezone zone"
    )
    return (
        _way("", "is", words, rf"{_OF} (?:new |current )?{what} (?:is|are)(?: now| actually| currently)? (?!not\b|also\b|too\b|on\b|in\b|at\b)", "words"),
        _way("", "changes", words, rf"\bchanged {_OF} {what} (?:from [\w ]{{1,30}}? )?to ", "words"),
        _way("", "changes", words, rf"{_OF} {what} (?:has )?changed (?:from [\w ]{{1,30}}? )?to ", "words"),
    )  # fmt: skip


def _cjk() -> tuple[Way, ...]:
    """Chinese and Korean, where the subject is often left out: then it is the speaker."""
    han, hangul = r"(?P<value>[\u4e00-\u9fffA-Za-z]{2,10}?)", r"(?P<value>[가-힣A-Za-z]{1,12}?)"
    until = r"(?=了|[，。！；,.!\s]|$|工作|上班|因为|所以|很|和)"
    return (
        _way("home", "is", "住在 定居", rf"(?:住在|定居在|定居)了?{han}{until}", "group"),
        _way("home", "changes", "搬到 搬去 搬来 搬回", rf"(?:搬到|搬去|搬来|搬回)了?{han}{until}", "group"),
        _way("employer", "is", "工作 上班", r"在(?:一家|一所)?(?P<value>[\u4e00-\u9fffA-Za-z]{2,10}?)(?:工作|上班)", "group"),
        _way("employer", "changes", "入职 跳槽", rf"(?:入职|跳槽到|跳槽去)了?{han}{until}", "group"),
        _way("employer", "ends", "辞职 离职 退休 失业 跳槽", "辞职|离职|退休|失业|跳槽了", "none"),
        _way("home", "is", "살", rf"{hangul}에서? ?(?:살고|살아|삽니다|산다|거주)", "group"),
        _way("home", "changes", "이사", rf"{hangul}(?:으로|로) ?이사", "group"),
        _way("employer", "is", "일 근무", rf"{hangul}에서 ?(?:일하|일해|일합|근무)", "group"),
        _way("employer", "changes", "이직 입사 취직", rf"{hangul}(?:으로|로|에) ?(?:이직|입사|취직)", "group"),
        _way("employer", "ends", "퇴사 그만", "퇴사했|그만뒀|그만두었", "none"),
    )  # fmt: skip


@cache
def ways() -> tuple[dict[str, tuple[Way, ...]], tuple[tuple[str, Way], ...]]:
    """The ways by each of their words; and those of scripts without words, each beside a sign that a text must have."""
    by_word: dict[str, list[Way]] = {}
    for way in (*_homes(), *_jobs(), *_persons(), *_possessions(), *_many(), *_my_things()):
        for word in sorted(way.words):
            by_word.setdefault(word, []).append(way)
    signs = tuple((sign, way) for way in _cjk() for sign in sorted(way.words))
    return {word: tuple(found) for word, found in by_word.items()}, signs
