"""What looks like a secret and is none stays: phones of thirty countries, accounts, orders, hashes, ids, times."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from effort import examples
from muniment.store.secrets import redact_text, redact_value
from products import for_each

PHONES = {
    # country code: lengths of the number behind it, and a first digit where mobiles have one
    "49": ((10, 11), "1"), "43": ((10, 11), "6"), "41": ((9,), "7"), "33": ((9,), "6"), "34": ((9,), "6"),
    "39": ((9, 10), "3"), "351": ((9,), "9"), "44": ((10,), "7"), "353": ((9,), "8"), "31": ((9,), "6"),
    "32": ((9,), "4"), "45": ((8,), ""), "46": ((9,), "7"), "47": ((8,), "4"), "358": ((9, 10), "4"),
    "48": ((9,), "5"), "420": ((9,), "6"), "36": ((9,), "2"), "30": ((10,), "6"), "90": ((10,), "5"),
    "7": ((10,), "9"), "380": ((9,), "6"), "1": ((10,), ""), "52": ((10, 11), "1"), "55": ((10, 11), "1"),
    "54": ((10, 11), "9"), "61": ((9,), "4"), "62": ((10, 11, 12), "8"), "81": ((10,), "9"), "82": ((9, 10), "1"),
    "86": ((11,), "1"), "91": ((10,), "9"), "972": ((9,), "5"),
}  # fmt: skip
GROUPINGS = ((3, 7), (3, 3, 4), (2, 4, 4), (3, 4, 4), (4, 3, 3), (5, 5), (1, 2, 2, 2, 2), (3, 8), (4, 6), (11,))
FRAMES = ("{}", "call me at {} after six", "my number is {}", "({})", "{}, thanks!", "reach me: {}\nbye", "电话 {}")


def digits(random: Random, size: int) -> str:
    return "".join(random.choices("0123456789", k=size))


def grouped(number: str, shape: tuple[int, ...], sign: str) -> str:
    parts, at = [], 0
    for size in shape:
        parts.append(number[at : at + size])
        at += size
    return sign.join(part for part in (*parts, number[at:]) if part)


def phones(random: Random) -> Iterator[str]:
    for code, (sizes, first) in PHONES.items():
        number = first + digits(random, random.choice(sizes) - len(first))
        shown = grouped(number, random.choice(GROUPINGS), random.choice(" -"))
        yield f"+{code} {shown}"
        yield f"+{code}{number}"
        yield f"+ {code} {shown}"
        yield f"00{code} {shown}"
        yield f"00{code}{number}"
        yield f"{code}{number}"
        yield f"{code} {shown}"
        yield f"0{shown}"


def accounts(random: Random) -> Iterator[str]:
    for country, size in (("DE", 18), ("FR", 23), ("ES", 20), ("IT", 22), ("NL", 14), ("GB", 18), ("PL", 24)):
        held = digits(random, size)
        yield f"{country}{digits(random, 2)}{held}"
        yield grouped(f"{country}{digits(random, 2)}{held}", (4,) * 8, " ")


def orders(random: Random) -> Iterator[str]:
    names = "order|Order no.|invoice|tracking|Bestellnummer|commande|pedido|订单|주문|ticket #"
    for name in names.split("|"):
        for size in (13, 14, 15, 16, 19):
            yield f"{name} {digits(random, size)}"
            yield f"{name}: {grouped(digits(random, size), (4,) * 4, '-')}"


def marks(random: Random) -> Iterator[str]:
    yield hashlib.sha256(random.randbytes(8)).hexdigest()
    yield hashlib.md5(random.randbytes(8), usedforsecurity=False).hexdigest()
    yield str(uuid.UUID(bytes=random.randbytes(16), version=4))
    yield random.randbytes(10).hex()
    seconds = random.randrange(1_000_000_000, 2_000_000_000)
    yield from (str(seconds), str(seconds * 1_000 + 7), str(seconds * 1_000_000 + 7), str(seconds * 10**9 + 7))
    yield f"20{random.randrange(10, 40)}0{random.randrange(1, 10)}1{random.randrange(10)}123059"
    yield f"ISBN 978{digits(random, 10)}"
    yield f"EAN {digits(random, 13)}"
    yield f"4{digits(random, 12)}"  # a barcode of Germany, or a phone without its plus
    yield " ".join(str(random.randrange(1000, 10_000)) for _ in range(8))  # a row of figures


KINDS: dict[str, Callable[[Random], Iterator[str]]] = {
    "phones": phones,
    "accounts": accounts,
    "orders": orders,
    "marks": marks,
}


@pytest.mark.soak
@pytest.mark.req("LG-10")
@pytest.mark.parametrize("kind", KINDS)
def test_one_in_ten_thousand_at_most_is_taken_for_a_secret(kind: str) -> None:
    random = Random(f"look-alikes/{kind}")
    wrong, tried = [], 0
    while tried < examples(6_000):
        for shown in KINDS[kind](random):
            text = random.choice(FRAMES).format(shown)
            tried += 1
            if redact_text(text, Counter()) != text:
                wrong.append(text)
    assert len(wrong) <= tried / 10_000, wrong[:10]


@pytest.mark.req("LG-10")
def test_a_key_that_names_something_else_keeps_its_number_and_one_that_names_a_card_loses_it() -> None:
    visa = "4539" + "1488" + "0343" + "6467"
    for name in ("order_id", "orderId", "tracking_number", "message_id", "invoice"):
        assert redact_value({name: visa, "n": {name: int(visa)}}, Counter()) == {name: visa, "n": {name: int(visa)}}
    for name in ("card_number", "pan", "creditCard", "value", "number"):
        assert redact_value({name: visa}, Counter()) == {name: "[redacted:card_number]"}


@pytest.mark.req("LG-10")
@for_each(
    "text",
    [
        "my visa is {} ok", "{}", "Kreditkarte: {}", "charge it to {}, please", "the order is paid with card {}",
        "The order came. {}", "카드번호 {}", "卡号{}", "numéro de carte {}", "tel +49 171 1234567, card {}",
    ],
)  # fmt: skip
def test_a_card_is_found_whatever_stands_around_it(text: str) -> None:
    for number in ("4539" + "1488" + "0343" + "6467", "4539 1488 " + "0343 6467", "4539-1488-" + "0343-6467"):
        clean = redact_text(text.format(number), Counter())
        assert "[redacted:card_number]" in clean, clean
        assert "6467" not in clean


@pytest.mark.req("LG-10")
def test_what_was_taken_out_makes_no_card_of_its_neighbour() -> None:
    visa, phone = "4539" + "1488" + "0343" + "6467", "4917" + "01234" + "5673"
    text = f"{visa} / {phone}"
    assert redact_text(text, Counter()) == f"[redacted:card_number] / {phone}"
