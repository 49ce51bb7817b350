"""Chinese: what someone says of themselves in so many words."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.clauses import Grammar, Rule, constant
from muniment.memory.extraction.dates import day_of_match
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["CLAUSE", "DOUBTFUL", "PLACE", "SELF", "WE", "WHEN", "propose_chinese"]

DOUBTFUL = re.compile(
    r"[吗嗎]|呢$|如果|要是|假如|假设|假設|假装|假裝|万一|萬一|除非|也许|也許|可能|或许|或許|大概|好像|似乎|想|打算|计划|計劃|希望|梦|夢|"
    r"说|說|告诉|告訴|问|問|听|聽|据称|據稱|据悉|據悉|觉得|覺得|认为|認為|以为|以為|曾|以前|从前|過去|过去|当时|當時|小时候|小時候|原来|本来|本來|差点|差點|"
    r"应该|應該|是否|是不是|有没有|会不会|例如|比如|翻译|翻譯|句子|小说|小說|故事|电影|電影|角色|扮演|歌|台词|准备|準備|将|將|会|會|"
    r"下周|下个月|明年|明天|将来|以后|以後|他|她|你|您|谁|誰|什么|什麼|哪|怎么|怎麼"
)
_NEGATION = re.compile(r"不|没|沒|(?<!特)[别別]|无|無")
CLAUSE = re.compile(r"[，,：:\s]+")

_HAN = r"[\u4e00-\u9fff]"
_NAME = rf"(?P<value>{_HAN}{{2,4}}|[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+)?)"
_WORDS = WordList(__package__, "chinese.txt")
_SURNAMES = "".join(_WORDS.words("surnames"))
_GIVEN = re.compile(
    rf"(?:欧阳|歐陽|司马|司馬|上官|诸葛|諸葛|夏侯|皇甫|慕容|司徒|令狐|尉迟){_HAN}{{1,2}}|[{_SURNAMES}]{_HAN}{{1,2}}|[小阿]{_HAN}"
)
_NO_NAME = re.compile(
    r"[了吧啊呢吗嗎着著过過来來去的得地醒停车車单單人]$|[饭飯面麵餐菜汤湯酒茶饼餅虾蝦鸡雞鱼魚肉粉粥水奶]|马上|馬上|高铁|高鐵|时候|"
    r"小[费費时時便心声聲偷狗猫貓孩姐二弟妹哥三]|阿姨"
)
PLACE = rf"(?P<value>{_HAN}{{2,8}}?|[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+)?)"
WHEN = (
    r"(?:(?:\d{4}|[一二三四五六七八九十〇零]{2,4})年)?(?:\d{1,2}月|[一二三四五六七八九十]{1,2}月)?(?:去年|今年|前年|上个月|上個月|这个月|上周|昨天|最近|刚刚|刚|剛|"
    r"现在|現在|目前|已经|已經)?"
)
_NO_PLACE = re.compile(
    r"家|附近|这|這|那|新|办公|辦公|项目|項目|部门|部門|[组組层層排座]|桌|后面|前面|一起|梦|夢|水深|帐篷|帳篷|楼|樓|酒店|宿舍|公司|学校|學校|医院|醫院|一|个|個|的|了|着|过|和|跟|在|我|房|公寓|别墅|郊区|乡下|鄉下|市中心|海边|海邊|租|船|车|車|群|号|號|前$|[里裡上下旁边邊]$"
)
_NO_THING = re.compile(
    r"^的|^[和跟把被让讓就都有是]|[吧啊哦喔呀嘛啦]$|是|这|這|那|的时候|它|我们|因为|所以|但|比|得|了$|过$|一下|起来|上了|和我|不|我|咱|选|選|方案|建议|建議|版本|一点|一些|[上中下]午|周[一二三四五六日天]|星期"
)
_NO_ALLERGEN = re.compile(
    r"加班|上班|工作|开会|開會|考试|考試|学习|學習|作业|作業|周一|星期|老板|老闆|同事|人|钱|錢|代码|代碼|谎|謊|爱|愛|话|話|数字|數字|政治|结婚|結婚|早起|这|這|那|什|也$|都$|有$|很$|一切"
)
_JOB = f"(?:{'|'.join(_WORDS.words('jobs'))})"
_KIN = dict(_WORDS.pairs("kin"))
_ORIGINS = f"(?:{'|'.join(_WORDS.words('origins'))})"


def _value(match: re.Match[str]) -> str:
    """The value as it was matched."""
    return match["value"]


def _name(match: re.Match[str]) -> str | None:
    """`我叫` is also to call and to order: a name begins as names do, and is nothing that one calls for."""
    value = match["value"]
    if value.isascii():
        return value
    return value if _GIVEN.fullmatch(value) and not _NO_NAME.search(value) else None


def _allergen(match: re.Match[str]) -> str | None:
    value: str = match["value"]
    return None if _NO_ALLERGEN.search(value) else value


def _favourite(match: re.Match[str]) -> str | None:
    return None if _NO_FAVOURITE.search(match["value"]) else match["value"]


def _place(match: re.Match[str]) -> str | None:
    return None if _NO_PLACE.search(match["value"]) else match["value"]


def _thing(match: re.Match[str]) -> str | None:
    return None if _NO_THING.search(match["value"]) else match["value"]


_DATE = r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号號]"
SELF = r"(?:我|本人)"
WE = rf"{SELF}|我们一?家?|我們一?家?|咱们|咱們|我们全家|我們全家|我家"
_LOVES = r"(?:很|最|特别|特別|非常|真的|超级|也|一直)?"

_FAVOURITES = dict(_WORDS.pairs("favourites"))
_NO_FAVOURITE = re.compile(r"这|這|那|我|它|的$|了$|很|不|没|沒|在")
_RULES = tuple(
    Rule(name, re.compile(pattern), key if callable(key) else constant(key), value, confidence, negates)
    for name, pattern, key, value, confidence, negates in (
        ("name", rf"(?:{SELF}叫|我的名字(?:是|叫)|我名叫){_NAME}$", "user.name", _name, 0.95, False),
        ("lives in", rf"(?:{WE}){WHEN}(?:住在|定居在|居住在){PLACE}$", "user.location", _place, 0.9, False),
        ("lives in", rf"{WHEN}{SELF}{WHEN}(?:住在|定居在){PLACE}$", "user.location", _place, 0.9, False),
        ("moved to", rf"{WHEN}(?:{WE}){WHEN}(?:从{_HAN}{{2,6}})?(?:搬到|搬去|搬来|搬來|搬家到|搬回)了?{PLACE}了?$", "user.location", _place, 0.9, False),
        ("comes from", rf"{SELF}来自{PLACE}$", "user.origin", _place, 0.85, False),
        ("comes from", rf"{SELF}是(?P<value>{_ORIGINS})人$", "user.origin", _value, 0.9, False),
        ("born in", rf"{SELF}出生在{PLACE}$", "user.birthplace", _place, 0.85, False),
        ("birthday", rf"我的?生日(?:是|在){_DATE}$", "user.birthday", day_of_match, 0.95, False),
        ("birthday", rf"{SELF}(?:生于|出生于){_DATE}$", "user.birthday", day_of_match, 0.95, False),
        ("likes", rf"{SELF}{_LOVES}(?:喜欢|喜歡|热爱|熱愛){_LOVES}(?P<value>{_HAN}{{1,8}})$", "user.likes", _thing, 0.85, False),
        ("favourite", rf"我最(?:喜欢|喜歡|爱|愛)的(?P<noun>{'|'.join(_FAVOURITES)})是(?P<value>{_HAN}{{1,8}}|[A-Z][A-Za-z ]+)$", lambda m: f"user.favorite.{_FAVOURITES[m['noun']]}", _favourite, 0.9, False),
        ("dislikes", rf"{SELF}{_LOVES}(?:讨厌|討厭)(?P<value>{_HAN}{{1,8}})$", "user.dislikes", _thing, 0.85, False),
        ("dislikes", rf"{SELF}(?:很|一直|真的|也)?不(?:太|怎么)?(?:喜欢|喜歡)(?P<value>{_HAN}{{1,8}})$", "user.dislikes", _thing, 0.85, True),
        ("diet", rf"{SELF}(?:是|是个|是一个)(?P<value>素食者|素食主义者|素食主義者|纯素食者|純素食者)$", "user.diet", lambda _: "vegetarian", 0.95, False),
        ("diet", rf"{SELF}(?:一直|现在)?吃素$", "user.diet", lambda _: "vegetarian", 0.9, False),
        ("avoids", rf"{SELF}不吃(?P<value>肉|猪肉|豬肉|牛肉|羊肉|海鲜|海鮮|鱼|魚|辣|香菜|鸡蛋|花生|奶制品)$", "user.avoids", _value, 0.9, True),
        ("allergy", rf"{SELF}(?:也|还|還|一直|从小|從小)?[对對](?P<value>{_HAN}{{1,5}}?)(?:也|都|还|還|特别|特別|非常|很|一直|有点|有點|有些|轻微|輕微|严重|嚴重)*[过過]敏$", "user.allergy", _allergen, 0.95, False),
        ("job", rf"{SELF}是(?:一[名位个個]|个)?(?P<value>{_JOB})$", "user.job", _value, 0.9, False),
        ("employer", rf"{SELF}{WHEN}在(?P<value>{_HAN}{{2,8}}(?:公司|银行|銀行|大学|大學|医院|集团|集團)|腾讯|阿里巴巴|百度|华为|字节跳动|小米|京东|美团)(?:工作|上班)$", "user.employer", _value, 0.9, False),
    )
)  # fmt: skip
_RELATION = re.compile(
    rf"我的?(?P<kin>{'|'.join(sorted(_KIN, key=len, reverse=True))})(?:的名字)?(?:叫|名叫|是叫){_NAME}$"
)


_GRAMMAR = Grammar("chinese", DOUBTFUL, CLAUSE, _NEGATION, _RULES, _RELATION, _KIN)


def propose_chinese(sentence: Sentence, _ts: str) -> Iterator[Proposal]:
    """What a Chinese sentence says of its speaker."""
    return _GRAMMAR.propose(sentence)
