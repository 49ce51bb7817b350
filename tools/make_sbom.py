"""Write the bill of materials of a wheel, as CycloneDX 1.6: what it carries, and what is installed with it.

    python tools/make_sbom.py WHEEL [--out FILE]            in an environment where `muniment[all,otel]` is installed

What is carried comes from tools/make_licenses.py. What is installed with it comes from the metadata of the packages
that are here, which are those that the tests ran with; what an extra brings is `optional`. The same wheel and the same
packages give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from email.message import Message
from email.parser import BytesParser
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from make_licenses import Part, bundled, derived
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["bill", "needed"]

EXTRAS = ("all", "otel")
_SPDX = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "BSD License": "BSD-3-Clause",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL-3.0-only",
}
"""Of classifiers, where a package names its licence by nothing else."""


def license_of(told: Message) -> list[dict[str, Any]]:
    """The licence as a package states it; nothing where it states none."""
    expression = told.get("License-Expression")
    if expression:
        return [{"expression": expression}]
    named = [each.rpartition(" :: ")[2] for each in told.get_all("Classifier", []) if each.startswith("License :: ")]
    short = str(told.get("License") or "").strip()
    if not named and short and "\n" not in short and len(short) < 60:
        return [{"license": {"name": short}}]
    return [{"license": {"id": _SPDX[each]} if each in _SPDX else {"name": each}} for each in named]


def needed(requires: list[str], extras: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The packages that requirements ask for here, each with the extras of it that are meant."""
    for line in requires:
        asked = Requirement(line)
        if asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(asked.name), tuple(sorted(asked.extras))


def _walk(own: Message) -> tuple[dict[str, list[str]], set[str]]:
    """Every package that is installed with it, with what each needs; and those that the core alone brings."""
    own_requires = own.get_all("Requires-Dist", [])
    graph: dict[str, list[str]] = {}
    core: set[str] = set()
    for extras, is_core in (((), True), (EXTRAS, False)):
        waiting, seen = [("muniment", extras)], set()
        while waiting:
            name, wanted = waiting.pop()
            if (name, wanted) in seen:
                continue
            seen.add((name, wanted))
            requires = own_requires if name == "muniment" else metadata.requires(name) or []
            below = list(needed(requires, wanted))
            graph[name] = sorted({*graph.get(name, []), *(each for each, _ in below if each != name)})
            waiting += below
            if is_core:
                core.add(name)
    return graph, core


def _package(name: str, is_core: bool) -> dict[str, Any]:
    told = metadata.metadata(name)
    return {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": told["Version"],
        "purl": f"pkg:pypi/{name}@{told['Version']}",
        "scope": "required" if is_core else "optional",
        "licenses": license_of(told),  # type: ignore[arg-type]
    }


def _carried(part: Part) -> dict[str, Any]:
    kind = "name" if part.license.startswith("LicenseRef") else "id"
    is_npm = part.place == "the inspector"
    return {
        "type": "library" if is_npm else "data",
        "bom-ref": f"carried:{part.name}",
        "name": part.name,
        "version": part.version,
        **({"purl": f"pkg:npm/{part.name}@{part.version}"} if is_npm else {}),
        "licenses": [{"license": {kind: part.license}}],
        "properties": [{"name": "muniment:carried_in", "value": part.place}],
    }


def bill(wheel: Path, carried: list[Part]) -> Mapping[str, Any]:
    """The document for a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [each for each in opened.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", each)]
        own = BytesParser().parsebytes(opened.read(name))
    graph, core = _walk(own)
    graph["muniment"] += [f"carried:{part.name}" for part in carried]
    others = sorted(set(graph) - {"muniment"})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": "muniment",
                "name": "muniment",
                "version": own["Version"],
                "purl": f"pkg:pypi/muniment@{own['Version']}",
                "licenses": license_of(own),
                "hashes": [{"alg": "SHA-256", "content": sha256(wheel.read_bytes()).hexdigest()}],
            }
        },
        "components": [*map(_carried, carried), *(_package(each, each in core) for each in others)],
        "dependencies": [{"ref": each, "dependsOn": graph[each]} for each in sorted(graph)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--out", type=Path)
    told = parser.parse_args()
    out = told.out or told.wheel.with_name("sbom.cdx.json")
    written = bill(told.wheel, [*bundled(), *derived()])
    out.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{out.name}: {len(written['components'])} components")


if __name__ == "__main__":
    main()
