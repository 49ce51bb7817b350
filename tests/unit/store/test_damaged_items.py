"""Items whose stored body was tampered with are refused by name; what we write is read, whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Patch
from muniment.errors import IntegrityFailure
from muniment.store.items import Change, item_of, latest
from products import for_each


@for_each(
    "body",
    [
        '{"a":NaN}', '{"a":[1,-Infinity]}', '{"a":1e999}', '{"a":1,"a":2}', '{"b":[{"a":1,"a":1}]}', "[]", '"text"',
        "null", "7", "", "{", '{"a":1} ', '{"a":1}{}', " {}", '{"a":"\\ud800"}', '{"a":"\\uD800"}',
        '{"a":' + "9" * 5000 + "}", '{"a":' + "[" * 100_000, '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=lambda body: body[:20],
)  # fmt: skip
def test_a_body_that_we_did_not_write_is_refused_by_name(body: str) -> None:
    item = item_of(Change("itm_1", "note", "live", {}, "2026-01-01T00:00:00Z", "user"), 3)._replace(body=body)
    with pytest.raises(IntegrityFailure, match="the note itm_1 is not as it was written") as caught:
        item.plain()
    assert caught.value.details == {"id": "itm_1", "version": 3}
    assert len(caught.value.message) < 300


@for_each(
    "body",
    [
        {}, {"a": {"a": {"a": [{"a": 1}, {"a": 1}]}}}, {"path": "C:\\udev\\ud800"}, {"a": "😀\x00\u2028\"\\"},
        {"a": [0.5, 1e21, 5e-324, 2**70, -1, True, None]},
    ],
)  # fmt: skip
def test_what_we_write_is_read_back(body: dict[str, Any]) -> None:
    item = item_of(Change("itm_1", "note", "live", body, "2026-01-01T00:00:00Z", "user"), 1)
    assert item.plain() == body


@pytest.mark.req("LG-05")
def test_a_build_that_was_tampered_with_is_not_replayed() -> None:
    with muniment.open() as mem:
        run = mem.run(user_id="ana", session_id="s1")
        run.observe("user", "I moved to Berlin in May.")
        build = run.compose("responder", query="Where does she live?")
        engine = mem._ctx.engine
        stored = engine.read("default", lambda reader: latest(reader, build.id))
        assert stored is not None
        assert stored.body is not None
        twice = stored.body[:-1] + ',"z":1,"z":2}'
        engine.write("default", lambda tx: tx.do(Patch("items", (("id", "=", build.id),), {"body": twice})))
        told = "its row or its links are not what its proof says"
        with pytest.raises(IntegrityFailure, match=f"{build.id} is not as it was written: {told}"):
            mem.replay(build.id)
