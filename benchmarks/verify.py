"""Everything that verification is measured by: static checks, fact checking, the sandbox.

    python -m benchmarks.verify [--data DIR]

Runs `verify_static`, `verify_facts` and `verify_sandbox`; each writes its own result file and can be run alone.
"""

from __future__ import annotations

import sys

from benchmarks import verify_facts, verify_sandbox, verify_static


def main() -> None:
    for part in (verify_static, verify_facts, verify_sandbox):
        print(f"== {part.__name__}", file=sys.stderr)
        part.main()


if __name__ == "__main__":
    main()
