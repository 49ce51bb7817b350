"""Fill the figures in README.md from committed benchmark results, so that no figure stands there unmeasured.

python tools/figures.py            rewrite the blocks between <!-- figures:NAME --> marks
python tools/figures.py --check    fail where a block differs from its result file
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = ("README.md",)
BLOCK = re.compile(r"(<!-- figures:(\w+) -->\n)(.*?)(<!-- /figures:\2 -->)", re.DOTALL)


def ledger(results: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| | muniment | bare | ratio |", "|---|---|---|---|"]
    for name in ("sqlite, 1,000 a commit", "sqlite, one commit each", "postgresql, 1,000 a commit"):
        row = results[name]
        lines.append(
            f"| {name} | {row['events_per_s']:,.0f} events/s | {row['reference_per_s']:,.0f} | {row['ratio']:.2f} |"
        )
    shared, points, export = results["sqlite, four processes"], results["point reads"], results["export"]
    lines += [
        "",
        f"Four processes on one SQLite file reach {shared['ratio']:.2f} × one process ({shared['lost']} events lost,"
        f" {shared['errors']} errors). A point read among {points['large']:,} events takes {points['slower_by']:.2f} ×"
        f" one among {points['small']:,}. Exporting {export['whole_lines']:,} lines grows the process by"
        f" {export['whole_grown_mb']:.0f} MB (a tenth of them: {export['tenth_grown_mb']:.0f} MB).",
    ]
    return lines


RENDERERS = {"ledger": ledger}


def filled(text: str) -> str:
    def fill(match: re.Match[str]) -> str:
        document = json.loads((ROOT / "benchmarks" / "results" / f"{match[2]}.json").read_text("utf-8"))
        return match[1] + "\n".join(RENDERERS[match[2]](document["results"])) + "\n" + match[4]

    return BLOCK.sub(fill, text)


def main() -> int:
    stale = []
    for name in PAGES:
        page = ROOT / name
        text = page.read_text("utf-8")
        if filled(text) != text:
            stale.append(name)
            if "--check" not in sys.argv:
                page.write_text(filled(text), "utf-8")
    if stale and "--check" in sys.argv:
        print(f"figures are out of date in {', '.join(stale)}: run python tools/figures.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
