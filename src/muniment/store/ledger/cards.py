"""Card numbers in a text: told by issuer, length, grouping and check digit, and by what stands around them.

Phones, orders, parcels, barcodes and tables of figures are made of digits too, and one in ten of any kind passes a
check digit. So a number is no card's behind a `+` or in a grouping that cards do not have, nor where the words before
it, or the key it stands under, name something else; a length that other numbers have too needs a word that says card.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["CARD_RUN", "redact_cards"]

CARD_RUN = re.compile(r"(?<![0-9A-Za-z_])(?<!\d\.)\d(?:[ -]?\d){12,}(?!\.?\d)(?![A-Za-z_])")
"""Not where it adjoins a letter: then it is part of an id."""
_LOOSE = (
    r"(?P<loose>(?<![0-9A-Za-z_])(?<!\d[^\w\s])\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})"
    r"(?:\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{4}"
    r"|\d{6}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{5})(?![^\w\s]?\d)(?![A-Za-z_]))"
)
_ANY_RUN = re.compile(f"{CARD_RUN.pattern}|{_LOOSE}")
"""Also groups with other signs between them: typeset spaces and dashes, dots, the ends of lines."""
_TYPESET = frozenset("\u00a0\u2007\u2008\u2009\u200a\u200b\u2060\u202f\u3000\u2010\u2011\u2012\u2013.·")
"""Signs that stand between the groups of a card as a space does. Others need a word that says card."""
_REPLACED = "[redacted:card_number]"
_LENGTHS = range(13, 20)
_SHAPES = frozenset({(4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4), (4, 3, 3, 3)})
_GROUP_SIGNS = 4
"""Digits of the first group of a card number that is written in groups."""
_GROUP = re.compile(r"\d+")
_BEFORE_CHARS, _BEHIND_CHARS = 48, 24
_CARD = re.compile(
    r"(?ai)card|visa|master|amex|american express|diners|discover|\bjcb\b|unionpay|maestro|credit|debit|\bcc\b|\bpan\b"
    r"|karte|carte|carta|tarjeta|cart[aã]o|カード|卡|카드"
)
_OTHER = re.compile(
    r"(?ai)\b(?:order|invoice|tracking|parcel|shipment|shipping|delivery|consignment|reference|ref|ticket|case|booking|serial"
    r"|imei|isbn|ean|gtin|upc|sku|barcode|account|acct|iban|tel|phone|mobile|cell|fax|call|dial|whatsapp|sms|customer|client"
    r"|member|article|item|product|part|batch|lot|transaction|payment|txn|trace|request|message|event|user|job|run|build"
    r"|timestamp|epoch|snowflake|tweet|status|post|record|row|hash|digest|version|bestell\w*|rechnung\w*|sendung\w*|auftrag\w*"
    r"|konto\w*|telefon\w*|handy\w*|kunden\w*|artikel\w*|commande|facture|colis|suivi|t[eé]l[eé]phone|pedido|factura|env[ií]o"
    r"|tel[eé]fono|cuenta|encomenda|fatura|rastreio|telefone|conta|ordine|fattura|spedizione|telefono|zam[oó]wieni\w*)"
    r"|(?:_|\b)(?:id|ids|uid|uuid|guid)\b|[a-z]Id\b|#\s?$|订单|单号|运单|电话|手机|账号|발주|주문|송장|운송장|전화|휴대폰|계좌|注文|伝票|追跡|電話|口座"
)
_CLAUSE_END = re.compile(r"[\n;!?。！？]|(?<![nN][oOrR])\. ")
_REDACTED = re.compile(r"\[?redacted:[a-z_]+\]?")
"""What was taken out before says nothing of what stands beside it."""
_IBAN = re.compile(r"(?a)\b[A-Z]{2}\d\d(?:[ -]?[A-Z0-9]{4}){0,3}[ -]?$")


class _Run(NamedTuple):
    """A run of digits: its text, the places of its groups, and what the words around it say."""

    text: str
    groups: list[tuple[int, int]]
    says_card: bool
    says_other: bool


Note = Callable[[int, int, str], None]


def redact_cards(text: str, found: Counter[str], under: str = "", note: Note | None = None) -> str:
    """The text without its card numbers; `found` counts them, `note` is told where each stood. `under` is the key that
    the text stands under."""
    return _ANY_RUN.sub(lambda match: _redact_run(match, found, under, note), text)


def _redact_run(match: re.Match[str], found: Counter[str], under: str, note: Note | None) -> str:
    run, text = match[0], match.string
    if match["loose"] is not None and not _has_check(run):  # before anybody looks at the words around it
        return run
    before = text[max(0, match.start() - _BEFORE_CHARS) : match.start()]
    if before.rstrip(" (").endswith("+") or _IBAN.search(before):
        return run
    around = f"{under} {before}\0{text[match.end() : match.end() + _BEHIND_CHARS]}"
    named = f"{under} {_CLAUSE_END.split(before)[-1]}"  # what a number is called stands in its own sentence
    read = _Run(
        run,
        [place.span() for place in _GROUP.finditer(run)],
        says_card=_CARD.search(_REDACTED.sub("", around)) is not None,
        says_other=_OTHER.search(named) is not None,
    )
    if match["loose"] is not None and not read.says_card and not _is_typeset(run):
        return run
    clean: list[str] = []
    at = first = 0
    while first < len(read.groups):
        last = _card_from(read, first)
        if last is None:
            first += 1
            continue
        clean += (run[at : read.groups[first][0]], _REPLACED)
        found["card_number"] += 1
        if note is not None:
            note(match.start() + read.groups[first][0], match.start() + read.groups[last][1], "card_number")
        at, first = read.groups[last][1], last + 1
    return "".join((*clean, run[at:]))


def _has_check(run: str) -> bool:
    digits = [int(sign) for sign in run if sign.isdigit()]
    return _has_issuer(digits) and _passes_luhn(digits)


def _is_typeset(run: str) -> bool:
    """The same sign between all groups, and one that stands for a space."""
    between = set(re.findall(r"\D+", run))
    return len(between) == 1 and between <= _TYPESET


def _card_from(run: _Run, first: int) -> int | None:
    """The group with which a card number that starts at group `first` ends; longer numbers are tried first."""
    size = run.groups[first][1] - run.groups[first][0]
    if size != _GROUP_SIGNS and size not in _LENGTHS:  # a table of figures has thousands of groups
        return None
    for last in range(min(first + 4, len(run.groups) - 1), first - 1, -1):
        shape = tuple(end - start for start, end in run.groups[first : last + 1])
        if (len(shape) == 1 or shape in _SHAPES) and _is_card(run, first, last):
            return last
    return None


def _is_card(run: _Run, first: int, last: int) -> bool:
    text = run.text[run.groups[first][0] : run.groups[last][1]]
    digits = [int(char) for char in text if char.isdigit()]
    if len(digits) not in _LENGTHS or not _has_issuer(digits) or not _passes_luhn(digits):
        return False
    if run.says_card:
        return True
    if len(set(re.findall(r"\D", text))) > 1 or len(digits) == 13:  # barcodes, and phones without their plus
        return False
    return not run.says_other and not _is_in_table(run, first, last)


def _is_in_table(run: _Run, first: int, last: int) -> bool:
    """Two groups of four beside it: a row of figures. One may be the year that the card ends."""
    beside = run.groups[max(0, first - 2) : first], run.groups[last + 1 : last + 3]
    return last > first and any(len(part) == 2 and all(end - start == 4 for start, end in part) for part in beside)


def _has_issuer(digits: list[int]) -> bool:
    number, size = "".join(map(str, digits)), len(digits)
    head2, head3, head4 = int(number[:2]), int(number[:3]), int(number[:4])
    return (
        (number[0] == "4" and size in (13, 16, 19))
        or (size == 16 and (51 <= head2 <= 55 or 2221 <= head4 <= 2720))
        or (size in (16, 19) and (head4 == 6011 or 644 <= head3 <= 649 or head2 == 65 or 3528 <= head4 <= 3589))
        or (size == 15 and head2 in (34, 37))
        or (size == 14 and (300 <= head3 <= 305 or head2 in (36, 38, 39)))
        or (size in (16, 17, 18, 19) and head2 == 62)
    )


def _passes_luhn(digits: list[int]) -> bool:
    doubled = [digit if index % 2 == 0 else sum(divmod(digit * 2, 10)) for index, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0
