"""Korean: what someone says of themselves in so many words. The subject must be spoken: left out, it may be anyone."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.clauses import Grammar, Rule, constant
from muniment.memory.extraction.dates import day_of_match
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["CLAUSE", "DOUBTFUL", "SELF", "WHEN", "propose_korean"]

DOUBTFUL = re.compile(
    r"만약|만일|라면|다면|으면|하면|아마|혹시|것 같|거 같|싶|할까|을까|려고|계획|예정|다고|냐고|자고|래요|대요|답니다|한대|인지|는지|예전|옛날|전에는|"
    r"어릴|였었|했었|살았|었었|았었|꿈|번역|문장|예를 들|예컨대|소설|영화|드라마|캐릭터|역할|노래|가사|언젠가|나중에|내년|다음 ?달|내일|"
    r"당신|그는|그녀|너는|네가|인 척|인척|누가|누구|어디|왜|까$|나요$|니$|ㄹ게|겠"
)
_NEGATION = re.compile(r"(?:^|\s)(?:안|못)\s|않|아니|없|말고|싫")
CLAUSE = re.compile(r"\s*[,，·]\s*")

_WORD = r"[가-힣A-Za-z]"
SELF = r"(?:저는|나는|전|난|제가|내가)\s"
_MY = r"(?:제|내|저의|나의|우리)\s"
_IS = r"(?:이에요|예요|입니다|이야|야|이다|에요)"
_TIME = r"(?:(?:지금|현재|요즘|최근에?|얼마 전에|작년에|올해|어제|지난 ?달에|지난 ?주에|이번 ?달에|이번 ?주에|\d{1,2}월에|\d{4}년에)\s)"
WHEN = rf"{_TIME}?"
_WE = rf"(?:{SELF}|(?:우리는|저희는|우린|저흰|우리 가족은|저희 가족은)\s)"
_VERY = r"(?:(?:정말|아주|매우|가장|제일|진짜|너무|무척)\s)?"
_LIVES = r"(?:살아요|살고 있어요|삽니다|살고 있습니다|살아|산다|거주해요|거주합니다|거주하고 있어요|거주하고 있습니다)"
_MOVED = r"(?:이사했어요|이사했습니다|이사했어|이사했다|이사 왔어요|이사왔어요|이사 왔습니다|이사 갔어요|이사갔어요)"
_NO_PLACE = re.compile(
    r"여기|거기|저기|과거|현재|미래|희망|꿈|행복|추억|마음|세상|지옥|천국|근처|집|아파트|기숙사|회사|학교|병원|호텔|건물|사무실|부서|팀|반|방|자리|새|옆|앞|뒤|위|아래|혼자|같이|이곳|그곳|동네|시골|도시|층"
)
_NO_THING = re.compile(
    r"^(?:이것|그것|저것|이거|그거|저거|이|그|저|너|당신|우리|그런|이런|모든|뭐|무엇|누구|이제|더|이상|더는|지금|요즘|첫|두|세|번째|두번째|첫번째|.*요일)$"
)
_NO_ALLERGEN = re.compile(r"^(?:일|회의|공부|숙제|출근|야근|사람|시험|거짓말|아침|등교|회사|코드|운동|.*요일)$")
_OTHERS = re.compile(r"(?:[가이랑과와은는도]|하고) ")
_NO_NAME = re.compile(r"^(?:비밀|모름|뭐|무엇|같|다르)")
_WORDS = WordList(__package__, "korean.txt")
_JOB = f"(?:{'|'.join(_WORDS.words('jobs'))})"
_KIN = dict(_WORDS.pairs("kin"))


def _value(match: re.Match[str]) -> str:
    """The value as it was matched, without blanks around it."""
    return match["value"].strip()


def _name(match: re.Match[str]) -> str | None:
    return None if _NO_NAME.search(match["value"]) else match["value"]


def _place(match: re.Match[str]) -> str | None:
    value: str = match["value"].strip()
    return None if _NO_PLACE.search(value) or _OTHERS.search(value) else value


def _allergen(match: re.Match[str]) -> str | None:
    return None if _NO_ALLERGEN.search(match["value"]) else match["value"]


def _thing(match: re.Match[str]) -> str | None:
    return None if any(_NO_THING.match(word) for word in match["value"].split()) else match["value"].strip()


_VALUE = rf"(?P<value>{_WORD}{{2,10}}(?: {_WORD}{{1,8}})?)"
_NAMED = r"(?P<value>[가-힣]{2,4}?|[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+)?)"
_DATE = r"(?:(?P<year>\d{4})년 ?)?(?P<month>\d{1,2})월 ?(?P<day>\d{1,2})일"
_THING = rf"(?P<value>{_WORD}{{1,10}}?(?: {_WORD}{{1,8}}?)?)"

_RULES = tuple(
    Rule(name, re.compile(pattern), constant(key), value, confidence, negates)
    for name, pattern, key, value, confidence, negates in (
        ("name", rf"(?:제|내|저의|나의) 이름은 {_NAMED}{_IS}$", "user.name", _name, 0.95, False),
        ("name", rf"(?:저는|나는|전) {_NAMED}(?:이라고|라고) (?:합니다|해요|해)$", "user.name", _name, 0.95, False),
        ("lives in", rf"{_WE}{WHEN}{_VALUE}에서? {_LIVES}$", "user.location", _place, 0.9, False),
        ("moved to", rf"(?:{_WE}{WHEN}|{_TIME}{_WE}){_THING}(?:으로|로|에) {WHEN}{_MOVED}$", "user.location", _place, 0.9, False),
        ("comes from", rf"{SELF}{_VALUE} 출신{_IS}$", "user.origin", _place, 0.9, False),
        ("birthday", rf"(?:제|내|저의|나의) 생일은 {_DATE}{_IS}$", "user.birthday", day_of_match, 0.95, False),
        ("birthday", rf"{SELF}{_DATE}에 태어났(?:어요|습니다|어)$", "user.birthday", day_of_match, 0.95, False),
        ("likes", rf"{SELF}{_VERY}{_THING}[을를] {_VERY}(?:좋아해요|좋아합니다|좋아해|사랑해요)$", "user.likes", _thing, 0.85, False),
        ("dislikes", rf"{SELF}{_VERY}{_THING}[을를] {_VERY}(?:싫어해요|싫어합니다|싫어해)$", "user.dislikes", _thing, 0.85, True),
        ("dislikes", rf"{SELF}{_THING}[을를] (?:안 좋아해요|좋아하지 않아요|좋아하지 않습니다)$", "user.dislikes", _thing, 0.85, True),
        ("diet", rf"{SELF}(?P<value>채식주의자|비건){_IS}$", "user.diet", lambda m: "vegan" if m["value"] == "비건" else "vegetarian", 0.95, False),
        ("avoids", rf"{SELF}(?P<value>고기|돼지고기|소고기|해산물|생선|유제품|계란)[을를] (?:안 먹어요|먹지 않아요|못 먹어요|먹지 않습니다)$", "user.avoids", _value, 0.9, True),
        ("allergy", rf"{SELF}(?P<value>[가-힣]{{1,6}}?)(?:에|에도|도)? ?알레르기(?:가|도) 있(?:어요|습니다|어)$", "user.allergy", _allergen, 0.95, False),
        ("job", rf"{SELF}(?P<value>{_JOB}){_IS}$", "user.job", _value, 0.9, False),
        ("job", rf"{SELF}(?P<value>{_JOB})(?:으로|로) 일(?:해요|합니다|하고 있어요|하고 있습니다)$", "user.job", _value, 0.9, False),
        ("employer", rf"{SELF}{WHEN}(?P<value>{_WORD}{{2,10}}(?:전자|은행|병원|대학교|그룹|연구소)|네이버|카카오|쿠팡|구글|삼성|현대자동차)에서 (?:일해요|일합니다|일하고 있어요|근무해요|근무합니다|근무하고 있어요)$", "user.employer", _value, 0.9, False),
    )
)  # fmt: skip
_RELATION = re.compile(rf"{_MY}(?P<kin>{'|'.join(sorted(_KIN, key=len, reverse=True))}) 이름은 {_NAMED}{_IS}$")


_OPENING = (
    Rule("moved to", re.compile(rf"{_TIME}{_THING}(?:으로|로) {_MOVED}$"), constant("user.location"), _place, 0.85),
)
"""Without a subject: of whoever speaks, where nobody else was spoken of before."""

_GRAMMAR = Grammar("korean", DOUBTFUL, CLAUSE, _NEGATION, _RULES, _RELATION, _KIN, _OPENING)


def propose_korean(sentence: Sentence, _ts: str) -> Iterator[Proposal]:
    """What a Korean sentence says of its speaker."""
    return _GRAMMAR.propose(sentence)
