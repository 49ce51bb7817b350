"""Write the golden store: one store with every kind of entry and item, its dumps, and a manifest of its answers.

    python tools/write_golden_store.py FOLDER [--commit COMMIT]

Clock and ids repeat, so that the same code writes the same dumps, to the byte. What an earlier release wrote lies in
`tests/golden/store_0_1` and is never written again: `tests/migration/test_golden_store.py` reads it with the code of
today, and holds what today's code writes against it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from golden_store import questions
from golden_store.contracts import openapi_digests, schema_digests
from golden_store.conversations import write_conversations
from golden_store.endings import WeatherEmbedder, write_endings, write_vectors
from golden_store.learning import write_learning
from golden_store.long_runs import write_long_runs
from golden_store.research import write_research
from golden_store.rules import write_rules
from golden_store.store import GoldenStore, open_repeatable

import muniment
from muniment.core.outside.system import TickingClock

__all__ = ["dump_of", "main", "open_for_questions", "write_fixtures", "write_store"]

ROOT = Path(__file__).parent.parent
CHAPTERS = (write_conversations, write_long_runs, write_learning, write_rules, write_research, write_endings)
AFTERWARDS = datetime(2026, 4, 15, 12, tzinfo=UTC)


def write_store(path: Path) -> list[dict[str, Any]]:
    """Write the store to a file that is not there yet; answers what each build came to, in order."""
    clock = TickingClock()
    with open_repeatable(path, clock=clock, ids="golden") as mem:
        store = GoldenStore(mem, clock)
        for chapter in CHAPTERS:
            chapter(store)
    write_vectors(path)
    return store.builds


def open_for_questions(target: str | PathLike[str], **more: Any) -> muniment.Memory:
    """A store opened after all that was written, with ids that are new to it."""
    return open_repeatable(target, clock=TickingClock(AFTERWARDS), ids="asked", **more)


def dump_of(mem: muniment.Memory, tenant_id: str) -> bytes:
    """All of a tenant, as `muniment export` writes it."""
    return b"".join(mem.export(tenant_id=tenant_id))


def manifest_of(mem: muniment.Memory, builds: list[dict[str, Any]], commit: str) -> dict[str, Any]:
    """What the store answers. Composing anew comes last, since the store grows by it."""
    report = mem.verify()
    gone = [questions.replay(mem, build) for build in builds]
    return {
        "commit": commit,
        "tenants": mem.store.tenants(),
        "chains": {"sessions": report.sessions, "entries": report.entries, "forgotten": report.forgotten},
        "exports": questions.exports(mem),
        "builds": [build | again for build, again in zip(builds, gone, strict=True)],
        "snapshots": questions.snapshots(mem),
        "searches": questions.searches(mem),
        "readings": questions.readings(mem),
        "composed": questions.compose_anew(mem),
        "schemas": schema_digests(ROOT / "schemas"),
        "openapi": openapi_digests(ROOT / "docs" / "reference" / "openapi.json"),
    }


def write_fixtures(folder: Path, commit: str) -> None:
    """The store, its dumps and the manifest, small enough to be kept with the sources."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "store.sqlite"
        builds = write_store(path)
        _write_small(folder / "store.sqlite.xz", path.read_bytes())
        with open_for_questions(path) as mem:
            for tenant_id in mem.store.tenants():
                _write_small(folder / f"{tenant_id}.jsonl.xz", dump_of(mem, tenant_id))
            manifest = manifest_of(mem, builds, commit)
        with open_for_questions(path, embedder=WeatherEmbedder()) as mem:
            manifest["by_meaning"] = questions.searches_by_meaning(mem)
    text = json.dumps(manifest, ensure_ascii=False, indent=1)
    (folder / "manifest.json").write_text(f"{text}\n", "utf-8")


def _write_small(file: Path, data: bytes) -> None:
    file.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--commit", default="", help="which commit the manifest names")
    asked = parser.parse_args(arguments)
    write_fixtures(asked.folder, asked.commit)


if __name__ == "__main__":
    main()
