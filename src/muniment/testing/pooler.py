"""PgBouncer in transaction mode before a PostgreSQL server: a connection is another one after every transaction.

It is the package of the system (`apt-get install pgbouncer`), started with two server connections so that clients share
them all the time, and ended with the block. For tests; holds nothing afterwards.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from muniment.testing.postgres_server import Unavailable

__all__ = ["pooled"]

_CONFIG = """\
[databases]
* = host={host} port={server_port} user={user} pool_size={connections}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 200
logfile = {folder}/log
pidfile = {folder}/pid
server_check_delay = 0
ignore_startup_parameters = extra_float_digits
"""
_FOLDERS = ("/usr/sbin", "/usr/local/sbin")


@contextmanager
def pooled(dsn: str, *, connections: int = 2, port: int | None = None) -> Iterator[str]:
    """The URL of the same server behind a pooler; raises `Unavailable` where there is none.

    On a port that is named, one can be started where another was before.
    """
    program = shutil.which("pgbouncer") or next(
        (path for folder in _FOLDERS if os.access(path := f"{folder}/pgbouncer", os.X_OK)), None
    )
    if program is None:
        raise Unavailable("no PgBouncer on this machine (apt-get install pgbouncer)")
    url = urlsplit(dsn)
    port = port or _free_port()
    with tempfile.TemporaryDirectory(prefix="muniment-pooler-") as folder:
        config = Path(folder) / "pgbouncer.ini"
        host = parse_qs(url.query).get("host", [unquote(url.hostname or "127.0.0.1")])[0]
        user = unquote(url.username or "postgres")
        given = {"host": host, "server_port": url.port or 5432, "user": user, "connections": connections}
        config.write_text(_CONFIG.format(**given, port=port, folder=folder), "utf-8")
        command = [program, str(config)]
        if os.geteuid() == 0:  # it refuses to be root, and must be let in where the server's socket lies
            owner = Path(host).owner() if host.startswith("/") else "nobody"
            command[1:1] = ["--user", owner]
            for each in (Path(folder), config):
                shutil.chown(each, owner)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await(process, port, Path(folder) / "log")
            yield f"postgresql://{url.username or 'postgres'}@127.0.0.1:{port}{url.path or '/postgres'}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(100):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    told = log.read_text("utf-8")[-500:] if log.exists() else ""
    raise Unavailable(f"PgBouncer did not start: {told}")
