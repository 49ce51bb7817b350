"""Build the wheel and the source distribution into dist/, with the inspector in both, and look inside them.

    python tools/make_wheel.py [--out DIST]          in an environment that has tools/build-requirements.txt

The same commit gives the same bytes: files carry the time of the commit (SOURCE_DATE_EPOCH, where it is set), and the
tools have fixed versions. The wheel is built from the source distribution, so that whoever builds one from that gets
the same. It never builds the inspector: where that is missing it says so and builds nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

__all__ = ["DIST", "ROOT", "build", "faults_in_names", "faults_of_metadata", "version_here"]

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
INSPECTOR = "muniment/surfaces/inspector/dist"
LICENSES = ("LICENSE", "NOTICE", "THIRD_PARTY_LICENSES")
_STRAY = re.compile(r"(^|/)(node_modules|__pycache__|\.git|\.venv[^/]*|tests|benchmarks)(/|$)|\.(pyc|db|env|key|pem)$")
NOT_BUILT = "the inspector is not built: `make inspector` builds it, with Node.js 20 or newer; no wheel goes without it"


def version_here() -> str:
    """The version, from the one place where it stands."""
    text = (ROOT / "src" / "muniment" / "__init__.py").read_text("utf-8")
    (found,) = re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return str(found)


# -- looking inside -----------------------------------------------------------------------------------


def faults_in_names(names: Iterable[str], page: str) -> list[str]:
    """What is wrong with the files of a wheel or of a source distribution; `page` is the inspector's page in it."""
    have = {name.partition("src/")[2] or name for name in names}
    stray = sorted(name for name in names if _STRAY.search(name))
    assets = re.findall(r'(?:src|href)="\./([^"]+)"', page)
    needed = [f"{INSPECTOR}/index.html", *(f"{INSPECTOR}/{each}" for each in assets), "muniment/py.typed"]
    missing = [name for name in needed if name not in have]
    licenses = [name for name in LICENSES if not any(each.rpartition("/")[2] == name for each in have)]
    unnamed = [] if assets else ["the page names no script"]
    return [
        *(f"it should not hold {name}" for name in stray[:5]),
        *(f"it lacks {name}" for name in [*missing, *licenses]),
        *unnamed,
    ]


def faults_of_metadata(text: bytes) -> list[str]:
    """What an index would refuse of the metadata: fields, versions, classifiers, a description without a type."""
    from packaging.metadata import InvalidMetadata, Metadata
    from trove_classifiers import classifiers

    try:
        read = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        return [str(each) for each in group.exceptions]
    except InvalidMetadata as error:
        return [str(error)]
    wrong = [f"no such classifier: {each}" for each in read.classifiers or () if each not in classifiers]
    if read.description_content_type != "text/markdown" or not (read.description or "").startswith("# "):
        wrong.append("the description is the README, in Markdown")
    if str(read.version) != version_here():
        wrong.append(f"the version is {read.version}, and {version_here()} in the package")
    if not str(read.license_expression or ""):
        wrong.append("no licence is named")
    return wrong


def _faults_of_wheel(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        page = next((wheel.read(name).decode() for name in names if name.endswith(f"{INSPECTOR}/index.html")), "")
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        (points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        found = [*faults_in_names(names, page), *faults_of_metadata(wheel.read(metadata))]
        if "muniment = muniment.__main__:main" not in wheel.read(points).decode():
            found.append("it lacks the command `muniment`")
    return found


def _faults_of_sdist(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        names = archive.getnames()
        page = next((name for name in names if name.endswith(f"{INSPECTOR}/index.html")), None)
        held = archive.extractfile(page) if page else None
        return faults_in_names(names, held.read().decode() if held else "")


# -- building -----------------------------------------------------------------------------------------


def _commit_time() -> str:
    """When the commit was made; for sources outside of a repository, the time that hatchling takes by itself."""
    told = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip() if told.returncode == 0 and told.stdout.strip() else "1580601600"


def build(out: Path) -> list[Path]:
    """The source distribution and the wheel that is made of it."""
    import hatchling.build

    if not (ROOT / "src" / INSPECTOR / "index.html").is_file():
        sys.exit(NOT_BUILT)
    os.environ.setdefault("SOURCE_DATE_EPOCH", _commit_time())
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("muniment-*"):
        old.unlink()
    os.chdir(ROOT)
    sdist = out / hatchling.build.build_sdist(str(out))
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        os.chdir(next(Path(folder).iterdir()))
        wheel = out / hatchling.build.build_wheel(str(out))
        os.chdir(ROOT)
    wrong = [*(f"{wheel.name}: {each}" for each in _faults_of_wheel(wheel))]
    wrong += [f"{sdist.name}: {each}" for each in _faults_of_sdist(sdist)]
    if wrong:
        sys.exit("\n".join(wrong))
    return [wheel, sdist]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=DIST)
    made = build(parser.parse_args().out)
    lines = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in made]
    (made[0].parent / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    for line, path in zip(lines, made, strict=True):
        print(f"{line}  ({path.stat().st_size:,} bytes)")


if __name__ == "__main__":
    main()
