"""A server of our own that speaks three protocols, with scripted answers; and the official clients in front of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from muniment.packets.page import PAGE_SIGN
from muniment.packets.render import DIVIDER

BREAKS = object()
"""In a stream: the connection is lost here."""


@dataclass
class Raw:
    """An answer byte for byte: a status, headers, and its parts, each sent by itself. `wait` holds the next part back
    until somebody sets it.
    """

    parts: list[Any]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Received(NamedTuple):
    """A request byte for byte."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """What it answers in turn, and what it was asked."""

    url: str = ""
    answers: list[Any] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when a caller went away before its answer was whole."""
    clients: list[Any] = field(default_factory=list)
    """The sync ones, closed with the server; an async one is closed in its loop."""

    def made(self, client: Any, *, is_async: bool) -> Any:
        if not is_async:
            self.clients.append(client)
        return client


@contextmanager
def serving(choose: Callable[[Received], Any] | None = None) -> Iterator[Server]:
    """An answer is a JSON body, a list of the events of a stream, a `Raw`, or a number: the status of a refusal. They
    come in turn, or as `choose` decides for what was asked.
    """
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = Received(self.command, self.path, headers, body)
            made.received.append(received)
            with suppress(ValueError):
                made.asked.append(json.loads(body))
            answer = made.answers.pop(0) if choose is None else choose(received)
            if isinstance(answer, Raw):
                self._raw(answer)
                return
            if isinstance(answer, list):
                self._stream(answer)
                return
            status, body = (answer, {"error": {"message": "no"}}) if isinstance(answer, int) else (200, answer)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_DELETE = do_PATCH = do_POST

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length", "0")))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _raw(self, answer: Raw) -> None:
            self.send_response(answer.status)
            is_sized = "content-length" in {name.lower() for name in answer.headers}
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if not is_sized:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for part in answer.parts:
                    if isinstance(part, threading.Event):
                        part.wait(20)
                    elif part is BREAKS:
                        self.close_connection = True
                        return
                    else:
                        self.wfile.write(part if is_sized else f"{len(part):x}\r\n".encode() + part + b"\r\n")
                if not is_sized:
                    self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True
                made.gone.set()

        def _stream(self, events: list[Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in events:
                if event is BREAKS:
                    self.close_connection = True
                    return
                data = _sse(event)
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    yield made
    for client in made.clients:
        client.close()
    server.shutdown()
    server.server_close()
    thread.join()


def _sse(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {json.dumps(event)}\n\n".encode()


class Door:
    """One API: how it is asked through its client, and how its server answers."""

    name = ""

    def client(self, server: Server, *, is_async: bool) -> Any:
        raise NotImplementedError

    def place(self, client: Any) -> Any:
        raise NotImplementedError

    def given(self, messages: list[Any]) -> dict[str, Any]:
        return {"model": "small", "messages": messages}

    def says(self, text: str, calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()) -> Any:
        raise NotImplementedError

    def streams(self, *texts: str) -> list[Any]:
        """The events of an answer in parts; `BREAKS` put in place of its end is a lost connection."""
        raise NotImplementedError

    def streams_call(self, call_id: str, name: str, args: dict[str, Any]) -> list[Any]:
        """The events of an answer that is one call, its arguments in two parts."""
        raise NotImplementedError

    def text(self, answer: Any) -> str:
        raise NotImplementedError

    def echo(self, answer: Any) -> list[Any]:
        """The answer as the caller's list goes on with it."""
        raise NotImplementedError

    def result(self, call_id: str, content: str) -> dict[str, Any]:
        raise NotImplementedError

    def system(self, asked: dict[str, Any]) -> str:
        """What stood before the model as its system prompt."""
        raise NotImplementedError

    def told(self, asked: dict[str, Any]) -> str:
        """The packets in a request, wherever they stand."""
        parts = (text.partition(PAGE_SIGN) for text in _strings(asked))
        return "\n".join(f"{sign}{rest.partition(DIVIDER)[0]}" for _, sign, rest in parts if sign)

    def ask(self, client: Any, messages: list[Any], **more: Any) -> Any:
        """The answer, of a sync or an async client."""
        answer = self.place(client).create(**self.given(messages), **more)
        return asyncio.run(_awaited(client, answer)) if asyncio.iscoroutine(answer) else answer


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


async def _awaited(client: Any, answer: Any) -> Any:
    try:
        return await answer
    finally:
        await client.close()


class Chat(Door):
    name = "chat"

    def client(self, server: Server, *, is_async: bool) -> Any:
        import openai

        cls = openai.AsyncOpenAI if is_async else openai.OpenAI
        return server.made(cls(api_key="k", base_url=f"{server.url}/v1", max_retries=0), is_async=is_async)

    def place(self, client: Any) -> Any:
        return client.chat.completions

    def says(self, text: str, calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()) -> Any:
        made = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
            for id_, name, args in calls
        ]
        message = {"role": "assistant", "content": text or None} | ({"tool_calls": made} if made else {})
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}
        return {"id": "c1", "object": "chat.completion", "created": 1, "model": "small", "choices": [choice]}

    def streams(self, *texts: str) -> list[Any]:
        whole = [self._chunk({"content": text}) for text in texts]
        return [*whole, self._chunk({}, "stop"), "[DONE]"]

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}

    def streams_call(self, call_id: str, name: str, args: dict[str, Any]) -> list[Any]:
        text = json.dumps(args)
        function: list[dict[str, Any]] = [{"name": name, "arguments": text[:3]}, {"arguments": text[3:]}]
        first, second = (
            {"tool_calls": [{"index": 0, "id": id_, "type": "function", "function": part}]}
            for id_, part in zip((call_id, None), function, strict=True)
        )
        return [self._chunk(first), self._chunk(second), self._chunk({}, "tool_calls"), "[DONE]"]

    def text(self, answer: Any) -> str:
        return str(answer.choices[0].message.content)

    def echo(self, answer: Any) -> list[Any]:
        return [answer.choices[0].message]

    def result(self, call_id: str, content: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": call_id, "content": content}

    def system(self, asked: dict[str, Any]) -> str:
        return "".join(each["content"] for each in asked["messages"] if each["role"] == "system")


class Responses(Door):
    name = "responses"

    def client(self, server: Server, *, is_async: bool) -> Any:
        return Chat().client(server, is_async=is_async)

    def place(self, client: Any) -> Any:
        return client.responses

    def given(self, messages: list[Any]) -> dict[str, Any]:
        return {"model": "small", "input": messages}

    def says(self, text: str, calls: tuple[tuple[str, str, dict[str, Any]], ...] = (), id: str = "r1") -> Any:
        output: list[dict[str, Any]] = [self._item(text)] if text else []
        for at, (id_, name, args) in enumerate(calls):
            call = {"type": "function_call", "id": f"f{at}", "call_id": id_, "name": name, "status": "completed"}
            output.append(call | {"arguments": json.dumps(args)})
        return {
            "id": id, "object": "response", "created_at": 1, "model": "small", "status": "completed", "output": output,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        }  # fmt: skip

    def _item(self, text: str, status: str = "completed") -> dict[str, Any]:
        parts = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        return {"type": "message", "id": "m1", "role": "assistant", "status": status, "content": parts}

    def streams(self, *texts: str) -> list[Any]:
        where = {"item_id": "m1", "output_index": 0, "content_index": 0}
        text = "".join(texts)
        part = {"type": "output_text", "text": "", "annotations": []}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": self.says("") | {"status": "in_progress"}},
            {"type": "response.output_item.added", "output_index": 0, "item": self._item("", "in_progress")},
            {"type": "response.content_part.added", **where, "part": part},
            *({"type": "response.output_text.delta", **where, "delta": each, "logprobs": []} for each in texts),
            {"type": "response.output_text.done", **where, "text": text, "logprobs": []},
            {"type": "response.output_item.done", "output_index": 0, "item": self._item(text)},
            {"type": "response.completed", "response": self.says(text)},
        ]
        return [event | {"sequence_number": at} for at, event in enumerate(events)]

    def streams_call(self, call_id: str, name: str, args: dict[str, Any]) -> list[Any]:
        text = json.dumps(args)
        whole = self.says("", ((call_id, name, args),))
        item = whole["output"][0]
        where = {"item_id": item["id"], "output_index": 0}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": self.says("") | {"status": "in_progress"}},
            {"type": "response.output_item.added", "output_index": 0, "item": item | {"arguments": ""}},
            {"type": "response.function_call_arguments.delta", **where, "delta": text[:3]},
            {"type": "response.function_call_arguments.delta", **where, "delta": text[3:]},
            {"type": "response.function_call_arguments.done", **where, "arguments": text, "name": name},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        return [event | {"sequence_number": at} for at, event in enumerate(events)]

    def text(self, answer: Any) -> str:
        return str(answer.output_text)

    def echo(self, answer: Any) -> list[Any]:
        return list(answer.output)

    def result(self, call_id: str, content: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call_id, "output": content}

    def system(self, asked: dict[str, Any]) -> str:
        return str(asked.get("instructions") or "")


class Messages(Door):
    name = "messages"

    def client(self, server: Server, *, is_async: bool) -> Any:
        import anthropic

        cls = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        return server.made(cls(api_key="k", base_url=server.url, max_retries=0), is_async=is_async)

    def place(self, client: Any) -> Any:
        return client.messages

    def given(self, messages: list[Any]) -> dict[str, Any]:
        return super().given(messages) | {"max_tokens": 100}

    def says(self, text: str, calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()) -> Any:
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": id_, "name": name, "input": args} for id_, name, args in calls]
        return {
            "id": "m1", "type": "message", "role": "assistant", "model": "small", "content": content,
            "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip

    def streams(self, *texts: str) -> list[Any]:
        started = self.says("") | {"stop_reason": None}
        return [
            {"type": "message_start", "message": started},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
                for text in texts
            ),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]

    def streams_call(self, call_id: str, name: str, args: dict[str, Any]) -> list[Any]:
        text = json.dumps(args)
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        return [
            {"type": "message_start", "message": self.says("") | {"stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": part}}
                for part in (text[:3], text[3:])
            ),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]

    def text(self, answer: Any) -> str:
        return str(answer.content[0].text)

    def echo(self, answer: Any) -> list[Any]:
        return [{"role": "assistant", "content": answer.content}]

    def result(self, call_id: str, content: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": content}]}

    def system(self, asked: dict[str, Any]) -> str:
        own = asked.get("system") or ""
        return own if isinstance(own, str) else "".join(block["text"] for block in own)


DOORS = (Chat(), Responses(), Messages())


def broken(events: list[Any], after: str) -> list[Any]:
    """A stream that is lost behind the event in which this text came."""
    at = next(at for at, event in enumerate(events) if after in json.dumps(event))
    return [*events[: at + 1], BREAKS]
