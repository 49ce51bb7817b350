"""What a number counts: the unit beside it, under one name however it is written."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.verify.facts.words import Word

__all__ = ["unit_of"]

_WRITTEN = {
    "percent": "% ％ percent pct",
    "dollar": "$ dollar dollars usd 美元 달러",
    "euro": "€ euro euros eur 欧元 유로",
    "pound": "£ pound pounds gbp 英镑 파운드",
    "yen": "¥ yen jpy 日元 엔",
    "yuan": "yuan rmb cny 元 人民币 위안",
    "won": "₩ won krw 韩元 원",
    "mile": "mile miles mi 英里 마일",
    "kilometre": "km kilometre kilometres kilometer kilometers 公里 千米 킬로미터",
    "metre": "metre metres meter meters 米 미터",
    "centimetre": "cm centimetre centimetres centimeter centimeters 厘米 센티미터",
    "foot": "ft foot feet 英尺 피트",
    "inch": "inch inches 英寸 인치",
    "kilogram": "kg kilogram kilograms kilo kilos 公斤 千克 킬로그램",
    "gram": "gram grams 克 그램",
    "ton": "ton tons tonne tonnes 吨 톤",
    "litre": "litre litres liter liters 升 리터",
    "second": "second seconds sec secs 秒 초",
    "minute": "minute minutes min mins 分钟 분",
    "hour": "hour hours hr hrs 小时 시간",
    "day": "day days 天 일",
    "week": "week weeks 周 星期 주",
    "month": "month months 个月 개월 달",
    "year": "year years yr yrs 年 년",
    "decade": "decade decades",
    "degree": "° degree degrees 度 도",
    "people": "people persons 人 명",
    "percentage point": "percentage pp pps 个百分点 퍼센트포인트",
    "gallon": "gallon gallons 加仑 갤런",
    "watt": "watt watts 와트",
    "kilowatt": "kw kilowatt kilowatts 千瓦 킬로와트",
    "megawatt": "mw megawatt megawatts 兆瓦 메가와트",
    "gigawatt": "gw gigawatt gigawatts 吉瓦 기가와트",
    "terawatt": "tw terawatt terawatts 太瓦 테라와트",
    "kilowatt hour": "kwh 千瓦时 킬로와트시",
    "megawatt hour": "mwh 兆瓦时 메가와트시",
    "gigawatt hour": "gwh 吉瓦时 기가와트시",
    "terawatt hour": "twh 太瓦时 테라와트시",
    "volt": "volt volts 伏特 볼트",
    "ampere": "amp amps ampere amperes 安培 암페어",
    "kilobyte": "kb kilobyte kilobytes",
    "megabyte": "mb megabyte megabytes",
    "gigabyte": "gb gigabyte gigabytes",
    "terabyte": "tb terabyte terabytes",
}
_UNITS = {form: unit for unit, forms in _WRITTEN.items() for form in forms.split()}
_SIGNS_BEFORE = frozenset("$€£¥₩")
_CJK_UNITS = sorted((form for form in _UNITS if not form.isascii() and form[0].isalpha()), key=lambda form: -len(form))


def unit_of(text: str, words: Sequence[Word], at: int) -> str | None:
    """The unit of the number at a place: a sign before or behind it, or the word behind it."""
    word = words[at]
    before, behind = text[word.start - 1 : word.start], text[word.end : word.end + 8].lstrip(" -")
    if before in _SIGNS_BEFORE:
        return _UNITS.get(before)
    if behind[:1] in ("%", "％", "°"):
        return _UNITS[behind[:1]]
    for form in _CJK_UNITS:
        if behind.startswith(form):
            return _UNITS[form]
    if at + 1 < len(words) and words[at + 1].start - word.end <= 1:
        return _UNITS.get(words[at + 1].text.casefold())
    return None
