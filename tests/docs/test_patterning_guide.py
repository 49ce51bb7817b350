"""The commands of the guide on patterning, one after the other, as somebody would type them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from muniment.surfaces.cli.tree import TREE

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "patterning.md"
TRAINING = """
def evaluate(weights, seed):
    return {"sums": 0.4 + 0.3 * weights["sums"], "style": 0.6 + 0.2 * weights["prose"]}

canary = evaluate
"""


@pytest.mark.slow
def test_the_commands_run_as_they_stand(tmp_path: Path, muniment_line: str) -> None:
    (block,) = re.findall(
        r"(?:^    .*\n)+", GUIDE.read_text("utf-8").partition("## On the command line")[2], re.MULTILINE
    )
    asked = {
        "base_dataset": "distill_v3",
        "probes": [{"probe_id": name} for name in ("sums", "prose", "code")],
        "observables": [{"obs_id": "sums", "kind": "pass_rate", "target_delta": 0.02}, {"obs_id": "style"}],
        "base_weights": {"sums": 1, "prose": 1, "code": 1},
    }
    (tmp_path / "asked.json").write_text(json.dumps(asked), "utf-8")
    (tmp_path / "training.py").write_text(TRAINING, "utf-8")
    muniment_ = f'muniment() {{ {muniment_line} "$@"; }}\nset -eu\n'
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    done = subprocess.run(
        ["bash", "-c", muniment_ + block], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for piece in ("planned", "canary: held", "rollback: slower for everybody"):
        assert piece in done.stdout


def test_every_command_is_in_the_guide() -> None:
    text = GUIDE.read_text("utf-8")
    for name in TREE["learn"].entries["patterning"].entries:
        assert f"muniment learn patterning {name} " in text, name
