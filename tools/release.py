"""Make a release: one version everywhere, a dated section of the changelog, a wheel with its bill and hashes, a tag.

    python tools/release.py 0.2.0              say what would be done; nothing is changed
    python tools/release.py 0.2.0 --write      do it: write, commit, build, tag

It never pushes and never uploads. Pushing the tag starts .github/workflows/release.yml, which builds the same bytes
again, attests where they come from, and publishes them.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path

__all__ = ["PLACES", "ROOT", "Refused", "changed", "dated", "notes_of", "refusals", "versions"]

ROOT = Path(__file__).parent.parent
CHANGELOG = "CHANGELOG.md"
PLACES: Mapping[str, str] = {
    "src/muniment/__init__.py": r'^__version__ = "([^"]+)"$',
    "src/muniment/surfaces/hosts/marketplace/muniment/.claude-plugin/plugin.json": r'^  "version": "([^"]+)",$',
    "clients/typescript/package.json": r'^  "version": "([^"]+)",$',
    "clients/typescript/examples/vercel-ai/package.json": r'^    "@muniment/client": "\^([^"]+)",$',
    "CITATION.cff": r"^version: (\S+)$",
    "docs/reference/openapi.json": r'^  "version": "([^"]+)",$',
    "docs/reference/openapi-core.json": r'^  "version": "([^"]+)",$',
}
"""Where the version stands. The first is the one that counts; pyproject.toml reads it from there."""
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_SECTION = re.compile(r"^## (Unreleased|\d+\.\d+\.\d+)(?: – (\d{4}-\d\d-\d\d))?$", re.MULTILINE)


class Refused(Exception):
    """Why no release can be made."""


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version at each of its places; a place that does not say one exactly once is refused."""
    found = {}
    for place, pattern in PLACES.items():
        told = re.findall(pattern, (root / place).read_text("utf-8"), re.MULTILINE)
        if len(told) != 1:
            raise Refused(f"{place} should say the version once, and does so {len(told)} times")
        found[place] = told[0]
    return found


def notes_of(changelog: str, name: str) -> str:
    """What a section of the changelog says; nothing where there is no such section."""
    parts = _SECTION.split(changelog)
    for section, body in zip(parts[1::3], parts[3::3], strict=True):
        if section == name:
            return str(body).strip()
    return ""


def dated(changelog: str, version: str, day: date) -> str:
    """The changelog with what was unreleased under the version and its day, and room for what comes."""
    return changelog.replace("## Unreleased\n", f"## Unreleased\n\n## {version} – {day.isoformat()}\n", 1)


def refusals(version: str, root: Path = ROOT) -> list[str]:
    """Why this version cannot be released as things stand."""
    changelog = (root / CHANGELOG).read_text("utf-8")
    now = versions(root)
    current = next(iter(now.values()))
    wrong = [f"{place} says {told}, not {current}" for place, told in now.items() if told != current]
    if not _VERSION.fullmatch(version):
        return [*wrong, f"{version} is no version such as 0.2.0"]
    if _numbers(version) <= _numbers(current):
        wrong.append(f"{version} is not after {current}")
    if not notes_of(changelog, "Unreleased"):
        wrong.append(f"{CHANGELOG} has nothing under Unreleased")
    if notes_of(changelog, version):
        wrong.append(f"{CHANGELOG} has a section {version} already")
    return wrong


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def changed(version: str, day: date, root: Path = ROOT) -> dict[str, tuple[str, str]]:
    """Every file that the release changes: as it is, and as it will be."""
    files = {}
    for place, pattern in PLACES.items():
        text = (root / place).read_text("utf-8")
        found = re.search(pattern, text, re.MULTILINE)
        assert found is not None
        files[place] = (text, text[: found.start(1)] + version + text[found.end(1) :])
    text = (root / CHANGELOG).read_text("utf-8")
    files[CHANGELOG] = (text, dated(text, version, day))
    return files


def _warnings() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    told = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    unlinked = [] if "urls" in project else ["pyproject.toml has no [project.urls]: the package leads nowhere"]
    return [*unlinked, *(["there are changes that are not committed"] if told.stdout.strip() else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version")
    parser.add_argument("--date", type=date.fromisoformat, default=date.today())
    parser.add_argument("--write", action="store_true", help="do it")
    told = parser.parse_args()
    try:
        wrong = refusals(told.version)
    except Refused as error:
        wrong = [str(error)]
    warnings = _warnings()
    if told.write and any("not committed" in each for each in warnings):
        wrong.append("there are changes that are not committed")
    if wrong:
        sys.exit("\n".join(wrong))
    for warning in warnings:
        print(f"warning: {warning}")
    files = changed(told.version, told.date)
    for place, (before, after) in files.items():
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), place, place, n=0, lineterm=""):
            print(line)
    commands = [  # built from the commit, whose time the files carry: whoever builds the tag gets the same bytes
        ["git", "commit", "--quiet", "--message", f"Version {told.version}", *files],
        ["make", "wheel", "sbom"],
        ["git", "tag", "--annotate", f"v{told.version}", "--message", f"Version {told.version}"],
    ]
    if told.write:
        for place, (_, after) in files.items():
            (ROOT / place).write_text(after, "utf-8")
    for command in commands:
        print(("$ " if told.write else "would run: ") + " ".join(command))
        if told.write:
            subprocess.run(command, cwd=ROOT, check=True)
    print(f"then: git push origin v{told.version}, which publishes it")


if __name__ == "__main__":
    main()
