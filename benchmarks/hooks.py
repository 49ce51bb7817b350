"""What a hook of a coding agent costs: processor seconds of its whole process, by the moment it is for.

    python -m benchmarks.hooks                 the median of seven runs of each
    python -m benchmarks.hooks --rounds 3      fewer, for a look

Each round runs every kind once, in turn: `python` is the interpreter that does nothing; `at_once` records a tool's
result the way hooks did before, opening the store for it; the others are events through the command that a host runs.
`ratio` is `at_once` ÷ the kind's own, so that more is better.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import report

AT_ONCE = """
import json, sys
from muniment.surfaces.hosts.hooks import handle
from muniment.surfaces.settings import load_settings, open_store
with open_store(load_settings({"db": sys.argv[1], "user": "ana"})) as mem:
    handle(mem, json.load(sys.stdin), user_id="ana")
"""


def seconds(command: list[str], event: dict[str, Any], env: dict[str, str]) -> float:
    """The processor time of a child, its own and the system's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=json.dumps(event), text=True, env=env, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(folder: Path, rounds: int) -> dict[str, dict[str, Any]]:
    env = {**os.environ, "MUNIMENT_HOME": str(folder)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # whoever installs a package has its bytecode
    db = str(folder / "agents.db")
    hook = [sys.executable, "-P", "-m", "muniment.integrations.hooks", "--db", db, "--user", "ana", "--seconds", "300"]
    common = {"session_id": "s1", "cwd": str(folder)}
    result = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "a.py"}}
    kinds: dict[str, tuple[list[str], dict[str, Any]]] = {
        "python": ([sys.executable, "-c", "pass"], {}),
        "at_once": ([sys.executable, "-c", AT_ONCE, db], {"hook_event_name": "PostToolUse", **result}),
        "tool": (hook, {"hook_event_name": "PostToolUse", **result}),
        "start": (hook, {"hook_event_name": "SessionStart", "source": "startup"}),
        "prompt": (hook, {"hook_event_name": "UserPromptSubmit", "prompt": "Where do our retries live?"}),
        "answer": (hook, {"hook_event_name": "Stop", "last_assistant_message": "They live in transport.py."}),
    }
    spent: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(rounds + 1):  # the first makes the store and the caches of bytecode
        for name, (command, event) in kinds.items():
            told = {**common, "session_id": f"s{number}", "tool_use_id": f"{name}{number}", **event}
            took = seconds(command, told, env)
            if number:
                spent[name].append(took)
    before = statistics.median(spent["at_once"])
    return {
        name: {"cpu_s": round(statistics.median(each), 3), "ratio": round(before / statistics.median(each), 1)}
        for name, each in spent.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), given.rounds)
    report("hooks", rows, {"rounds": given.rounds})


if __name__ == "__main__":
    main()
