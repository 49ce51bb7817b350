"""The documentation as a site: `make docs`, or `python tools/docs_site.py [FOLDER]` (by default `site`).

A site of this version stands in FOLDER/VERSION, beside those of other versions that are there; FOLDER/index.html leads
to the newest. MkDocs loads this file as a hook too: pages link to files of the repository (a schema, a service file,
the changelog), and here these links are turned into links to copies within the site.
"""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
COPIES = "repository"
"""Where the copies of files that lie outside of docs/ stand in the site."""
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_ALSO = re.compile(r"^\*Also: (.+)\*$", re.MULTILINE)
_BOOSTS = {"questions": 4.0, "decisions": 0.1, COPIES: 0.1}
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


# -- the hook -----------------------------------------------------------------------------------------


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files that pages link to, taken along; pages among them are read for links in their turn."""
    from mkdocs.structure.files import File

    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    known = set(waiting)
    while waiting:
        source = waiting.pop()
        for target in _targets(source):
            if target in known or target.startswith("docs/"):
                continue
            known.add(target)
            files.append(File.generated(config, f"{COPIES}/{target}", content=(ROOT / target).read_bytes()))
            if target.endswith(".md"):
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Links to files of the repository as links within the site; links to folders as plain words."""
    here = page.file.src_uri
    _weigh(page, markdown)
    source = here.removeprefix(f"{COPIES}/") if here.startswith(f"{COPIES}/") else f"docs/{here}"

    def moved(found: re.Match[str]) -> str:
        opening, link, anchor, closing = found.groups()
        target = _target(source, link)
        if target is None:
            return found[0]
        if not (ROOT / target).is_file():
            return f"{opening}{posixpath.relpath('index.md', posixpath.dirname(here) or '.')}{closing}"
        there = target.removeprefix("docs/") if target.startswith("docs/") else f"{COPIES}/{target}"
        return f"{opening}{posixpath.relpath(there, posixpath.dirname(here) or '.')}{anchor or ''}{closing}"

    return "".join(part if _CODE.fullmatch(part) else _LINK.sub(moved, part) for part in _CODE.split(markdown))


def _weigh(page: Page, markdown: str) -> None:
    """Have the search list a question by the words of its last line too, and before pages on how muniment is made."""
    folder = page.file.src_uri.partition("/")[0]
    if found := _ALSO.search(markdown):
        page.meta["tags"] = [each.strip() for each in found[1].split(",")]
    if folder in _BOOSTS:
        page.meta["search"] = {"boost": _BOOSTS[folder]}


def _targets(source: str) -> Iterator[str]:
    """The files of the repository that a page of it links to."""
    for part in _CODE.split((ROOT / source).read_text("utf-8")):
        if not _CODE.fullmatch(part):
            for _, link, _, _ in _LINK.findall(part):
                target = _target(source, link)
                if target is not None and (ROOT / target).is_file():
                    yield target


def _target(source: str, link: str) -> str | None:
    """The place in the repository that a link of one of its pages leads to; None for one that leads elsewhere."""
    if "://" in link or link.startswith(("/", "mailto:")):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return target if (ROOT / target).exists() else None


# -- the command --------------------------------------------------------------------------------------


def main(folder: Path) -> int:
    """Build the site of this version, and say which versions there are."""
    version = ".".join(_version().split(".")[:2])
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "--site-dir", str(folder / version)],
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        return done.returncode
    versions = sorted(
        (each.parent.name for each in folder.glob("*/index.html")),
        key=lambda name: [int(part) if part.isdigit() else -1 for part in name.split(".")],
        reverse=True,
    )
    newest = versions[0]
    listed = [{"version": name, "title": name, "aliases": ["latest"] * (name == newest)} for name in versions]
    (folder / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", "utf-8")
    (folder / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>muniment</title>'
        f'<meta http-equiv="refresh" content="0; url={newest}/index.html">'
        f'<a href="{newest}/index.html">muniment {newest}</a>\n',
        "utf-8",
    )
    print(f"{folder / version / 'index.html'}")
    return 0


def _version() -> str:
    found = re.search(r'^__version__ = "([^"]+)"', (ROOT / "src/muniment/__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("src/muniment/__init__.py names no version")
    return found[1]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()))
