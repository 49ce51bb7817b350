"""Quantities in a sentence: money, shares, measures, counts, in English and Chinese.

Numbers that only name or place something do not count: years, dates, versions, models, section numbers.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?")
_MONEY_BEFORE = re.compile(r"(?:[$€£¥￥₩₹]|\b(?:USD|EUR|GBP|JPY|CNY|RMB))\s?\Z")
_NAMED_BEFORE = re.compile(
    r"(?:[A-Za-z_#№]|[A-Za-z]-|\d[.:/-]|第|[图表]|"
    r"\b(?:version|v|figure|fig|table|section|sec|chapter|step|phase|part|page|pages|p|no|number|type|level|stage|"
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.?\s)\Z",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"[A-Z][\w-]*\s\Z")
_UNIT = re.compile(
    r"\s?(?:[%％‰]|per\s?cent|percentage\spoint|[十百千万萬亿億兆倍元]|年(?![代级])|hundred|thousand|million|billion|trillion|"
    r"(?:[kKMGTµnmc]?(?:m|g|W|Wh|Hz|V|B|J|L|s)|km/h|mph|ft|lb|oz|[°℃]C?|dB|ppm)(?:[²³]|/\w{1,8})?(?![A-Za-z]))"
)
_COUNTED = re.compile(
    r"\+?\s[a-z]+(?:-[a-z]+)?s(?![a-z])|\s(?:people|men|women|children|percent)\b|[多余]?[^\W\d_a-zA-Z年月日号世级版号线届章节楼层班]"
)
_PLACE_BEHIND = re.compile(
    r"(?:st|nd|rd|th)\b|s\b|\s?(?:年|月|日|号|世纪|级|版|届|章|节)|[:/]\d|\.\d|-\d{1,4}-\d|[A-Za-z_]|[-–]\d+\s?(?:年|级)|"
    r"\s(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\s?(?:[-–~至到]|to)\s?\d+(?:[.,]\d+)*")
_YEARS = range(1500, 2101)
_COUNT_MIN = 10
"""Smaller counts are more often about the structure of the text ("3 approaches") than findings."""
_LARGE = 10_000
_WINDOW = 24
_WORDS = re.compile(
    r"(?i)\b(?:hundred|thousand|million|billion|trillion)\s[a-z]|\bpercent\b|\bper\scent\b|"
    r"\b(?:one|two|three|four|nine)[-\s](?:half|thirds?|quarters?|fifths?|tenths?)\b|"
    r"百分之|[一二三四五六七八九十\d]分之|[一二三四五六七八九两]倍|\d/\d{1,3}(?:\s+of\b|的)"
)


def has_figure(text: str) -> bool:
    """Return whether a sentence (without its marks) gives a quantity."""
    return _WORDS.search(text) is not None or any(_is_quantity(text, found) for found in _NUMBER.finditer(text))


def _is_quantity(text: str, found: re.Match[str]) -> bool:
    start, end = found.span()
    before = text[max(0, start - _WINDOW) : start]
    if _MONEY_BEFORE.search(before):
        return True
    if _NAMED_BEFORE.search(before):
        return False
    written = found[0]
    year = written.isdecimal() and len(written) == 4 and int(written) in _YEARS
    further = _RANGE.match(text, end)
    last = further.end() if further else end
    if not year and _UNIT.match(text, last):
        return True
    if "," in written:
        return True
    if (
        year
        or _PLACE_BEHIND.match(text, end)
        or _CAPITAL.search(before)
        or (written.startswith("0") and "." not in written)
    ):
        return False
    if "." in written:
        return not written.endswith(".0")
    value = int(written[:12])
    return len(written) <= 12 and (value >= _LARGE or (value >= _COUNT_MIN and _COUNTED.match(text, last) is not None))
