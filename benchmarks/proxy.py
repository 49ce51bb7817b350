"""What the proxy costs, and what it leaves alone: added latency, bytes that pass unchanged, what a cache keeps.

    python -m benchmarks.proxy [--rounds 300] [--events 5000]        [--quick] small sizes, for a look

Latency: `muniment proxy` and an upstream that answers at once, each a process of its own on loopback. The same requests
go to the upstream directly and through the proxy, by turns, over one connection each; `added` is the difference of the
two medians, and of the two 99th percentiles. `passed` asks no model; `first` is a question in a new session over a
store of so many events; `turns` a chat that grows by a turn a time; `stream` the same as events, timed to the first
byte and to the last.

Unchanged: of the bytes that a caller sent, the share that the upstream received as they were, in one piece before and
one behind the packet; of the bytes that the upstream answered, the share that the caller received.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import muniment
from benchmarks.harness import report

CHAT_PATH = "/v1/chat/completions"
ANSWER = json.dumps({"id": "c1", "object": "chat.completion", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "In Berlin, as you said."}, "finish_reason": "stop"}]}
).encode()  # fmt: skip
CHUNKS = 20
WHAT = [
    "bread", "books", "bicycles", "tickets", "flowers", "shoes", "paint", "maps",
    "candles", "spoons", "kites", "stamps", "lamps", "coats", "tents", "drums",
]  # fmt: skip
WHERE = [
    "Lisbon", "Oslo", "Turin", "Ghent", "Cork", "Basel", "Split", "Tartu",
    "Graz", "Bergen", "Nantes", "Leiden", "Poznan", "Aarhus", "Malaga", "Bruges",
]  # fmt: skip
WHO = [
    "Ana", "Ben", "Carla", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines",
    "Jonas", "Kofi", "Lena", "Marta", "Nils", "Olga", "Pavel", "Quinn", "Rosa",
]  # fmt: skip
TURNS_MAX = 10


# -- the upstream, in a process of its own --------------------------------------------------------------


class Upstream:
    """Answers at once, and keeps what it was asked last."""

    def __init__(self) -> None:
        self._last = b""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        media, parts = b"application/json", [ANSWER]
        if scope["path"] == "/last":
            parts = [self._last]
        else:
            self._last = body
            if b'"stream": true' in body:
                media, parts = b"text/event-stream", _events()
        head = [(b"content-type", media), (b"x-ratelimit-remaining", b"7")]
        if len(parts) == 1:
            head.append((b"content-length", str(len(parts[0])).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": head})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _events() -> list[bytes]:
    told = [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}] * CHUNKS
    told = [*told, {"index": 0, "delta": {}, "finish_reason": "stop"}]
    return [b"data: " + json.dumps({"id": "c1", "choices": [each]}).encode() + b"\n\n" for each in told]


def _serve_upstream() -> None:
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(json.dumps({"url": f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}"}), flush=True)

    Server(uvicorn.Config(Upstream(), port=0, access_log=False, log_level="error", lifespan="off")).run()


@contextmanager
def _process(*command: str) -> Iterator[str]:
    """The address that a process says it listens on."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield str(json.loads(line)["url"])
    finally:
        process.terminate()
        process.wait()


# -- latency and bytes ----------------------------------------------------------------------------------


class Asking:
    """One connection."""

    def __init__(self, url: str) -> None:
        self._http = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)

    def ask(self, path: str, body: bytes, session: str) -> tuple[float, float, bytes]:
        """Milliseconds to the first byte of the answer and to its last; the answer."""
        start = time.perf_counter()
        headers = {"Content-Type": "application/json", "muniment-user": "ana", "muniment-session": session}
        self._http.request("POST" if body else "GET", path, body or None, headers)
        answer = self._http.getresponse()
        first = answer.read(1)
        began = time.perf_counter()
        rest = answer.read()
        ended = time.perf_counter()
        assert answer.status == 200, rest
        return (began - start) * 1000, (ended - start) * 1000, first + rest

    def close(self) -> None:
        self._http.close()


def _requests(kind: str, rounds: int) -> Iterator[tuple[str, bytes, str]]:
    """Path, body and session of each."""
    messages: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
    for number in range(rounds):
        if kind == "passed":
            yield "/v1/embeddings", json.dumps({"input": f"text {number}", "dimensions": 1.0}).encode(), "-"
            continue
        if kind == "first" or len(messages) > 2 * TURNS_MAX:
            messages = messages[:1]
        what, who = WHAT[number * 7 % len(WHAT)], WHO[number * 5 % len(WHO)]
        asked = {"role": "user", "content": f"Where was it that I went for {what} with {who}?"}
        messages = [*messages, asked]
        body = {"model": "small", "messages": messages} | ({"stream": True} if kind == "stream" else {})
        yield CHAT_PATH, json.dumps(body).encode(), f"{kind}{number if kind == 'first' else number // TURNS_MAX}"
        said = "word " * CHUNKS if kind == "stream" else "In Berlin, as you said."
        messages = [*messages, {"role": "assistant", "content": said}]


def _unchanged(sent: bytes, received: bytes) -> int:
    """How many bytes of what was sent stand at the beginning and at the end of what was received."""
    most = min(len(sent), len(received))
    before = next((at for at in range(most) if sent[at] != received[at]), most)
    left = len(sent) - before
    behind = next((at for at in range(min(left, most)) if sent[-1 - at] != received[-1 - at]), min(left, most))
    return before + behind


def measured(direct: str, proxy: str, kind: str, rounds: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {"direct": [], "proxy": [], "direct_first": [], "proxy_first": []}
    sent = kept = answered = same = 0
    with closing(Asking(direct)) as near, closing(Asking(proxy)) as far:
        for number, (path, body, session) in enumerate(_requests(kind, rounds)):
            told = {}
            for side in ("direct", "proxy") if number % 2 else ("proxy", "direct"):
                first, last, told[side] = (near if side == "direct" else far).ask(path, body, session)
                times[side].append(last)
                times[f"{side}_first"].append(first)
                if side == "proxy":
                    kept += _unchanged(body, near.ask("/last", b"", "-")[2])
                    sent += len(body)
            answered += len(told["direct"])
            same += _unchanged(told["direct"], told["proxy"])
    row: dict[str, Any] = {"rounds": rounds}
    for name in ("", "_first") if kind == "stream" else ("",):
        for quantile in (50, 99):
            values = [statistics.quantiles(times[f"{side}{name}"], n=100)[quantile - 1] for side in ("direct", "proxy")]
            row[f"direct{name}_p{quantile}_ms"], row[f"proxy{name}_p{quantile}_ms"] = (round(x, 2) for x in values)
            row[f"added{name}_p{quantile}_ms"] = round(values[1] - values[0], 2)
    return row | {"request_bytes_unchanged": kept / sent, "answer_bytes_unchanged": same / answered}


def _memory(number: int) -> str:
    """Something that was said; no two alike in all they name."""
    what, where, who = (each[number * step % len(each)] for each, step in ((WHAT, 3), (WHERE, 5), (WHO, 7)))
    return f"On trip {number} I went to {where} with {who} and came home with {number % 9 + 2} {what}."


def latency(rounds: int, events: int) -> dict[str, dict[str, Any]]:
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "agent.db"
        with muniment.open(store) as mem:
            drafts = [{"role": "user", "content": _memory(number)} for number in range(events)]
            mem.run(user_id="ana", session_id="before").observe_many(drafts)
        with _process("-m", "benchmarks.proxy", "--upstream") as upstream:
            command = ("-m", "muniment", "proxy", "--upstream", upstream, "--db", str(store), "--port", "0", "--json")
            with _process(*command) as proxy:
                for kind in ("passed", "first", "turns", "stream"):
                    measured(upstream, proxy, kind, 5)  # warm
                    rows[kind] = measured(upstream, proxy, kind, rounds)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.upstream:
        _serve_upstream()
    else:
        rounds, events = (30, 500) if options.quick else (options.rounds, options.events)
        report("proxy", latency(rounds, events), {"rounds": rounds, "events": events})


if __name__ == "__main__":
    main()
