"""The reference is what the code says, says something of everything, and `llms.txt` leads to every page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from muniment import errors
from muniment.contracts.kinds import ALL_KINDS
from muniment.core.policy import Policy
from muniment.core.record import Record
from muniment.surfaces.cli.main import TREE
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.signatures import public_members
from muniment.surfaces.operations.table import HANDLES, SUBHANDLES, class_at
from products import for_each

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
LINKS = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", re.MULTILINE)
NAMES = {"memory": "mem", "rulebook": "book"}


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def test_the_pages_are_current() -> None:
    made = [sys.executable, str(ROOT / "tools" / "make_reference.py"), "--check"]
    done = subprocess.run(made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\npython tools/make_reference.py"


@for_each("place", [each for each in (*HANDLES, *SUBHANDLES) if each != "works"])
def test_every_method_is_there_and_says_what_it_does(place: str) -> None:
    parts = re.split(r"^### ", page("api.md"), flags=re.MULTILINE)
    said = {part.partition("\n")[0]: part for part in parts}
    handle, dot, rest = place.partition(".")
    for name in public_members(class_at(place)):
        part = said[f"{NAMES.get(handle, handle)}{dot}{rest}.{name}"]
        text = re.sub(r"```py\n.*?```", "", part.partition("\n")[2], flags=re.DOTALL)
        assert [
            line
            for line in text.splitlines()
            if line.strip() and not line.startswith(("HTTP:", "Not over", "Its methods"))
        ], name


def test_every_command_is_there_and_every_option_says_what_it_is_for() -> None:
    text = page("cli.md")
    assert re.findall(r"^### (.+)$", text, re.MULTILINE) == [name for name, each in TREE.items() if not each.hidden]
    for line in re.findall(r"^- `--.*$", text, re.MULTILINE):
        assert re.search(r"[`)]: \S", line), line


def sections(record: Record, path: str) -> list[str]:
    """The tables of a policy, by their names in `muniment.toml`."""
    inner = ((name, getattr(record, name)) for name in type(record).model_fields)
    found = [sections(each, f"{path}.{name}") for name, each in inner if isinstance(each, Record)]
    return [path, *(name for names in found for name in names)]


def test_every_setting_says_what_it_is_for() -> None:
    text = page("settings.md")
    assert re.findall(r"^### (.+)$", text, re.MULTILINE) == sections(Policy(), "policy")[1:]
    for line in re.findall(r"^- .*$", text, re.MULTILINE):
        assert re.search(r"[`)\]]: \S|^- With ", line), line


def test_every_address_is_there() -> None:
    parts = re.split(r"^## ", page("http.md"), flags=re.MULTILINE)
    by_handle = {part.partition("\n")[0]: part for part in parts}
    for each in OPERATIONS:
        assert f"| `{each.method} /{each.path}`" in by_handle[each.handle], each.id


def test_every_kind_and_every_error_is_there() -> None:
    kinds = re.findall(r"^\| \[`(\w+)`\]\(../../schemas/\1\.json\) \| \S", page("schemas.md"), re.MULTILINE)
    assert sorted(kinds) == sorted(ALL_KINDS)
    classes = re.findall(r"^- \*\*`\w+`\*\* \(`(\w+)`, HTTP \d{3}, exit \d\)\. \S", page("errors.md"), re.MULTILINE)
    assert sorted(classes) == sorted(set(errors.__all__) - {"Issue"})


def test_llms_txt_has_the_form_that_readers_of_it_expect() -> None:
    lines = (ROOT / "llms.txt").read_text("utf-8").splitlines()
    assert lines[0] == "# muniment"
    assert lines[1] == ""
    assert lines[2].startswith("> ")
    assert [line for line in lines if line.startswith("## ")] == [
        "## Docs",
        "## Questions",
        "## Guides",
        "## Reference",
        "## Optional",
    ]
    after = lines[lines.index("## Docs") :]
    assert all(LINKS.match(line) for line in after if line and not line.startswith("## "))


def test_llms_txt_leads_to_every_page_and_nowhere_else() -> None:
    named = [target for _, target, _ in LINKS.findall((ROOT / "llms.txt").read_text("utf-8"))]
    assert len(named) == len(set(named))
    for target in named:
        assert (ROOT / target).is_file(), target
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(named), f"llms.txt does not list {', '.join(sorted(pages - set(named)))}"
