"""What clients and upstreams may do to a proxy: connections, bodies, names, endpoints, and the same thing twice."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.integrations.test_proxy import ANA, TOLD, chat_body, client, send, user

import muniment
from model_server import Chat, Messages, Raw, Responses, Server, serving
from muniment.surfaces.http._keys import KeyFile
from proxy_room import proxying, stored

pytest.importorskip("uvicorn", reason="no proxy: pip install -e '.[proxy]'")
_ANA = {"muniment_user": "ana", "muniment_session": "s1"}
CHAT = "/v1/chat/completions"
QUESTION = "Where do I live?"


@pytest.fixture
def upstream() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as store:
        store.run(user_id="ana", session_id="before").observe("user", TOLD)
        yield store


@pytest.fixture
def proxy(mem: muniment.Memory, upstream: Server) -> Iterator[Server]:
    with proxying(mem, upstream.url) as made:
        yield made


def raw_connection(proxy: Server) -> socket.socket:
    host, port = proxy.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def head(path: str, body: bytes, *more: str, method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}"]
    lines += ["content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in ANA.items()]
    return ("\r\n".join([*lines, *more]) + "\r\n\r\n").encode() + body


def answers_on(connection: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """So many answers, one behind the other, on one connection."""
    found = []
    file = connection.makefile("rb")
    for _ in range(count):
        status = int(file.readline().split()[1])
        headers = {}
        while (line := file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if "content-length" in headers:
            body = file.read(int(headers["content-length"]))
        else:
            body = b""
            while size := int(file.readline(), 16):
                body += file.read(size)
                file.readline()
            file.readline()
        found.append((status, body))
    return found


# -- connections ----------------------------------------------------------------------------------------------


def test_requests_one_behind_the_other_on_one_connection(upstream: Server, proxy: Server, mem: muniment.Memory) -> None:
    """Sent before the first is answered; one of them is refused, and the others have their way."""
    messages: list[Any] = [user("One?")]
    upstream.answers += [Chat().says("One."), Chat().says("Two."), {"data": []}]
    first = head(CHAT, chat_body(*messages))
    messages += [{"role": "assistant", "content": "One."}, user("Two?")]
    with raw_connection(proxy) as connection:
        connection.sendall(first + head(CHAT, b"[1]") + head(CHAT, chat_body(*messages)))
        connection.sendall(head("/v1/models", b"", method="GET"))
        found = answers_on(connection, 4)
    assert [status for status, _ in found] == [200, 422, 200, 200]
    assert [json.loads(body)["choices"][0]["message"]["content"] for _, body in (found[0], found[2])] == [
        "One.",
        "Two.",
    ]
    assert [text for _, text in stored(mem, session="s1")] == ["One?", "One.", "Two?", "Two."]


def test_a_body_in_chunks_is_a_body(upstream: Server, proxy: Server, mem: muniment.Memory) -> None:
    body = chat_body(user(QUESTION))
    upstream.answers += [Chat().says("In Berlin."), {"id": "file_1"}]
    with closing(http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=30)) as connection:
        for path in (CHAT, "/v1/files"):
            parts = (body[at : at + 7] for at in range(0, len(body), 7))
            connection.request("POST", path, parts, ANA | {"Content-Type": "application/json"}, encode_chunked=True)
            with connection.getresponse() as answer:
                assert answer.status == 200
                answer.read()
    assert TOLD in upstream.received[0].body.decode()
    assert upstream.received[1].body == body
    assert stored(mem, session="s1") == [("user", QUESTION), ("assistant", "In Berlin.")]


@pytest.mark.parametrize(
    "lines",
    [
        ["transfer-encoding: chunked"],
        ["content-length: 3"],
        ["muniment-user : eve"],
        ["bad header"],
    ],
)
def test_a_head_that_can_be_read_in_two_ways_is_refused(
    upstream: Server, proxy: Server, lines: list[str], mem: muniment.Memory
) -> None:
    """A length and chunks, two lengths, a space before the colon: what two servers read differently is not passed."""
    with raw_connection(proxy) as connection:
        connection.sendall(head(CHAT, chat_body(user(QUESTION)), *lines) + head("/v1/models", b"", method="GET"))
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert upstream.received == []
    assert stored(mem, session="s1") == []


def test_a_client_that_waits_to_be_told_to_go_on(upstream: Server, proxy: Server) -> None:
    upstream.answers.append(Chat().says("In Berlin."))
    whole = head(CHAT, chat_body(user(QUESTION)), "expect: 100-continue")
    at = whole.index(b"\r\n\r\n") + 4
    with raw_connection(proxy) as connection:
        connection.sendall(whole[:at])
        assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")
        connection.sendall(whole[at:])
        ((status, _),) = answers_on(connection, 1)
    assert status == 200
    assert TOLD in upstream.received[0].body.decode()


def test_answers_without_a_body(upstream: Server, proxy: Server) -> None:
    upstream.answers += [
        Raw([], 200, {"Content-Length": "0"}),
        Raw([], 204, {"Content-Length": "0"}),
        Raw([], 304, {"Content-Length": "0", "ETag": '"x"'}),
    ]
    assert send(proxy, "GET", "/v1/models")[0] == 200
    assert send(proxy, "DELETE", "/v1/files/f1")[0] == 204
    status, headers, body = send(proxy, "GET", "/v1/models")
    assert (status, headers["etag"], body) == (304, '"x"', b"")


def test_an_upstream_that_dies_within_a_whole_answer(upstream: Server, proxy: Server, mem: muniment.Memory) -> None:
    """Its length was said: the caller sees that bytes are missing, and half an answer is nobody's words."""
    whole = json.dumps(Chat().says("In Berlin.")).encode()
    from model_server import BREAKS

    upstream.answers.append(
        Raw([whole[:40], BREAKS], 200, {"Content-Type": "application/json", "Content-Length": "999"})
    )
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        send(proxy, "POST", CHAT, chat_body(user(QUESTION)), **_ANA)
    assert stored(mem, session="s1") == [("user", QUESTION)]


def test_a_caller_that_hangs_up_while_it_sends_and_while_it_waits(
    upstream: Server, proxy: Server, mem: muniment.Memory
) -> None:
    with raw_connection(proxy) as connection:
        connection.sendall(head(CHAT, chat_body(user(QUESTION)))[:-5])
    wait = threading.Event()
    upstream.answers.append(Raw([wait, b"{" * 70_000, b"{" * 70_000, b"{" * 7_000_000], 200))
    with raw_connection(proxy) as connection:
        connection.sendall(head(CHAT, chat_body(user("And then?"))))
        for _ in range(500):
            if upstream.received:
                break
            threading.Event().wait(0.02)
    wait.set()
    assert upstream.gone.wait(20), "the upstream works for nobody"
    assert [text for _, text in stored(mem, session="s1")] == ["And then?"]
    upstream.answers.append(Chat().says("In Berlin."))
    assert send(proxy, "POST", CHAT, chat_body(user(QUESTION)), muniment_user="ana", muniment_session="s2")[0] == 200


# -- names ----------------------------------------------------------------------------------------------------


def test_two_users_with_one_session(upstream: Server, proxy: Server, mem: muniment.Memory) -> None:
    upstream.answers += [Chat().says("In Berlin."), Chat().says("No idea.")]
    for name in ("ana", "bob"):
        send(proxy, "POST", CHAT, chat_body(user(QUESTION)), muniment_user=name, muniment_session="s1")
    assert TOLD in upstream.received[0].body.decode()
    assert TOLD not in upstream.received[1].body.decode()
    assert stored(mem, "ana", "s1") == [("user", QUESTION), ("assistant", "In Berlin.")]
    assert stored(mem, "bob", "s1") == [("user", QUESTION), ("assistant", "No idea.")]


def test_who_is_meant_where_two_are_named(upstream: Server, mem: muniment.Memory, tmp_path: Any) -> None:
    """The header counts before what the request says; a key counts before both."""
    from muniment.core.outside.system import system_clock

    said = chat_body(user(QUESTION), metadata={"user_id": "bob"}, user="carl", safety_identifier="dora")
    upstream.answers += [Chat().says("In Berlin.")] * 2
    with proxying(mem, upstream.url) as proxy:
        assert send(proxy, "POST", CHAT, said, **_ANA)[0] == 200
    key = KeyFile(tmp_path / "keys.json", system_clock).create("ana", tenant="default", user="ana").token
    with proxying(mem, upstream.url, auth="on", keys=str(tmp_path / "keys.json")) as proxy:
        assert send(proxy, "POST", CHAT, said, muniment_key=key, muniment_session="s2")[0] == 200
    assert all(TOLD in each.body.decode() for each in upstream.received)
    assert {len(stored(mem, name)) for name in ("bob", "carl", "dora")} == {0}
    assert stored(mem, session="s1") == stored(mem, session="s2") == [("user", QUESTION), ("assistant", "In Berlin.")]


@pytest.mark.parametrize("name", ["muniment-user", "muniment-session", "muniment-tenant", "muniment-agent"])
def test_a_name_that_is_said_twice_is_refused(upstream: Server, proxy: Server, mem: muniment.Memory, name: str) -> None:
    """Whichever were taken, somebody who put a header before or behind it would choose whose memory it is."""
    with raw_connection(proxy) as connection:
        connection.sendall(head(CHAT, chat_body(user(QUESTION)), f"{name}: one", f"{name}: two"))
        ((status, body),) = answers_on(connection, 1)
    assert (status, json.loads(body)["path"]) == (422, f"$.headers.{name}")
    assert upstream.received == []
    assert stored(mem, session="s1") == []


@pytest.mark.parametrize("session", ["a\r\nx-evil: 1", "a\nb", "a\x00b", "\x1b[2J", "x" * 5_000, " ", "é" * 9, "日本"])
def test_a_session_that_is_no_name_of_one_reaches_no_header(
    upstream: Server, proxy: Server, mem: muniment.Memory, session: str
) -> None:
    upstream.answers.append(Chat().says("In Berlin."))
    body = chat_body(user(QUESTION), metadata={"session_id": session, "user_id": "ana"})
    status, headers, answer = send(proxy, "POST", CHAT, body)
    assert "x-evil" not in headers
    assert status in (200, 422), answer
    if status == 422:
        assert json.loads(answer)["path"].startswith("$")
        assert upstream.received == []
        assert stored(mem) == [("user", TOLD)]


def test_what_an_upstream_says_in_our_name_does_not_pass(upstream: Server, proxy: Server) -> None:
    told = {"muniment-build": "bld_evil", "muniment-error": "x", "Content-Length": "2", "x-own": "1"}
    upstream.answers += [Raw([b"{}"], 200, told), Raw([b"{}"], 500, told)]
    for path, body in (("/v1/models", b""), (CHAT, chat_body(user(QUESTION)))):
        _, headers, _ = send(proxy, "POST", path, body, **_ANA)
        assert headers["x-own"] == "1"
        assert headers.get("muniment-build") != "bld_evil"
        assert "muniment-error" not in headers


# -- bodies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "application/vnd.x+json"])
def test_a_request_in_any_kind_of_json_is_read(
    upstream: Server, proxy: Server, mem: muniment.Memory, media: str
) -> None:
    upstream.answers.append(Chat().says("In Berlin."))
    status, headers, _ = send(proxy, "POST", CHAT, chat_body(user(QUESTION)), **_ANA, content_type=media)
    assert (status, "muniment-error" in headers) == (200, False)
    assert upstream.received[0].headers["content-type"] == media
    assert stored(mem, session="s1") == [("user", QUESTION), ("assistant", "In Berlin.")]


@pytest.mark.parametrize("media", ["", "application/json", "text/plain", "application/octet-stream", "text/html"])
def test_an_answer_is_read_whatever_it_is_called(
    upstream: Server, proxy: Server, mem: muniment.Memory, media: str
) -> None:
    data = json.dumps(Chat().says("In Berlin.")).encode()
    named = {"Content-Type": media} if media else {}
    upstream.answers.append(Raw([data], 200, {"Content-Length": str(len(data)), **named}))
    _, headers, body = send(proxy, "POST", CHAT, chat_body(user(QUESTION)), **_ANA)
    assert (body, headers.get("content-type", "")) == (data, media)
    assert stored(mem, session="s1")[-1] == ("assistant", "In Berlin.")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_body_in_another_encoding_is_refused_or_passed(
    upstream: Server, proxy: Server, mem: muniment.Memory, encoding: str
) -> None:
    upstream.answers.append(Chat().says("In Berlin."))
    body = chat_body(user(QUESTION)).decode().encode(encoding)
    status, headers, _ = send(proxy, "POST", CHAT, body, **_ANA)
    assert headers["muniment-error"] == "invalid_json"
    if status == 200:
        assert upstream.received[0].body == body
    assert stored(mem, session="s1") == []


def test_a_large_request_and_a_larger_answer_pass_whole(upstream: Server, mem: muniment.Memory) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000_000}}
    body = chat_body(user([{"type": "text", "text": QUESTION}, picture]))  # type: ignore[arg-type]
    answer = json.dumps(Chat().says("B" * 2_000_000)).encode()
    upstream.answers.append(
        Raw([answer], 200, {"Content-Type": "application/json", "Content-Length": str(len(answer))})
    )
    with proxying(mem, upstream.url, answer_bytes_max=1_000_000) as proxy:
        status, _, got = send(proxy, "POST", CHAT, body, **_ANA)
    assert (status, got) == (200, answer)
    sent = json.loads(upstream.received[0].body)["messages"][0]["content"]
    assert picture in sent
    assert TOLD in json.dumps(sent)
    assert [role for role, _ in stored(mem, session="s1")] == ["user"], "an answer that is too long is not recorded"


PARTS = [
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
    {"type": "file", "file": {"file_id": "file_1"}},
]


def test_pictures_sound_files_and_choices_pass_as_they_are(
    upstream: Server, proxy: Server, mem: muniment.Memory
) -> None:
    more: dict[str, Any] = {
        "n": 3, "tool_choice": {"type": "function", "function": {"name": "weather"}}, "store": True,
        "parallel_tool_calls": False, "modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"},
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
        "logit_bias": {"50256": -100}, "response_format": {"type": "json_object"}, "seed": 7, "stop": ["\n"],
    }  # fmt: skip
    body = chat_body(user([{"type": "text", "text": QUESTION}, *PARTS]), **more)  # type: ignore[arg-type]
    answer = Chat().says("In Berlin.")
    answer["choices"] += [{**answer["choices"][0], "index": at} for at in (1, 2)]
    sound = {"id": "a1", "data": "QUJD", "transcript": "In Berlin, I said.", "expires_at": 1}
    heard = Chat().says("")
    heard["choices"][0]["message"]["audio"] = sound
    upstream.answers += [answer, heard]
    status, _, got = send(proxy, "POST", CHAT, body, **_ANA)
    assert (status, json.loads(got)) == (200, answer)
    sent = json.loads(upstream.received[0].body)
    assert {name: sent[name] for name in more} == more
    assert [part for part in sent["messages"][0]["content"] if part["type"] != "text"] == PARTS
    assert stored(mem, session="s1")[-1] == ("assistant", "In Berlin.")
    status, _, got = send(proxy, "POST", CHAT, body, muniment_user="ana", muniment_session="s2")
    assert (status, json.loads(got)) == (200, heard)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_streams_of_several_choices_record_the_first(
    upstream: Server, proxy: Server, mem: muniment.Memory, n: int
) -> None:
    events = [event for event in Chat().streams("In ", "Berlin.") if event != "[DONE]"]
    mixed = []
    for event in events:
        for at in reversed(range(n)):
            choice = {**event["choices"][0], "index": at}
            if at and choice["delta"].get("content"):
                choice["delta"] = {"role": "assistant", "content": f"Other {at} "}
            mixed.append({**event, "choices": [choice]})
    upstream.answers.append([*mixed, "[DONE]"])
    events_got = list(
        client(Chat(), proxy).chat.completions.create(model="small", messages=[user(QUESTION)], n=n, stream=True)
    )
    assert len(events_got) == len(mixed)
    assert stored(mem, session="s1") == [("user", QUESTION), ("assistant", "In Berlin.")]


# -- other endpoints ------------------------------------------------------------------------------------------


def test_endpoints_that_ask_no_model_pass_untouched(upstream: Server, proxy: Server, mem: muniment.Memory) -> None:
    beta = {"anthropic_version": "2023-06-01", "anthropic_beta": "a-1,b-2", "x_api_key": "sk-ant"}
    body = json.dumps({"model": "m", "messages": [user(QUESTION)]}).encode()
    for path in (
        "/v1/messages/count_tokens", "/v1/messages/batches", "/v1/batches", "/v1/files", "/v1/embeddings",
        "/v1/responses/input_tokens", "/v1/responses/r1/cancel", "/v1/completions", "/v1/audio/transcriptions",
        "/v1/images/generations", "/v1/moderations", "/v1/threads/t1/messages", "/v1beta/models/g:generateContent",
    ):  # fmt: skip
        upstream.answers.append({"ok": True})
        status, _, answer = send(proxy, "POST", path, body, **_ANA, **beta)
        assert (status, json.loads(answer)) == (200, {"ok": True}), path
        got = upstream.received[-1]
        assert (got.path, got.body) == (path, body)
        assert (got.headers["anthropic-beta"], got.headers["x-api-key"]) == ("a-1,b-2", "sk-ant")
    assert stored(mem) == [("user", TOLD)]


def test_anthropics_headers_and_blocks_pass_where_a_model_is_asked(
    upstream: Server, proxy: Server, mem: muniment.Memory
) -> None:
    cached = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    body = json.dumps(
        {
            "model": "m", "max_tokens": 9, "system": [cached], "thinking": {"type": "enabled", "budget_tokens": 1024},
            "messages": [
                user([{"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}]),  # type: ignore[arg-type]
                {"role": "system", "content": "The date has changed."},
            ],
            "metadata": {"user_id": json.dumps({"device_id": "d", "account_uuid": "", "session_id": "s9"})},
        }
    ).encode()  # fmt: skip
    upstream.answers.append(Messages().says("In Berlin."))
    status, headers, _ = send(
        proxy, "POST", "/v1/messages?beta=true", body, muniment_user="ana", anthropic_beta="context-1m", x_api_key="sk"
    )
    assert (status, headers.get("muniment-error"), headers["muniment-session"]) == (200, None, "s9")
    got = upstream.received[0]
    assert (got.path, got.headers["anthropic-beta"]) == ("/v1/messages?beta=true", "context-1m")
    sent = json.loads(got.body)
    assert sent["system"] == [cached]
    assert sent["messages"][1] == {"role": "system", "content": "The date has changed."}
    assert TOLD in json.dumps(sent["messages"][0])
    assert stored(mem, session="s9")[-1] == ("assistant", "In Berlin.")


def test_a_response_in_the_background(upstream: Server, mem: muniment.Memory) -> None:
    """It is answered with nothing but its id; what goes on from it is the same session."""
    door = Responses()
    queued = door.says("", id="r1") | {"status": "queued", "background": True}
    upstream.answers += [queued, door.says("In Berlin.", id="r1"), door.says("Yes.", id="r2")]
    with proxying(mem, upstream.url, user="ana") as proxy:
        asking = door.client(proxy, is_async=False)
        first = asking.responses.create(model="small", input=QUESTION, background=True)
        assert first.status == "queued"
        assert asking.responses.retrieve("r1").output_text == "In Berlin."
        asking.responses.create(model="small", input="Sure?", previous_response_id="r1")
    sessions = {each.scope.session_id for each in mem.ledger.entries(user_id="ana") if each.kind == "message"}
    said = sorted([text for _, text in stored(mem, session=session)] for session in sessions)
    assert said[0] == [TOLD]
    assert said[1][0] == QUESTION
    assert said[1][-2:] == ["Sure?", "Yes."]


# -- the same thing twice -------------------------------------------------------------------------------------


def test_a_retry_under_one_key_is_one_question_and_the_answer_that_was_given(
    upstream: Server, proxy: Server, mem: muniment.Memory
) -> None:
    """The first answer never reached the client, which asks again and hears another."""
    body = chat_body(user(QUESTION))
    upstream.answers += [500, Chat().says("In Berlin."), Chat().says("In Berlin.")]
    for wanted in (500, 200, 200):
        assert send(proxy, "POST", CHAT, body, **_ANA, idempotency_key="k1")[0] == wanted
    assert {each.headers["idempotency-key"] for each in upstream.received} == {"k1"}
    assert stored(mem, session="s1") == [("user", QUESTION), ("assistant", "In Berlin.")]
    bodies = {each.body for each in upstream.received}
    assert len(bodies) == 1, "asked again it is the same request, packet and all: a provider answers from its cache"


def test_the_same_request_many_times_at_once(upstream: Server, proxy: Server, mem: muniment.Memory) -> None:
    upstream.answers += [Chat().says("In Berlin.")] * 8
    body = chat_body(user(QUESTION))
    found: list[int] = []

    def ask() -> None:
        found.append(send(proxy, "POST", CHAT, body, **_ANA, idempotency_key="k1")[0])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [200] * 8
    assert stored(mem, session="s1") == [("user", QUESTION), ("assistant", "In Berlin.")]
    assert mem.verify().ok


# -- pages of other sites ------------------------------------------------------------------------------------------

ROUTES = [
    ("POST", CHAT),
    ("POST", "/v1/responses"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/files"),
    ("GET", "/v1/models"),
    ("DELETE", "/v1/responses/r_1"),
    ("OPTIONS", CHAT),
    ("GET", "/v1/realtime"),
]
"""One of each kind: what is recorded, what passes with a body and without, a preflight, a WebSocket's handshake."""
FROM_ELSEWHERE = {
    "another site": ["Host: localhost", "Origin: https://evil.example"],
    "a file or a sandboxed frame": ["Host: localhost", "Origin: null"],
    "another port of this machine": ["Host: localhost:8766", "Origin: http://localhost:3000"],
    "a second origin": ["Host: localhost", "Origin: http://localhost", "Origin: https://evil.example"],
    "no origin, cross-site": ["Host: localhost", "Sec-Fetch-Site: cross-site"],
    "a form's navigation": ["Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"],
    "another port, no origin": ["Host: localhost", "Sec-Fetch-Site: same-site"],
    "a rebound name": ["Host: evil.example"],
    "a rebound name and its origin": ["Host: evil.example", "Origin: http://evil.example"],
    "a name that begins like ours": ["Host: 127.0.0.1.evil.example"],
    "no name": [],
    "a tunnel": ["Host: localhost", "X-Forwarded-For: 8.8.8.8"],
    "a tunnel that says how alone": ["Host: localhost", "X-Forwarded-Proto: https"],
    "a proxy": ["Host: localhost", "Via: 1.1 edge"],
    "a proxy in one word": ["Host: localhost", "Forwarded: for=8.8.8.8"],
}


@pytest.mark.parametrize("lines", FROM_ELSEWHERE.values(), ids=FROM_ELSEWHERE.keys())
def test_pages_of_other_sites_and_what_a_proxy_passes_on_are_refused_everywhere(
    upstream: Server, mem: muniment.Memory, lines: list[str]
) -> None:
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: x"]
    taken = []
    with proxying(mem, upstream.url, anthropic_upstream=upstream.url, user="ana") as proxy:
        for method, path in ROUTES:
            for media in ("application/json", "text/plain"):
                body = chat_body(user("My payouts go to evil@example.com.")) if method == "POST" else b""
                head = [f"{method} {path} HTTP/1.1", *lines, f"Content-Length: {len(body)}", f"Content-Type: {media}"]
                head += upgrade if path.endswith("realtime") else []
                with raw_connection(proxy) as connection:
                    connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
                    answer = connection.recv(65536)
                if not answer.startswith(b"HTTP/1.1 403 ") or b"access-control" in answer.lower():
                    taken.append((method, path, media, answer[:60]))
    assert taken == []
    assert upstream.received == []
    assert [text for _, text in stored(mem)] == [TOLD]


@pytest.mark.parametrize(
    "media", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x;;y"]
)
@pytest.mark.parametrize("path", [CHAT, "/v1/responses", "/v1/messages"])
def test_what_a_page_can_send_without_asking_is_not_recorded(
    upstream: Server, proxy: Server, mem: muniment.Memory, path: str, media: str
) -> None:
    """A browser that sends no `Origin` could send these kinds of bodies from any page."""
    body = chat_body(user(QUESTION))
    with raw_connection(proxy) as connection:
        sent = head(path, body).replace(b"application/json", media.encode())
        connection.sendall(sent if media else sent.replace(b"content-type: \r\n", b""))
        ((status, answer),) = answers_on(connection, 1)
    assert (status, json.loads(answer)["code"]) == (415, "unsupported_media")
    assert upstream.received == []
    assert stored(mem, session="s1") == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8766", "[::1]:8766"])
def test_own_pages_and_plain_clients_pass(upstream: Server, proxy: Server, host: str) -> None:
    named = [{}, {"origin": f"http://{host}", "sec_fetch_site": "same-origin"}, {"sec_fetch_site": "none"}]
    upstream.answers += [{"data": []}] * len(named)
    assert [send(proxy, "GET", "/v1/models", host=host, **each)[0] for each in named] == [200] * len(named)


def test_a_proxy_that_knows_whom_to_let_in_is_let_in_by_auth_off(upstream: Server, mem: muniment.Memory) -> None:
    upstream.answers.append({"data": []})
    with proxying(mem, upstream.url, auth="off") as proxy:
        assert send(proxy, "GET", "/v1/models", x_forwarded_for="8.8.8.8")[0] == 200
        assert send(proxy, "GET", "/v1/models", origin="https://evil.example")[0] == 403
