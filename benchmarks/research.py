"""Research runs: what real reports hold, what packs come to, who launders a citation, and what ten megabytes take.

    python -m benchmarks.research [--data DIR] [--quick] [--no-embedders]

Three parts, each with its own module: `research_reports` (100 real reports, pages made up), `research_support` (WiCE)
and `research_scale` (synthetic outputs of many megabytes). Times are the process's own (CPU), and ratios of one run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import muniment
from benchmarks import data as sets
from benchmarks.harness import report
from benchmarks.research_reports import measure_reports, reports
from benchmarks.research_scale import measure_scale
from benchmarks.research_support import labelled, measure_evidence, measure_support


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--quick", action="store_true", help="few reports and small sizes, for a look")
    parser.add_argument("--no-embedders", action="store_true")
    given = parser.parse_args(argv)
    embedders = () if given.no_embedders else ("wordllama", "minilm")
    sizes = [0.25, 0.5] if given.quick else [1.25, 2.5, 5, 10]
    read = reports(given.data)
    stock = [claim.sentence.text for one in read for claim in one.claims]
    policy = muniment.Policy()
    rows = measure_evidence(given.data, policy)
    rows |= measure_support(labelled(given.data), policy, embedders)
    with tempfile.TemporaryDirectory() as folder:
        rows |= measure_reports(read[40:64] if given.quick else read, Path(folder))
    rows |= measure_scale(stock, sizes)
    report("research", rows, {"quick": given.quick, "sizes_mb": sizes, "policy": policy.digest})


if __name__ == "__main__":
    main()
