"""Card numbers in a text: told by issuer, length, grouping and check digit, and by what stands around them.

Phones, orders, parcels, barcodes and tables of figures are made of digits too, and one in ten of any kind passes a
check digit. So a number is no card's behind a `+` or in a grouping that cards do not have, nor where the words before
it, or the key it stands under, name something else; a length that other numbers have too needs a word that says card.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

__all__ = ["CARD_RUN", "redact_cards"]

CARD_RUN = re.compile(r"(?<![\dA-Za-z_])(?<!\d\.)\d(?:[ -]?\d){12}")
"""The first digits of a run that is long enough; how far it goes is found by `_RUN_END`, since a repeated group keeps
its place in memory for every digit. Not where it adjoins a letter: then it is part of an id."""
_RUN_END = re.compile(r"[ -](?!\d)|[^\d -]|\Z")
_ID_SIGN = re.compile(r"\.\d|[A-Za-z_]")
"""Matches text behind a run of digits whose last group is part of something else."""
_LOOSE = re.compile(
    r"(?<![\dA-Za-z_])(?<!\d[^\w\s])\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})"
    r"(?:\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{4}"
    r"|\d{6}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{5})(?![^\w\s]?\d)(?![A-Za-z_])"
)
"""Groups with other signs between them: typeset spaces and dashes, dots, the ends of lines."""
_ANY_RUN = re.compile(f"(?P<run>{CARD_RUN.pattern})|{_LOOSE.pattern}")
_TYPESET = frozenset("\u00a0\u2007\u2008\u2009\u200a\u200b\u2060\u202f\u3000\u2010\u2011\u2012\u2013.·")
"""Signs that stand between the groups of a card as a space does. Others need a word that says card."""
_REPLACED = "[redacted:card_number]"
_LENGTHS = range(13, 20)
_SHAPES = frozenset({(4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4), (4, 3, 3, 3)})
_GROUP = re.compile(r"\d+")
_FIRST_GROUP = re.compile(r"(?<!\d)(?:\d{13,19}|\d{4})(?!\d)")
"""A whole card number, or the first group of one that is written in groups."""
_GROUPS_MAX = 5
_BESIDE_CHARS = 10
_ROW_BEFORE = re.compile(r"(?:^|\D)\d{4}[ -]\d{4}[ -]$")
_ROW_BEHIND = re.compile(r"[ -]\d{4}[ -]\d{4}(?!\d)")
_BEFORE_CHARS, _BEHIND_CHARS, _UNDER_CHARS = 48, 24, 256
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
    """A run of digits: where it stands in which text, and what the words around it say."""

    text: str
    start: int
    end: int
    says_card: bool
    says_other: bool


def redact_cards(text: str, found: Counter[str], under: str = "") -> str:
    """The text without its card numbers; `found` counts them. `under` is the key that the text stands under."""
    clean: list[str] = []
    at = 0
    for start, end, is_loose in _runs(text):
        run = _read_run(text, start, end, is_loose, under[-_UNDER_CHARS:])
        for first, last in () if run is None else _cards_in(run):
            clean += (text[at:first], _REPLACED)
            found["card_number"] += 1
            at = last
    return "".join((*clean, text[at:])) if clean else text


def _runs(text: str) -> Iterator[tuple[int, int, bool]]:
    """The runs of digits that are long enough for a card: from where to where, and whether it is a loose one."""
    at = 0
    while (met := _ANY_RUN.search(text, at)) is not None:
        loose = met if met["run"] is None else None
        end = met.end() if loose is not None else _end_of_run(text, met.start(), met.end())
        if end is None:
            loose = _LOOSE.match(text, met.start())
            end = None if loose is None else loose.end()
        if end is not None:
            yield met.start(), end, loose is not None
        at = met.start() + 1 if end is None else end


def _end_of_run(text: str, start: int, enough: int) -> int | None:
    """Where a run ends whose first digits end at `enough`; None where it is none. A last group that is part of
    something else is left out."""
    met = _RUN_END.search(text, enough)
    end = len(text) if met is None else met.start()
    if not _ID_SIGN.match(text, end):
        return end
    end = max(text.rfind(" ", start, end), text.rfind("-", start, end))
    return end if end >= enough else None


def _read_run(text: str, start: int, end: int, is_loose: bool, under: str) -> _Run | None:
    """A run and what is said around it; None where it is no card's, whatever its digits."""
    if is_loose and not _has_check(text[start:end]):  # before anybody looks at the words around it
        return None
    before = text[max(0, start - _BEFORE_CHARS) : start]
    if before.rstrip(" (").endswith("+") or _IBAN.search(before):
        return None
    around = f"{under} {before}\0{text[end : end + _BEHIND_CHARS]}"
    named = f"{under} {_CLAUSE_END.split(before)[-1]}"  # what a number is called stands in its own sentence
    says_card = _CARD.search(_REDACTED.sub("", around)) is not None
    if is_loose and not says_card and not _is_typeset(text[start:end]):
        return None
    return _Run(text, start, end, says_card, says_other=_OTHER.search(named) is not None)


def _cards_in(run: _Run) -> Iterator[tuple[int, int]]:
    """From where to where the cards of a run stand. Longer numbers are tried first."""
    at = run.start
    while (first := _FIRST_GROUP.search(run.text, at, run.end)) is not None:
        at = first.end()
        for end in reversed(_card_ends(run, first.start())):
            if _is_card(run, first.start(), end, is_grouped=end > first.end()):
                yield first.start(), end
                at = end
                break


def _card_ends(run: _Run, start: int) -> list[int]:
    """Where a number that starts with this group may end: by the groups that cards have."""
    ends: list[int] = []
    shape: tuple[int, ...] = ()
    for group in islice(_GROUP.finditer(run.text, start, run.end), _GROUPS_MAX):
        shape = (*shape, group.end() - group.start())
        if (len(shape) == 1 and shape[0] in _LENGTHS) or shape in _SHAPES:
            ends.append(group.end())
    return ends


def _has_check(run: str) -> bool:
    digits = [int(sign) for sign in run if sign.isdigit()]
    return _has_issuer(digits) and _passes_luhn(digits)


def _is_typeset(run: str) -> bool:
    """The same sign between all groups, and one that stands for a space."""
    between = set(re.findall(r"\D+", run))
    return len(between) == 1 and between <= _TYPESET


def _is_card(run: _Run, start: int, end: int, *, is_grouped: bool) -> bool:
    text = run.text[start:end]
    digits = [int(char) for char in text if char.isdigit()]
    if len(digits) not in _LENGTHS or not _has_issuer(digits) or not _passes_luhn(digits):
        return False
    if run.says_card:
        return True
    if len(set(re.findall(r"\D", text))) > 1 or len(digits) == 13:  # barcodes, and phones without their plus
        return False
    return not run.says_other and not (is_grouped and _is_in_table(run, start, end))


def _is_in_table(run: _Run, start: int, end: int) -> bool:
    """Two groups of four beside it: a row of figures. One may be the year that the card ends."""
    before = run.text[max(run.start, start - _BESIDE_CHARS - 1) : start]
    behind = run.text[end : min(run.end, end + _BESIDE_CHARS + 1)]
    return _ROW_BEFORE.search(before) is not None or _ROW_BEHIND.match(behind) is not None


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
