"""What the proxy decides, without a server: bytes edited by spans, streams read beside, whose memory it is."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from model_server import DOORS, Door
from muniment.errors import Forbidden, InvalidInput, InvalidRecord, MunimentError
from muniment.integrations.proxy.callers import Allowed, Defaults, answer_marks, caller_of, list_marks
from muniment.integrations.proxy.routes import (
    address_of,
    checked_upstream,
    dialect_of,
    for_anthropic,
    passed_back,
    passed_on,
)
from muniment.integrations.proxy.sessions import KnownSessions
from muniment.integrations.proxy.settings import load_proxy_settings
from muniment.integrations.proxy.spans import spliced
from muniment.integrations.proxy.tee import Answer, Events
from muniment.integrations.wrapping.dialects import CHAT, MESSAGES, RESPONSES
from muniment.integrations.wrapping.placing import (
    Insertion,
    before_message,
    behind_blocks,
    behind_prompts,
    inserted,
)
from muniment.packets.recording import message_drafts
from muniment.packets.render import DIVIDER

PACKET = 'Evidence "é" \\ \n\u2028 \U0001f600 end'
NOBODY = Defaults("default", "", "agent")

# -- spans ------------------------------------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
_message = st.fixed_dictionaries(
    {"role": st.sampled_from(("user", "assistant", "system"))},
    optional={
        "content": st.none()
        | st.text()
        | st.lists(st.builds(lambda text: {"type": "text", "text": text}, st.text()), max_size=3),
        "extra": _json,
    },
)


@given(
    before=st.dictionaries(st.text(max_size=6), _json, max_size=3),
    messages=st.lists(_message, max_size=5),
    indent=st.sampled_from((None, 0, 3)),
    ascii_only=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_what_is_put_into_the_text_is_what_is_put_into_the_objects(
    before: dict[str, Any], messages: list[Any], indent: int | None, ascii_only: bool
) -> None:
    """And taking it out again leaves the text as it was, byte for byte."""
    body = {**before, "messages": messages, "z": 1}
    text = json.dumps(body, indent=indent, ensure_ascii=ascii_only)
    before = [before_message(messages, "messages", at, PACKET, "text") for at in range(len(messages))]
    for insertion in (behind_prompts(messages, PACKET), behind_blocks(body, "system", PACKET), *before):
        if insertion is None:
            continue
        edited = spliced(text, insertion)
        assert json.loads(edited) == inserted(body, insertion)
        if insertion.how in ("before_text", "after_text", "as_item"):
            at = next(
                (at for at, (one, other) in enumerate(zip(text, edited, strict=False)) if one != other), len(text)
            )
            more = len(edited) - len(text)
            starts = range(max(0, at - more), at + 1)
            assert any(edited[:start] + edited[start + more :] == text for start in starts), "only something was put in"


@pytest.mark.parametrize(
    ("text", "insertion", "wanted"),
    [
        ('{"a":1.0,"a2":1e400,"system":"é\\u00e9"}', Insertion(("system",), "as_blocks", {"t": "p"}),
         '{"a":1.0,"a2":1e400,"system":[{"type":"text","text":"é\\u00e9"},{"t":"p"}]}'),
        ('{ "instructions" : null , "x":[ ] }', Insertion(("instructions",), "as_value", "p"),
         '{ "instructions" : "p" , "x":[ ] }'),
        ("{}", Insertion(("instructions",), "as_value", "p"), '{"instructions":"p"}'),
        ('{"x":[ ]}', Insertion(("x", 0), "as_item", "p"), '{"x":["p" ]}'),
        ('\n{"input":"q"}\n', Insertion(("input",), "before_text", "p\n"), '\n{"input":"p\\nq"}\n'),
    ],
)  # fmt: skip
def test_numbers_escapes_and_spaces_stay_as_they_were_written(text: str, insertion: Insertion, wanted: str) -> None:
    assert spliced(text, insertion) == wanted


def test_where_the_packet_goes() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,x"}}
    question = {"role": "user", "content": [picture, {"type": "text", "text": "What is it?"}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "12"}]}
    assert before_message([question, result], "messages", 0, "P", "text") == Insertion(
        ("messages", 0, "content", 1), "as_item", {"type": "text", "text": f"P{DIVIDER}"}
    )
    assert before_message("Where?", "input", 0, "P", "input_text") == Insertion(
        ("input",), "before_text", f"P{DIVIDER}"
    )
    assert before_message([result], "messages", 0, "P", "text") is None
    assert behind_prompts([question], "P").path == ("messages", 0)


# -- answers read beside ----------------------------------------------------------------------------------


def said(messages: list[Any]) -> str:
    """The text of an answer, whichever form it has."""

    def text(held: Any) -> str:
        if isinstance(held, list):
            return "".join(map(text, held))
        return held if isinstance(held, str) else str(held.get("text") or text(held.get("content") or ""))

    return "".join(map(text, messages))


def sse(door: Door, *texts: str) -> bytes:
    from model_server import _sse

    return b"".join(_sse(event) for event in door.streams(*texts))


DIALECT = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("coding", ["identity", "gzip", "deflate", "raw deflate"])
def test_a_stream_is_read_however_it_is_cut(door: Door, size: int, coding: str) -> None:
    data = sse(door, "In Bérlin", " \U0001f600.").replace(b"\n", b"\r\n" if size == 7 else b"\n")
    if coding == "gzip":
        data = gzip.compress(data)
    elif coding == "deflate":
        data = zlib.compress(data)
    elif coding == "raw deflate":
        packing = zlib.compressobj(wbits=-15)
        data = packing.compress(data) + packing.flush()
    answer = Answer(DIALECT[door.name], "text/event-stream; charset=utf-8", coding.removeprefix("raw "), 1 << 20)
    for at in range(0, len(data), size):
        answer.take(data[at : at + size])
    assert answer.is_whole
    assert not answer.lost
    assert said(answer.messages()) == "In Bérlin \U0001f600."
    assert answer.response_id == ("r1" if door.name == "responses" else "")


@pytest.mark.soak
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_a_stream_that_broke_off_is_marked_and_so_is_what_cannot_be_read(door: Door) -> None:
    dialect = DIALECT[door.name]
    whole = sse(door, "In ", "Berlin.")
    cut = Answer(dialect, "text/event-stream", "", 1 << 20)
    cut.take(whole[: whole.index(b"Berlin.")])
    assert not cut.is_whole
    assert (cut.messages()[0]["status"], said(cut.messages())) == ("incomplete", "In ")
    for media, coding, data, bytes_max in (
        ("application/json", "br", b"{}", 99),
        ("application/json", "gzip", b"no gzip", 99),
        ("application/json", "", b"[" * 50, 99),
        ("application/json", "", b"x" * 100, 99),
        ("application/json", "gzip", gzip.compress(b" " * 50_000_000), 1 << 20),
    ):
        answer = Answer(dialect, media, coding, bytes_max)
        answer.take(data)
        answer.end()
        assert answer.lost
        assert answer.messages() == []


ODD = (5, True, None, "z", [], {}, [[1]], {"a": 1}, [{"type": [1]}], [{"type": "text", "text": 5}])
"""What an upstream may send in the place of anything."""


def odd_versions(plain: Any) -> Iterator[Any]:
    """The same with something odd in one place, for each place and each odd thing."""
    yield from ODD
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, value in inner:
        for odd in odd_versions(value):
            changed = dict(plain) if isinstance(plain, dict) else list(plain)
            changed[key] = odd
            yield changed


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_an_answer_of_any_shape_is_read_without_an_error(door: Door) -> None:
    dialect = DIALECT[door.name]
    answers: list[Answer] = []
    for events in (door.streams("In ", "Berlin."), door.streams_call("c1", "look", {"at": 1})):
        for at, event in enumerate(events):
            for odd in odd_versions(event):
                answers.append(answer := Answer(dialect, "text/event-stream", "", 1 << 20))
                for each in (*events[:at], odd, *events[at + 1 :]):
                    answer.take(b"data: " + json.dumps(each).encode() + b"\n\n")
    for odd in odd_versions(door.says("In Berlin.", (("c1", "look", {"at": 1}),))):
        answers.append(answer := Answer(dialect, "application/json", "", 1 << 20))
        answer.take(json.dumps(odd).encode())
        answer.end()
    assert len(answers) > 100
    for answer in answers:
        messages = answer.messages()
        answer_marks([{"role": "user", "content": "Where?"}], messages)
        with suppress(MunimentError):  # not recorded, and the caller's next list brings it again
            message_drafts(messages, "s1")


def test_several_choices_are_answered_with_the_first_and_calls_side_by_side_are_kept_apart() -> None:
    answer = Answer(CHAT, "application/json", "", 1 << 20)
    made = [{"id": f"c{at}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for at in (1, 2)]
    choices = [
        {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": made}},
        {"index": 1, "message": {"role": "assistant", "content": "other"}},
    ]
    answer.take(json.dumps({"choices": choices}).encode())
    answer.end()
    (message,) = answer.messages()
    assert [call["id"] for call in message["tool_calls"]] == ["c1", "c2"]


@pytest.mark.timeout(60)
def test_a_line_that_never_ends_is_read_once() -> None:
    events = Events()
    for _ in range(400_000):
        assert list(events.take(b"data: aaaaaaaaaaaaaaaa")) == []
    assert len(list(events.take(b"\n\n"))) == 1


# -- whose, and where to ----------------------------------------------------------------------------------


def test_who_is_meant() -> None:
    """The order: key, header, metadata, safety_identifier, user, the proxy's own."""
    asked: dict[str, Any] = {}
    ladder = [
        ("own", Defaults("default", "own", "agent")),
        ("u", {"user": "u"}),
        ("safe", {"safety_identifier": "safe"}),
        ("meta", {"metadata": {"user_id": "meta"}}),
    ]
    for wanted, more in ladder:
        if isinstance(more, dict):
            asked |= more
        found = caller_of({}, asked, Allowed(), ladder[0][1])  # type: ignore[arg-type]
        assert found is not None
        assert found.user_id == wanted
    headers = {"muniment-user": "head", "muniment-session": "s", "muniment-agent": "a", "muniment-tenant": "t"}
    assert caller_of(headers, asked, Allowed(), NOBODY) == ("head", "s", "a", "t")
    keyed = caller_of({}, asked, Allowed("acme", "kay"), NOBODY)
    assert keyed is not None
    assert (keyed.user_id, keyed.tenant_id) == ("kay", "acme")
    assert caller_of({}, {"metadata": [1], "user": 3}, Allowed(), NOBODY) is None
    for refused in ({"muniment-user": "bob"}, {"muniment-tenant": "other"}):
        with pytest.raises(Forbidden):
            caller_of(refused, asked, Allowed("acme", "kay"), NOBODY)
    with pytest.raises(InvalidRecord):
        caller_of({"muniment-user": "x" * 300}, {}, Allowed(), NOBODY)


def test_the_session_in_a_users_id() -> None:
    for user_id, user, session in (
        ("user_ab_account_cd_session_ef", "user_ab_account_cd", "ef"),
        ("_session_x", "_session_x", None),
        ("plain", "plain", None),
        ("{broken", "{broken", None),
    ):
        found = caller_of({}, {"metadata": {"user_id": user_id}}, Allowed(), NOBODY)
        assert found is not None
        assert (found.user_id, found.session_id) == (user, session)
    told = [caller_of({}, {"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": s})}}, Allowed(), NOBODY)
            for s in "xy"]  # fmt: skip
    assert [each.session_id for each in told if each] == ["x", "y"]
    assert len({each.user_id for each in told if each}) == 1
    codex = {"client_metadata": {"session_id": "t1"}, "conversation": "c1", "user": "ana"}
    found = caller_of({}, codex, Allowed(), NOBODY)
    assert found is not None
    assert found.session_id == "t1", "two sessions of Codex in one directory begin with the same words"
    for odd in ({"session_id": 1}, "x", None, []):
        found = caller_of({}, {"client_metadata": odd, "user": "ana"}, Allowed(), NOBODY)
        assert found is not None
        assert found.session_id is None


def test_a_list_is_known_by_its_answers_and_by_nobody_elses() -> None:
    asked = [{"role": "user", "content": "Hi"}]
    answer = [{"role": "assistant", "content": "Hello."}]
    call = [{"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {}}]}]
    known = KnownSessions(count_max=3)
    known.keep("t", "ana", answer_marks(asked, answer), "s1")
    later, beginning = list_marks([*asked, *answer, *call, {"role": "user", "content": "And?"}])
    assert known.find("t", "ana", later) == "s1"
    assert known.find("t", "bob", later) is None
    assert known.find("u", "ana", later) is None
    assert beginning == list_marks(asked)[1] != list_marks([{"role": "user", "content": "Ho"}])[1]
    assert list_marks([{"role": "user", "content": "Ho"}, *answer])[0] != answer_marks(asked, answer), "asked otherwise"
    known.keep("t", "ana", "abc", "s2")
    assert known.find("t", "ana", later) is None, "the oldest go first"


def test_routes_and_headers() -> None:
    assert dialect_of("POST", "/v1/chat/completions") is dialect_of("POST", "/openai/deployments/d/chat/completions")
    assert dialect_of("POST", "/v1/responses") is RESPONSES
    assert dialect_of("POST", "/v1/messages") is MESSAGES
    for other in ("/v1/threads/t/messages", "/v1/messages/count_tokens", "/v1/responses/r1/cancel", "/v1/models"):
        assert dialect_of("POST", other) is None
    assert dialect_of("GET", "/v1/responses") is None
    assert address_of("https://a/v1", "/v1/models", "x=1") == "https://a/v1/models?x=1"
    assert address_of("https://a/openai", "/v1/models", "") == "https://a/openai/v1/models"
    assert for_anthropic("/v1/models", [(b"Anthropic-Version", b"2")])
    assert for_anthropic("/v1/messages/count_tokens", [])
    assert not for_anthropic("/v1/models", [])
    sent = [
        (b"host", b"h"), (b"authorization", b"Bearer k"), (b"muniment-key", b"m"), (b"connection", b"x-hop"),
        (b"x-hop", b"1"), (b"content-length", b"3"), (b"accept-encoding", b"br, gzip;q=0.5, zstd"), (b"x-a", b"\xe9"),
    ]  # fmt: skip
    kept = dict(passed_on(sent, is_read=True))
    assert kept == {b"authorization": b"Bearer k", b"accept-encoding": b"gzip;q=0.5", b"x-a": b"\xe9"}
    assert dict(passed_on(sent, is_read=False))[b"accept-encoding"] == b"br, gzip;q=0.5, zstd"
    back = passed_back([(b"Muniment-Build", b"theirs"), (b"X-RateLimit", b"1")], [(b"muniment-build", b"ours")])
    assert back == [(b"X-RateLimit", b"1"), (b"muniment-build", b"ours")]


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({}, "upstream"), ({"upstream": "api.openai.com"}, "upstream"), ({"upstream": "https://u:p@a"}, "upstream"),
        ({"upstream": "https://a", "on_error": "maybe"}, "on_error"),
        ({"upstream": "https://a", "port": 70_000}, "port"),
        ({"upstream": "https://a", "threads": 0}, "threads"), ({"upstream": "https://a", "tls_cert": "c"}, "tls_key"),
        ({"upstream": "https://a", "port": "x"}, "port"), ({"upstream": "https://a", "max_tokens": 10}, "max_tokens"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_proxy_settings(given, {})
    assert place in str(refused.value.path)


def test_settings_come_from_arguments_then_the_environment_then_the_file(tmp_path: Any) -> None:
    (tmp_path / "m.toml").write_text('[proxy]\nupstream = "https://file"\nport = 1\nplace = "system"\n')
    environ = {"MUNIMENT_CONFIG": str(tmp_path / "m.toml"), "MUNIMENT_PROXY_PORT": "2"}
    found = load_proxy_settings({"upstream": "https://argument/"}, environ)
    assert (found.upstream, found.port, found.place) == ("https://argument/", 2, "system")
    assert checked_upstream("https://argument/", "upstream") == "https://argument"
