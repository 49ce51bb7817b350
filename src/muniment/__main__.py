"""`python -m muniment`, and the installed script `muniment`.

A hook of a coding agent is run at every tool call: it goes its own way, and loads nothing of the other commands.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The entry point of the installed script and of `python -m muniment`."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help", "--json"} & set(sys.argv):
        from muniment.surfaces.hosts.hook_command import main as run_hook

        sys.exit(run_hook(sys.argv[2:]))
    from muniment.surfaces.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
