"""What is shipped: one version, licences of everything in the wheel, a release that refuses what is not ready.

`make wheel` builds the wheel and looks inside it, `make wheel-check` installs it in clean environments; here is what
can be held without building one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from datetime import date
from pathlib import Path

import pytest
import yaml

import muniment

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import make_licenses
import make_sbom
import make_wheel
import release
import try_wheel

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
PAGE = '<script type="module" src="./assets/a.js"></script><link rel="stylesheet" href="./assets/a.css">'
INSIDE = "muniment/surfaces/inspector/dist"
WHOLE = [
    f"{INSIDE}/index.html",
    f"{INSIDE}/assets/a.js",
    f"{INSIDE}/assets/a.css",
    "muniment/py.typed",
    *(f"muniment-1.0.0.dist-info/licenses/{name}" for name in make_wheel.LICENSES),
]


# -- the version --------------------------------------------------------------------------------------


def test_the_version_stands_in_one_place_and_all_others_agree() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == next(iter(release.PLACES))
    assert set(release.versions().values()) == {muniment.__version__} == {make_wheel.version_here()}


def test_no_other_file_says_a_version_of_its_own() -> None:
    manifests = [
        path
        for name in ("package.json", "plugin.json")
        for path in [*(ROOT / "clients").rglob(name), *(ROOT / "inspector").glob(name), *(ROOT / "src").rglob(name)]
        if "node_modules" not in path.parts
    ]
    saying = {
        str(path.relative_to(ROOT)) for path in manifests if "version" in json.loads(path.read_text("utf-8"))
    }  # fmt: skip
    assert saying <= set(release.PLACES), saying - set(release.PLACES)


def test_the_changelog_has_sections_in_order_with_their_days() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## .+$", text, re.MULTILINE)
    sections = release._SECTION.findall(text)
    assert len(sections) == len(headings), "Unreleased, or a version and its day"
    names = [name for name, _ in sections]
    assert names[0] == "Unreleased"
    numbers = [release._numbers(name) for name in names[1:]]
    assert numbers == sorted(numbers, reverse=True)
    assert muniment.__version__ in names
    assert all(day for name, day in sections[1:] if name != "0.1.0")


# -- a release ----------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that a release changes, at version 0.1.0."""
    for place in [*release.PLACES, "CHANGELOG.md"]:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / place).read_text("utf-8").replace(muniment.__version__, "0.1.0", 1)
        (tmp_path / place).write_text(text, "utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n- New.\n\n## 0.1.0\n\n- Old.\n", "utf-8")
    return tmp_path


def test_a_release_sets_every_version_and_dates_the_changelog(tree: Path) -> None:
    assert release.refusals("0.2.0", tree) == []
    for place, (before, after) in release.changed("0.2.0", date(2026, 12, 1), tree).items():
        assert before != after, place
        (tree / place).write_text(after, "utf-8")
    assert set(release.versions(tree).values()) == {"0.2.0"}
    written = (tree / "CHANGELOG.md").read_text("utf-8")
    assert "## Unreleased\n\n## 0.2.0 – 2026-12-01\n\n- New." in written
    assert release.notes_of(written, "0.2.0") == "- New."
    assert release.refusals("0.3.0", tree) == ["CHANGELOG.md has nothing under Unreleased"]


@pytest.mark.parametrize("version", ["0.1.0", "0.0.9", "1", "v0.2.0", "0.2.0rc1", ""])
def test_a_version_that_is_none_or_not_newer_is_refused(tree: Path, version: str) -> None:
    assert release.refusals(version, tree)


def test_a_place_that_disagrees_is_named(tree: Path) -> None:
    place = "clients/typescript/package.json"
    (tree / place).write_text('{\n  "version": "0.0.1",\n}\n', "utf-8")
    assert release.refusals("0.2.0", tree) == [f"{place} says 0.0.1, not 0.1.0"]
    (tree / place).write_text("{}", "utf-8")
    with pytest.raises(release.Refused, match="typescript"):
        release.refusals("0.2.0", tree)


def test_a_release_is_a_dry_run_unless_told() -> None:
    before = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False)
    if before.returncode != 0:
        pytest.skip("not a git checkout: a release is made from one")
    told = subprocess.run(
        [sys.executable, "tools/release.py", "99.0.0"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "would run: git tag" in told.stdout
    assert "$ " not in told.stdout
    after = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert after.stdout == before.stdout


def test_the_workflow_publishes_tags_alone_with_attestations_and_no_token() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    build = [step.get("run", step.get("uses", "")) for step in jobs["build"]["steps"]]
    assert [any(each.startswith(run) for each in build) for run in ("make wheel ", "make wheel-check")] == [True] * 2
    assert any(each.startswith("actions/attest-build-provenance@") for each in build)
    assert any(each.startswith("actions/attest-sbom@") for each in build)
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text
    assert "password" not in text


# -- what is inside -----------------------------------------------------------------------------------


def test_a_wheel_without_its_inspector_or_licences_is_refused() -> None:
    assert make_wheel.faults_in_names(WHOLE, PAGE) == []
    for name in WHOLE:
        assert make_wheel.faults_in_names([each for each in WHOLE if each != name], PAGE), name
    assert make_wheel.faults_in_names(WHOLE, "") == ["the page names no script"]
    for stray in (
        "x/node_modules/a.js",
        "muniment/__pycache__/a.pyc",
        "tests/test_a.py",
        "muniment/agent.db",
        "a/.env",
    ):
        assert make_wheel.faults_in_names([*WHOLE, stray], PAGE) == [f"it should not hold {stray}"]
    sdist = [f"muniment-1.0.0/src/{name}" for name in WHOLE]
    assert make_wheel.faults_in_names(sdist, PAGE) == []


def test_the_source_distribution_takes_folders_of_this_tree_alone() -> None:
    """An unanchored `src` takes every folder of that name, also those of packages that are installed below."""
    build = PYPROJECT["tool"]["hatch"]["build"]
    assert all(each.startswith("/") for each in build["targets"]["sdist"]["include"])
    assert build["artifacts"] == ["/src/muniment/surfaces/inspector/dist/"]
    assert set(make_wheel.LICENSES) == set(PROJECT["license-files"])
    assert all(f"/{name}" in build["targets"]["sdist"]["include"] for name in make_wheel.LICENSES)


def test_licences_of_all_that_is_bundled_stand_in_the_wheel() -> None:
    text = make_licenses.PAGE.read_text("utf-8")
    depends = json.loads((ROOT / "inspector" / "package.json").read_text("utf-8"))["dependencies"]
    for name, version in depends.items():
        assert f"  {name} {version}  " in text, f"{name}: make inspector, then python tools/make_licenses.py"
    for part in make_licenses.derived():
        assert part.license in make_licenses.FREE
        assert part.text.strip() in text
        for place in part.place.split(", "):
            assert (ROOT / "src" / "muniment" / place).is_file()
    if make_licenses.BUNDLED.is_file():
        assert text == make_licenses.page([*make_licenses.bundled(), *make_licenses.derived()])


def test_data_of_others_is_in_the_list_of_licences() -> None:
    """Every data file whose note names another's licence is told of in NOTICE."""
    notice = (ROOT / "NOTICE").read_text("utf-8")
    for part in make_licenses.derived():
        assert all(f"src/muniment/{place}" in notice for place in part.place.split(", ")), part.name


def test_notice_has_a_row_for_every_data_file() -> None:
    package = ROOT / "src" / "muniment"
    shipped = [path for path in package.rglob("data/**/*") if path.is_file() and path.name != "README.md"]
    lines = (ROOT / "NOTICE").read_text("utf-8").splitlines()
    rows = [line.split(maxsplit=2) for line in lines if line.startswith("src/muniment/")]
    named = [row[0] for row in rows]
    assert len(named) == len(set(named)), "a file has two rows"
    missing = sorted({path.relative_to(ROOT).as_posix() for path in shipped} - set(named))
    assert not missing, f"write a row for each in NOTICE: what it is, how it was made, of what text: {missing}"
    gone = [name for name in named if not (ROOT / name).exists()]
    assert not gone, f"take these rows out of NOTICE: {gone}"
    assert {row[2] for row in rows} <= {"ships", "restricted", "not established"}
    assert max(map(len, lines)) <= 100


def test_the_bill_names_what_is_carried_and_what_is_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "muniment-9.9.9-py3-none-any.whl"
    needs = [f"Requires-Dist: {each}" for each in PROJECT["dependencies"]]
    needs.append("Requires-Dist: starlette>=1.0; extra == 'all'")
    with zipfile.ZipFile(wheel, "w") as made:
        lines = ["Metadata-Version: 2.4", "Name: muniment", "Version: 9.9.9", "License-Expression: Apache-2.0", *needs]
        made.writestr("muniment-9.9.9.dist-info/METADATA", "\n".join(lines) + "\n")
    carried = [make_licenses.Part("preact", "11.2.0", "MIT", "text", "the inspector"), *make_licenses.derived()]
    told = make_sbom.bill(wheel, carried)
    assert json.dumps(told) == json.dumps(make_sbom.bill(wheel, carried))
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert told["metadata"]["component"]["version"] == "9.9.9"
    found = {each["name"]: each for each in told["components"]}
    assert found["preact"]["purl"] == "pkg:npm/preact@11.2.0"
    assert found["pydantic"]["scope"] == "required"
    assert found["pydantic-core"]["scope"] == "required", "what is needed by what is needed"
    assert found["starlette"]["scope"] == "optional"
    assert all(each["version"] and each["licenses"] for each in told["components"]), "each says its licence"
    refs = {each["ref"] for each in told["dependencies"]} | {each["bom-ref"] for each in told["components"]}
    assert all(set(each["dependsOn"]) <= refs for each in told["dependencies"])
    assert "carried:preact" in next(each["dependsOn"] for each in told["dependencies"] if each["ref"] == "muniment")


def test_every_extra_of_our_own_has_a_job_in_a_clean_environment() -> None:
    from muniment.core.outside.system import EXTRAS

    assert set(try_wheel.JOBS) == {"core", "sandbox", *EXTRAS}


def test_the_package_says_that_it_is_typed_and_has_its_command() -> None:
    assert (ROOT / "src" / "muniment" / "py.typed").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert PROJECT["scripts"] == {"muniment": "muniment.__main__:main"}
    assert PROJECT["license"] == "Apache-2.0"
    assert not [each for each in PROJECT["classifiers"] if each.startswith("License ::")], "the expression says it"


def test_pythons_and_systems_that_are_claimed_were_tried() -> None:
    """docs/installing.md has a row for each; it says `not tried` of every other."""
    page = (ROOT / "docs" / "installing.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (Python [\d.]+|Linux|macOS|Windows)[^|]*\| (tried|not tried)", page, re.MULTILINE))
    claimed = {f"Python {each.rpartition(' ')[2]}" for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)}
    assert {name for name, said in rows.items() if name.startswith("Python") and said == "tried"} == claimed
    systems = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if each.startswith("Operating System")}
    assert {name for name, said in rows.items() if said == "tried" and not name.startswith("Python")} == systems
    assert rows["macOS"] == rows["Windows"] == "not tried"
