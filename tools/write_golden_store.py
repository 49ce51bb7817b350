"""Write the frozen store of release 0.1: a SQLite file, the dump of each tenant, and what both answer.

    PYTHONPATH=src:tools:tests/goldens python tools/write_golden_store.py FOLDER

Clock and ids repeat, so that the same code writes the same dumps, to the byte. The file leaves out a rule's trial, which
is large.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from pathlib import Path
from typing import Any

from golden_store.conversations import write_conversations
from golden_store.endings import write_endings
from golden_store.learning import write_learning
from golden_store.long_runs import write_long_runs
from golden_store.research import write_research
from golden_store.rules import write_rules
from golden_store.store import GoldenStore, open_repeatable
from old_stores import answers

from muniment.core.outside.system import TickingClock

CHAPTERS = (write_conversations, write_long_runs, write_learning, write_rules, write_research, write_endings)


def write_store(path: Path, folder: Path, is_small: bool) -> dict[str, Any]:
    """Tell the story to a new file; the dumps of all of it go to the folder."""
    clock = TickingClock()
    with open_repeatable(path, clock=clock, ids="golden") as mem:
        store = GoldenStore(mem, clock, is_small)
        for chapter in CHAPTERS:
            chapter(store)
        if not is_small:
            for tenant_id in mem.store.tenants():
                _write_small(folder / f"{tenant_id}.jsonl.xz", b"".join(mem.export(tenant_id=tenant_id)))
        return answers(mem, [(build["tenant_id"], build["id"]) for build in store.builds])


def write_fixtures(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        found = {"dumps": write_store(Path(temporary) / "whole", folder, is_small=False)}
        path = Path(temporary) / "store.sqlite"
        found["file"] = write_store(path, folder, is_small=True)
        _write_small(folder / "store.sqlite.xz", path.read_bytes())
    text = json.dumps(found, ensure_ascii=False, indent=1)
    (folder / "answers.json").write_text(f"{text}\n", "utf-8")


def _write_small(file: Path, data: bytes) -> None:
    file.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the files go")
    write_fixtures(parser.parse_args(arguments).folder)


if __name__ == "__main__":
    main()
