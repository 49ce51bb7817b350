"""The Vercel AI SDK in Node, through the proxy: three APIs, turns, streams and tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

import pytest
from client_tools import CLIENTS

import muniment
from model_server import DOORS, Door, serving
from proxy_room import proxying, stored

FOLDER = CLIENTS / "vercel"


def test_the_vercel_ai_sdk_through_the_proxy() -> None:
    node = shutil.which("node")
    if node is None or not (FOLDER / "node_modules" / "ai").exists():
        pytest.skip("CLIENT TESTS SKIPPED: the Vercel AI SDK is not there (npm install in clients/vercel)")
    with muniment.open(":memory:") as mem, serving() as upstream, proxying(mem, upstream.url) as proxy:
        mem.run(user_id="ana", session_id="before").observe("user", "I moved to Berlin in May.")
        for door in DOORS:
            call = door.says("", (("call_1", "weather", {"city": "Berlin"}),))
            upstream.answers += [
                door.says("In Berlin."), door.streams("Quite ", "sure."), call, door.says("12 degrees."),
            ]  # fmt: skip
        for answer in upstream.answers:
            if isinstance(answer, dict) and answer.get("object") in ("chat.completion", "response"):
                answer["usage"] = _usage(answer["object"])
        done = subprocess.run(
            [node, "walk.mjs"], cwd=FOLDER, capture_output=True, text=True, check=False, timeout=120,
            env=os.environ | {"PROXY_URL": proxy.url},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        said = json.loads(done.stdout.splitlines()[-1])
        for door in DOORS:
            _check(door, said[door.name], mem)
        told = [each.body.decode() for each in upstream.received]
        assert all("I moved to Berlin in May." in each for each in told[::4]), "where the question is about it"


def _usage(kind: str) -> dict[str, Any]:
    if kind == "response":
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
    return {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _check(door: Door, said: dict[str, Any], mem: muniment.Memory) -> None:
    build = said.pop("build")
    assert said == {"text": "In Berlin.", "stream": "Quite sure.", "steps": 2, "tooled": "12 degrees."}
    assert mem.replay(build).id == build
    assert [text for _, text in stored(mem, session=door.name)] == [
        "Where do I live?", "In Berlin.", "Are you sure?", "Quite sure.", "How warm is it?", "12 degrees in Berlin",
        "12 degrees.",
    ]  # fmt: skip
