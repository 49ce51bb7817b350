"""Personal data is told by its form; numbers that only look like it are left alone."""

from __future__ import annotations

from muniment.verify._text_measures import find_personal_data
from products import for_each

FOUND = [
    ("Write to ana.b+x@mail.example.org, please.", "email", "ana.b+x@mail.example.org"),
    ("Call +49 30 1234567 now", "phone", "+49 30 1234567"),
    ("Call (212) 555-0187.", "phone", "(212) 555-0187"),
    ("It is 4111 1111 1111 1111.", "card", "4111 1111 1111 1111"),
    ("Pay to DE89 3704 0044 0532 0130 00 today", "iban", "DE89 3704 0044 0532 0130 00"),
    ("My number is 219-09-9999.", "ssn", "219-09-9999"),
    ("from 8.8.4.4 today", "ip", "8.8.4.4"),
]
FINE = [
    "Order 4111111111111112 is late.",
    "On 2024-05-07 and 07.05.2024.",
    "Version 1.2.3.4.5 and 127.0.0.1 and 192.168.0.7",
    "DE88 3704 0044 0532 0130 00",
    "It costs 1,200 and has 330 metres in 1889.",
    "an @mention, a@b, and 12:30:45",
    "order 123456789012",
]


@for_each(("text", "kind", "said"), FOUND)
def test_what_has_the_form_is_found_where_it_stands(text: str, kind: str, said: str) -> None:
    places = {(each.kind, text[each.start : each.end]) for each in find_personal_data(text)}
    assert (kind, said) in places
    assert not list(find_personal_data(text, [kind], [said.upper()]))


@for_each("text", FINE)
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    assert list(find_personal_data(text)) == []


def test_it_is_read_in_one_pass() -> None:
    for sign in ("a", "1", "1 ", "1-", "a@", "1.", "+1", "DE", ":", "a."):
        list(find_personal_data(sign * 50_000))
