"""Do the tests notice? `make mutants`: the core modules changed one place at a time, each judged by its nearest tests.

mutmut makes the changes and runs the tests, in a copy of the tree. Of each module a fixed sample of its mutants is
tried, by the digest of their names, so that two runs try the same ones; modules that the limit of processor time leaves
no room for are named as not reached. What survives is listed with what was changed, and with the reason that
`mutants.toml` gives for it; a survivor without a reason is a test that is missing. The outcome goes to
`benchmarks/results/mutants.json`; it fails where less than nine in ten are noticed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).parent / "mutants.toml"
RESULT = ROOT / "benchmarks" / "results" / "mutants.json"
COPIED = ("src", "tests", "pyproject.toml")
SCORE_MIN = 0.9
NOTICED = ("killed", "timeout", "segfault")
"""A mutant that never ends, or takes the process with it, does not go unnoticed."""
_NODE_IDS = '''"""mutmut reads a private name of pytest's that newer ones have dropped."""

import pytest

pytest.Item._nodeid = property(lambda item: item.nodeid)
'''
_NAMES = """
import json, sys
from mutmut.mutation.file_mutation import mutate_file_contents
path = sys.argv[1]
print(json.dumps(list(mutate_file_contents(path, open(path, encoding="utf-8").read()).mutant_names)))
"""


class Change(NamedTuple):
    """What a mutant changed: the lines that went, and those that came."""

    function: str
    was: str
    now: str


def main() -> None:
    """Try the mutants of all modules, or of those named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="dotted names from the table; all of them if none is given")
    parser.add_argument("--each", type=int, default=60, help="mutants tried of each module (0: all)")
    parser.add_argument("--seed", default="muniment", help="another one tries others")
    parser.add_argument("--minutes", type=float, default=15.0, help="of processor time, after which no module is begun")
    parser.add_argument("--children", type=int, default=min(2, os.cpu_count() or 1), help="processes at once")
    parser.add_argument("--out", type=Path, default=RESULT, help="where the outcome is written")
    asked = parser.parse_args()
    table = tomllib.loads(TABLE.read_text("utf-8"))
    modules: dict[str, list[str]] = table["modules"]
    if unknown := sorted(set(asked.modules) - modules.keys()):
        parser.error(f"not in {TABLE.name}: {', '.join(unknown)}")
    reasons = {(each["module"], each["was"], each["now"]): each["why"] for each in table.get("explained", ())}
    rows: dict[str, dict[str, Any]] = {}
    survivors: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        place = copy_tree(Path(folder))
        for module in asked.modules or modules:
            if _processor_s() > asked.minutes * 60:
                rows[module] = {"reached": False}
                print(f"{module}: not reached within {asked.minutes:g} minutes")
                continue
            rows[module], changes = try_module(place, module, modules[module], asked)
            survivors += [
                {"module": module, **change._asdict(), "why": reasons.get((module, change.was, change.now), "")}
                for change in changes
            ]
            print(_line(module, rows[module]), flush=True)
    sys.exit(write(asked, rows, survivors))


def copy_tree(folder: Path) -> Path:
    """What mutmut works in, so that nothing here is ever changed, not even by a run that is killed."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "dist"))
        else:
            shutil.copy(ROOT / name, folder / name)
    (folder / "node_ids.py").write_text(_NODE_IDS)
    return folder


def try_module(
    place: Path, module: str, tests: list[str], asked: argparse.Namespace
) -> tuple[dict[str, Any], list[Change]]:
    """The counts of one module, and what of it survived."""
    begun = _processor_s()
    path = Path("src", *module.split(".")).with_suffix(".py")
    shutil.rmtree(place / "mutants", ignore_errors=True)
    (place / "setup.cfg").write_text(_configuration(path, tests))
    made = [f"{module}.{name}" for name in json.loads(_run(place, "-c", _NAMES, str(path)))]
    chosen = sample(made, asked.each, asked.seed)
    _run(place, "-m", "mutmut", "run", "--max-children", str(asked.children), *chosen)
    wanted = set(chosen)
    told = [
        line.strip().rpartition(": ") for line in _run(place, "-m", "mutmut", "results", "--all", "true").splitlines()
    ]
    fates = {name: fate for name, _, fate in told if name in wanted}
    lived = sorted(name for name in chosen if fates.get(name) not in NOTICED)
    row = {
        "reached": True,
        "tests": tests,
        "made": len(made),
        "tried": len(chosen),
        "noticed": len(chosen) - len(lived),
        "timed_out": sum(fate == "timeout" for fate in fates.values()),
        "untested": sum(fates.get(name) == "no tests" for name in lived),
        "score": round(1 - len(lived) / len(chosen), 3) if chosen else 1.0,
        "processor_s": round(_processor_s() - begun, 1),
    }
    return row, [read_change(name, _run(place, "-m", "mutmut", "show", name)) for name in lived]


def sample(names: list[str], count: int, seed: str) -> list[str]:
    """So many of them, the same for the same seed, whatever was added elsewhere."""
    ordered = sorted(names, key=lambda name: sha256(f"{seed} {name}".encode()).digest())
    return ordered[:count] if count else ordered


def read_change(name: str, shown: str) -> Change:
    """What `mutmut show` tells of a mutant."""
    lines = [line for line in shown.splitlines() if not line.startswith(("---", "+++"))]
    went = [" ".join(line[1:].split()) for line in lines if line.startswith("-")]
    came = [" ".join(line[1:].split()) for line in lines if line.startswith("+")]
    function = name.rpartition(".")[2].rpartition("__mutmut_")[0].removeprefix("x_").removeprefix("xǁ")
    return Change(function.replace("ǁ", "."), " / ".join(went), " / ".join(came))


def write(asked: argparse.Namespace, rows: dict[str, dict[str, Any]], survivors: list[dict[str, str]]) -> int:
    """The outcome as a file, and its last line; 1 where too little was noticed."""
    reached = [row for row in rows.values() if row["reached"]]
    tried, noticed = sum(row["tried"] for row in reached), sum(row["noticed"] for row in reached)
    score = round(noticed / tried, 3) if tried else 0.0
    open_ = [each for each in survivors if not each["why"]]
    document = {
        "benchmark": "mutants",
        "command": "make mutants",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()},
        "arguments": {
            "tool": f"mutmut {version('mutmut')}", "each": asked.each, "seed": asked.seed, "minutes": asked.minutes,
        },
        "results": {
            "total": {
                "tried": tried,
                "noticed": noticed,
                "score": score,
                "survived": len(survivors),
                "equivalent": sum(each["why"].startswith("equivalent") for each in survivors),
                "unexplained": len(open_),
                "asked": SCORE_MIN,
                "met": score >= SCORE_MIN,
                "processor_s": round(_processor_s(), 1),
            },
            "modules": rows,
            "survivors": survivors,
        },
    }  # fmt: skip
    asked.out.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    for each in open_:
        print(f"SURVIVED {each['module']}.{each['function']}\n  - {each['was']}\n  + {each['now']}")
    print(f"{noticed} of {tried} noticed: {score:.1%}; {len(survivors)} survived, {len(open_)} of them unexplained")
    return 0 if score >= SCORE_MIN else 1


def _configuration(path: Path, tests: list[str]) -> str:
    lines = {
        "source_paths": ["src/"],
        "also_copy": ["node_ids.py"],
        "only_mutate": [str(path)],
        "pytest_add_cli_args": ["-p", "node_ids", "-p", "no:cacheprovider", "-p", "no:xdist"],
        "pytest_add_cli_args_test_selection": tests,
    }
    told = [f"{name}=\n" + "".join(f"    {value}\n" for value in values) for name, values in lines.items()]
    return "[mutmut]\n" + "".join(told)


def _run(place: Path, *arguments: str) -> str:
    """A Python process in the copy; what it says is shown only where it fails."""
    env = {**os.environ, "PYTHONPATH": str(place), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=place, env=env, capture_output=True, text=True, timeout=1800, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)[:200]} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def _processor_s() -> float:
    """Of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _line(module: str, row: dict[str, Any]) -> str:
    return f"{module}: {row['noticed']} of {row['tried']} noticed ({row['score']:.1%}), {row['processor_s']:.0f} s"


if __name__ == "__main__":
    main()
