"""Write goldens anew, on purpose: `python tests/goldens/write.py NAME…`. The commit message says which and why."""

from __future__ import annotations

import sys

from frozen import GOLDENS, write

if __name__ == "__main__":
    names = sys.argv[1:]
    if not names or not set(names) <= GOLDENS.keys():
        sys.exit(f"usage: python tests/goldens/write.py NAME…, each one of {', '.join(GOLDENS)}")
    for name in names:
        write(name)
