"""`muniment check` on a pack, as a CI job would call it; `check init`; and a grader that settings name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_room import Commands, in_folder

from muniment.errors import InvalidInput
from muniment.surfaces.settings import load_settings, open_store

CHECK = Commands("check")
PACK = """
name: shop
repeats: 2
cases:
  - id: order
    prompt: "Where is {{number}}?"
    data: rows.jsonl
    constraints: [{contains: "{{number}}"}, personal_data]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = in_folder(tmp_path, monkeypatch)
    (here / "packs").mkdir()
    (here / "packs" / "shop.yaml").write_text(PACK)
    (here / "packs" / "rows.jsonl").write_text('{"number": 12}\n{"number": 34}\n')
    (here / "pack_bot.py").write_text("def answer(test):\n    return test.prompt\n\ndef mute(test):\n    return '34'\n")
    lines = [{"id": "order[1]", "text": "12"}, {"id": "order[2]", "text": "34"}, {"id": "order[2]", "text": "none"}]
    (here / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return here


def test_a_pack_is_run_on_an_agent_and_held_against_the_run_before(folder: Path) -> None:
    good = CHECK.text("packs/shop.yaml", "--agent", "pack_bot:answer", "--save", "r.json", "--junit", "j.xml")
    assert good.splitlines()[0] == "order[1]: holds, 2 of 2 (0.34 to 1.00)"
    assert (folder / "j.xml").read_bytes().count(b"<testcase") == 2
    worse = CHECK.document("packs/shop.yaml", "--agent", "pack_bot:mute", "--baseline", "r.json", code=1)
    assert worse["since"] == {"worse": ["order[1]"], "better": [], "added": [], "gone": []}


def test_outputs_name_their_case(folder: Path) -> None:
    shown = CHECK.document("packs/shop.yaml", "said.jsonl", code=1)
    assert [(each["id"], each["passed"], each["answers"]) for each in shown["cases"]] == [
        ("order[1]", 1, 1),
        ("order[2]", 1, 2),
    ]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("packs/shop.yaml",), "$.outputs"),
        (("packs/shop.yaml", "said.jsonl", "--agent", "pack_bot:answer"), "$.outputs"),
        (("packs/shop.yaml", "odd.jsonl"), "$.outputs"),
        (("unknown.yaml", "said.jsonl"), "$.cases[0].constraints[0].wrods"),
        (("rubric.yaml", "one.jsonl"), "$.cases.order[1].constraints[0].rubric"),
        (("list.yaml", "said.jsonl"), "$.constraints[0].rubric"),
        (("plain.yaml", "said.jsonl", "--save", "r.json"), "$.save"),
    ],
)
def test_what_cannot_be_run_is_an_error_that_names_it(folder: Path, arguments: tuple[str, ...], path: str) -> None:
    (folder / "one.jsonl").write_text('{"id": "order[1]", "text": "x"}\n')
    (folder / "odd.jsonl").write_text('{"id": "other", "text": "x"}\n')
    (folder / "unknown.yaml").write_text("cases: [{id: 'order[1]', constraints: [{wrods: 3}]}]")
    (folder / "rubric.yaml").write_text("cases: [{id: 'order[1]', constraints: [{rubric: Nice}]}]")
    (folder / "list.yaml").write_text("- rubric: Nice")
    (folder / "plain.yaml").write_text("- not_empty")
    result = CHECK.call(*arguments, "--json")
    assert result.exit_code == 2, result.output
    error = json.loads(result.stderr.splitlines()[-1])
    assert error["path"] == path
    assert error["hint"]


def test_a_first_file_is_written_and_never_over_another(folder: Path) -> None:
    assert CHECK.text("init", "first.yaml").startswith("written: first.yaml")
    (folder / "answer.txt").write_text("Your parcel left today.")
    assert CHECK.text("first.yaml", "answer.txt") == "answer.txt: holds\n"
    assert CHECK.failure("init", "first.yaml", code=CHECK.call("init", "first.yaml").exit_code)["path"] == "$.file"


def test_settings_name_a_grader() -> None:
    given = {"db": ":memory:", "grader": "openai:http://localhost:1/v1#qwen", "grader_decides": "unknown"}
    with open_store(load_settings(given, {})) as mem:
        grading = mem._ctx.grader
    assert (grading.grader.name, grading.decides) == ("qwen", "unknown")
    for wrong in ({"grader": "qwen"}, {"grader_decides": "often"}):
        with pytest.raises(InvalidInput):
            open_store(load_settings({**given, **wrong}, {}))
