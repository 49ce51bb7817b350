"""Personal data that can be told by its form alone: addresses, numbers and accounts. Nothing here knows a name.

What has a check digit is checked, so that an order number is not taken for a card or an account.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Literal, NamedTuple

from muniment.core.text.patterns import lazy_pattern

__all__ = ["PERSONAL_KINDS", "PersonalData", "PersonalKind", "find_personal_data"]

PersonalKind = Literal["email", "phone", "card", "iban", "ssn", "ip"]
PERSONAL_KINDS: tuple[PersonalKind, ...] = ("email", "phone", "card", "iban", "ssn", "ip")

_EMAIL = lazy_pattern(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_PHONE = lazy_pattern(r"(?<![\w.+-])(?:\+\d|\(\d|\d)[\d ()./-]{5,24}\d(?!\w)(?![.-]\d)")
_CARD = lazy_pattern(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![ -]?\d)(?!\w)")
_IBAN = lazy_pattern(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_SSN = lazy_pattern(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_IP = lazy_pattern(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![\w:])(?!\.\d)"
)
_DATE = lazy_pattern(r"\d{4}[-./ ]\d{1,2}[-./ ]\d{1,2}|\d{1,2}[-./ ]\d{1,2}[-./ ]\d{4}")
_PHONE_DIGITS = range(9, 16)
_CARD_DIGITS = range(13, 20)


class PersonalData(NamedTuple):
    """One piece of it, and where it stands."""

    kind: PersonalKind
    start: int
    end: int


def find_personal_data(
    text: str, kinds: Collection[str] = PERSONAL_KINDS, allow: Collection[str] = ()
) -> Iterator[PersonalData]:
    """What is found, kind by kind, but for what is allowed: compared without case, blanks and hyphens."""
    fine = {_plain(each) for each in allow}
    for kind in PERSONAL_KINDS:
        if kind not in kinds:
            continue
        pattern, is_one = _KINDS[kind]
        for found in pattern.finditer(text):
            if _plain(found[0]) not in fine and is_one(found[0]):
                yield PersonalData(kind, found.start(), found.end())


def _plain(text: str) -> str:
    return re.sub(r"[\s()./-]", "", text).casefold() if "@" not in text else text.strip().casefold()


def _digits(text: str) -> str:
    return "".join(sign for sign in text if sign.isdecimal())


def _is_phone(text: str) -> bool:
    """A number with a country's or a trunk's prefix, or in groups; a date, a card and a plain long figure are none."""
    digits = _digits(text)
    if len(digits) not in _PHONE_DIGITS or _DATE.fullmatch(text.strip()):
        return False
    is_grouped = len(re.findall(r"\d+", text)) in (3, 4) and _SSN.fullmatch(text) is None
    return is_grouped or text.startswith(("+", "(", "0"))


def _is_card(text: str) -> bool:
    digits = _digits(text)
    if len(digits) not in _CARD_DIGITS or len(set(digits)) == 1:
        return False
    doubled = [int(sign) * (1 + at % 2) for at, sign in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


def _is_ip(text: str) -> bool:
    """An address of somebody: not of this machine, a private net or a documentation page."""
    try:
        return ip_address(text).is_global
    except ValueError:
        return False


def _always(_text: str) -> bool:
    return True


_KINDS: Mapping[PersonalKind, tuple[re.Pattern[str], Callable[[str], bool]]] = MappingProxyType(
    {
        "email": (_EMAIL, _always),
        "phone": (_PHONE, _is_phone),
        "card": (_CARD, _is_card),
        "iban": (_IBAN, _is_iban),
        "ssn": (_SSN, _always),
        "ip": (_IP, _is_ip),
    }
)
