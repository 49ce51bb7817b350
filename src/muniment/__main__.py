"""`python -m muniment`."""

from __future__ import annotations

from muniment.surfaces.cli.main import main

if __name__ == "__main__":
    main()
