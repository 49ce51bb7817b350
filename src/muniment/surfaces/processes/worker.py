"""One process of a server: the store opened, the application on a socket that another process bound.

    python -m muniment.surfaces.processes.worker FD        settings as JSON on standard input, which stays open

It prints `ready` on standard output once it accepts requests, and shuts down cleanly when it is stopped, or when its
input ends because its parent process is gone.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from importlib import util
from types import FrameType
from typing import TYPE_CHECKING, Any

from muniment.errors import MunimentError
from muniment.surfaces.http.lanes.interpreter import set_interpreter
from muniment.surfaces.http.logs import LOGGER, configure_logs
from muniment.surfaces.http.serve import make_server
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.settings import Settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory

__all__ = ["READY", "beside", "main"]

READY = b"ready\n"


def beside(memory: Memory, store: Settings, settings: ServerSettings) -> dict[str, Any]:
    """The inspector at /, if it is built; MCP at /mcp, if it is installed."""
    from muniment.surfaces.inspector.app import inspector, no_inspector
    from muniment.surfaces.inspector.pages import is_built

    apps: dict[str, Any] = {"/": inspector if is_built() else no_inspector}
    lifespans = []
    if util.find_spec("mcp") is not None:
        from muniment.surfaces.mcp.settings import load_mcp_settings
        from muniment.surfaces.mcp.streamable import PATH, mcp_app

        mounted = mcp_app(memory, store, settings, load_mcp_settings({}))
        apps[PATH] = mounted.mount
        lifespans.append(mounted.lifespan)
    return {"beside": apps, "lifespans": lifespans}


def main() -> int:
    """Serve until stopped; returns the exit code."""
    told = json.loads(sys.stdin.buffer.readline())
    store, settings = Settings(**told["store"]), ServerSettings(**told["server"])
    configure_logs()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, _leave)
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    try:
        with open_store(store) as memory, socket.socket(fileno=int(sys.argv[1])) as listening:
            server = make_server(memory, settings, on_start=_say_ready, **beside(memory, store, settings))
            set_interpreter()
            server.run(sockets=[listening])
            return 0 if server.started else 1
    except MunimentError as error:
        LOGGER.error("a worker cannot serve", extra={"said": error.to_dict()})
        return 1


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Exit before or after the server runs, closing the store. A running server handles signals itself."""
    raise SystemExit(0)


def _say_ready() -> None:
    os.write(1, READY)


def _end_with_the_input() -> None:
    """Stop when standard input ends: the parent holds the other end, and sends nothing more on it."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
