"""Days as people write them, in one form: `1990-05-03`, or `05-03` where no year is said."""

from __future__ import annotations

import re
from datetime import date

__all__ = ["ENGLISH_DAY", "day_of_english", "day_of_match", "day_of_numbers"]

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NAMES = {name[:3]: number for number, name in enumerate(_MONTHS, start=1)}
_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"  # noqa: E501
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"

ENGLISH_DAY = (
    rf"(?:{_MONTH}\.? {_DAY}(?:,? \d{{4}})?|(?:the )?{_DAY} (?:of )?{_MONTH}(?:,? \d{{4}})?|\d{{4}}-\d{{2}}-\d{{2}})"
)
_PARTS = re.compile(rf"(?i)(?P<month>{_MONTH})|(?P<year>\d{{4}})|(?P<day>\d{{1,2}})")


def day_of_english(text: str) -> str | None:
    """`May 3rd, 1990` → `1990-05-03`; `3 May` → `05-03`; what is no day of any year is none."""
    iso = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})", text.strip())
    if iso:
        return day_of_numbers(int(iso[1]), int(iso[2]), int(iso[3]))
    found: dict[str, str] = {}
    for match in _PARTS.finditer(text):
        for name, part in match.groupdict().items():
            if part is not None:
                found.setdefault(name, part)
    if "month" not in found or "day" not in found:
        return None
    year = int(found["year"]) if "year" in found else None
    return day_of_numbers(year, _NAMES[found["month"][:3].lower()], int(found["day"]))


def day_of_match(match: re.Match[str]) -> str | None:
    """The day of a pattern whose groups are `year`, which may be left out, `month` and `day`, all in digits."""
    year = match["year"]
    return day_of_numbers(int(year) if year else None, int(match["month"]), int(match["day"]))


def day_of_numbers(year: int | None, month: int, day: int) -> str | None:
    try:
        moment = date(2000 if year is None else year, month, day)  # a leap year, so that 29 February may be a birthday
    except ValueError:
        return None
    return f"{moment.month:02d}-{moment.day:02d}" if year is None else moment.isoformat()
