"""Quantities in a sentence: percents, money, measures, counts, large numbers, in English and Chinese.

A number that only names or places something is none: a year, a date, a version, a model, a section, a rank.
"""

from __future__ import annotations

import re

from muniment.core.text.patterns import lazy_pattern

__all__ = ["figures", "has_figure"]

_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|\d+(?:\.\d+)?")
_SCALE = r"(?:hundred|thousand|million|billion|trillion|mn|bn|tn|[kKMB](?![A-Za-z])|[十百千万萬亿億兆]+)"
_MONEY = (
    r"(?:US\s?)?(?:dollars?|cents?|euros?|pounds?|yuan|yen|won|rupees?|francs?|USD|EUR|GBP|JPY|CNY|RMB|KRW|HKD|INR|"
    r"CHF)(?![A-Za-z])"
    r"|(?:美|欧|日|港|韩|澳|加|新台|卢)?[元圆币]|英镑|人民币|日圆|卢布|块钱|[€£]"
)
_PERCENT = (
    r"[%％‰]|per\s?cent(?:age\spoints?)?|percentage\spoints?|pct(?![a-z])|pp(?![a-z])|bps?(?![a-z])|basis\spoints?"
    r"|个?百分点|个?基点"
)
_MEASURE = (
    r"(?:[kKMGTPµμmcndh]?(?:m|g|W|Wh|Hz|V|A|B|b|Pa|J|L|l|eV|s|bps|bit|byte|mol|K|Ω)|km/h|mph|ft|lbs?|oz|kWh|MWh|GWh|"
    r"TWh|°\s?[CF]?|℃|℉|dB|ppm|ppb|"
    r"rpm|nm|psi|ha|hp|fps|dpi|px|qubits?|tonnes?|tons?|kilo\w{3,9}|met(?:re|er)s?|centi\w{4,8}|milli\w{4,8}|"
    r"nano\w{4,8}|miles?|feet|foot|inch(?:es)?|"
    r"acres?|hectares?|lit(?:re|er)s?|gallons?|barrels?|grams?|watts?|volts?|degrees?|points?|bytes?|bits?|tokens?|"
    r"parameters?|"
    r"seconds?|minutes?|hours?|days?|weeks?|months?|years?|decades?|centuries|times|fold|x|×)(?:[²³]|"
    r"/\w{1,8})?(?![A-Za-z])"
    r"|平方公里|平方米|立方米|公里|千米|厘米|毫米|微米|纳米|英里|英尺|英寸|公顷|亩|公斤|千克|毫克|微克|吨|升|毫升|"
    r"千瓦时?|兆瓦时?|吉瓦|瓦|伏|度|摄氏度|"
    r"小时|分钟|秒|天|周(?!年)|个?星期|个月|岁|倍|成(?![为立果功分员就长])|[米克](?![^\W\d_a-zA-Z])|"
    r"年(?![代级初底末中])"
)
_COUNTED = (
    r"(?:people|persons?|users?|employees|workers|students|teachers|patients|participants|respondents|households|"
    r"families|companies|firms|"
    r"countries|nations|cities|schools|universities|hospitals|jobs|units|vehicles|cars|homes|deaths|cases|members|"
    r"customers|stores|"
    r"projects|papers|studies|articles|samples|items|species|patents|investors|institutions|residents|visitors|"
    r"passengers)(?![a-z])"
)
_CLASSIFIERS = "人次|人|名|家|个|项|种|所|位|件|台|辆|套|户|篇|部|座|架|艘|条|例|款|只|张|份|间|场|次|颗|株|万|亿"
_UNIT = re.compile(
    rf"\s?(?:{_SCALE}(?:(?:多|余)?\s?(?:{_MONEY}|{_PERCENT}|{_MEASURE}))?|{_PERCENT}|-?{_MEASURE}|{_MONEY}|"
    rf"\s?{_COUNTED})"
)
_COUNT = re.compile(rf"(?:多|余)?(?:{_CLASSIFIERS})|\+?\s(?:[a-z]+-?[a-z]+\s){{0,2}}[a-z]{{2,}}s(?![a-z])")
_TO = re.compile(r"\s?(?:[-–—~～至到]|to|(?P<loose>and|or))\s?[$€£¥￥]?(?=\d)")
_MONEY_BEFORE = re.compile(r"(?:[$€£¥￥₩₹]|(?:USD|EUR|GBP|JPY|CNY|RMB|KRW|HKD|INR|CHF|Rs\.?))\s?\Z")
_COMPARED = re.compile(r"[=<>≤≥≈~±]\s?\Z")
_NAME_BEFORE = re.compile(
    r"(?:\b(?:version|ver|v|figure|fig|table|section|sec|chapter|ch|step|phase|part|page|pages|pp|p|no|number|nr|"
    r"stage|level|tier|type|grade|class|"
    r"article|equation|eq|appendix|item|day|week|question|volume|vol|issue|round|wave|episode|season|option|model|"
    r"lab|rule|act|room|route|top|windows|"
    r"python|ios|android)s?\.?\s?|[#№§第图表章节])\Z",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?:[A-Za-z_#№]|[A-Za-z]-|\d[.:/]|\d-\d{1,4}-|第|\d-)\Z")
_CAPITAL_BEFORE = re.compile(r"[A-Z][\w-]*\s\Z")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b"
)
_MONTH_BEFORE = re.compile(rf"\b{_MONTH}\.?\s\Z", re.IGNORECASE)
_PLACED = re.compile(
    rf"(?:st|nd|rd|th)\b|\s{_MONTH}|\s?[月日号]|\s?世纪|\s?年代|s\b|[:/]\d|\.\d|-\d{{1,4}}-\d|[A-Za-z_]|"
    rf"[-‑][A-Za-z]{{2,}}\d|\s?(?:级|版|号线|届|章|节|楼|层|班)",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\d{1,2}/\d{1,3}(?=\s+of\b|的)")
_WORDS = lazy_pattern(
    r"(?i)\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|"
    r"sixty|seventy|eighty|ninety|"
    r"hundred|thousand|several|half\sa)(?:[-\s](?:one|two|three|four|five|six|seven|eight|nine))?\s"
    r"(?:hundred|thousand|million|billion|trillion|percent|per\scent)\b"
    r"|\b(?:one|two|three|four|nine)[-\s](?:half|thirds?|quarters?|fourths?|fifths?|tenths?)\b"
    r"|百分之[一二三四五六七八九十百零点\d.]{1,10}|[一二三四五六七八九十百\d]{1,4}分之[一二三四五六七八九十百\d]{1,4}"
    r"|[一二三四五六七八九两](?:成(?![为立果功分员就长])|倍)|"
    r"[一二三四五六七八九十百千两数]{1,6}[万亿](?![一-鿿]?[里能])"
)
_YEAR_BEFORE = re.compile(
    r"\b(?:in|since|by|until|during|from|after|before|of|the|early|late|mid)[\s-]\Z", re.IGNORECASE
)
_AGE_BEFORE = re.compile(r"\b(?:the|their|his|her|early|late|mid)[\s-]\Z", re.IGNORECASE)
_COUNTED_ALONE = re.compile(_COUNTED)
_RELEASE_BEFORE = re.compile(r"[A-Z][\w-]*\s\Z|[^\W\d_a-zA-Z]\Z")
_YEARS = range(1500, 2101)
_LARGE = 10_000
_COUNT_MIN = 10
"""A smaller number of things is more often how a text is built ("3 approaches") than what it found."""
_WINDOW = 24


def has_figure(text: str) -> bool:
    """Does a sentence (without its marks) give a quantity?"""
    return bool(figures(text))


def figures(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the quantities in a text, in order; a range is one."""
    spans: list[tuple[int, int]] = [found.span() for found in _FRACTION.finditer(text)]
    at = 0
    while found := _NUMBER.search(text, at):
        end = _quantity_end(text, found)
        if end is not None:
            money = _MONEY_BEFORE.search(text, max(0, found.start() - 5), found.start())
            spans.append((money.start() if money else found.start(), end))
        at = max(found.end(), end or 0)
    spans += [found.span() for found in _WORDS.finditer(text)]
    return _apart(sorted(spans))


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in spans:
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _quantity_end(text: str, found: re.Match[str]) -> int | None:
    """Where the quantity ends that begins with this number; None where the number is none."""
    start, end = found.span()
    window = max(0, start - _WINDOW)
    money = _MONEY_BEFORE.search(text, max(0, start - 5), start) is not None
    if not money and _NAMED.search(text, window, start):
        return None
    last = _range_end(text, end)
    unit = _UNIT.match(text, last)
    if unit is not None and not _is_year(text, found, unit):
        return unit.end()
    if money or "," in found[0]:
        return last
    if last == end and _PLACED.match(text, end):
        return None
    if _NAME_BEFORE.search(text, window, start) or _MONTH_BEFORE.search(text, window, start):
        return None
    if "." in found[0]:
        release = _RELEASE_BEFORE if found[0].endswith(".0") else _CAPITAL_BEFORE  # 工业4.0, TLS 1.3
        return None if release.search(text, window, start) else last
    if _COMPARED.search(text, window, start):
        return last
    value = int(found[0]) if len(found[0]) <= 12 else 0
    if value in _YEARS or len(found[0]) > 12 or found[0].startswith("0"):
        return None
    if _CAPITAL_BEFORE.search(text, window, start):  # ISO 27001
        return None
    count = _COUNT.match(text, last) if value >= _COUNT_MIN else None
    if count is not None:
        return count.end()
    return last if value >= _LARGE and last == end else None


def _range_end(text: str, end: int) -> int:
    """Over "10-30", "6万-22.9万", "30% to 40%", up to the last number: its unit is that of the range."""
    unit = _UNIT.match(text, end)
    joint = _TO.match(text, unit.end() if unit else end)
    if joint is None or (unit is not None and joint["loose"]):
        return end
    other = _NUMBER.match(text, joint.end())
    if other is None or (unit is None and _UNIT.match(text, other.end()) is None):
        return end
    return other.end()


def _is_year(text: str, found: re.Match[str], unit: re.Match[str]) -> bool:
    """ "2023年", "the 1980s", "in 2020 people": what may be a year, with what may be no unit of it."""
    written = unit[0].strip()
    if not found[0].isdecimal() or int(found[0][:5]) not in _YEARS:
        return written == "s" and _AGE_BEFORE.search(text, max(0, found.start() - 12), found.start()) is not None
    if written.startswith("年") or unit[0] == "s":
        return True
    return _YEAR_BEFORE.search(text, max(0, found.start() - 12), found.start()) is not None and bool(
        _COUNTED_ALONE.fullmatch(written)
    )
