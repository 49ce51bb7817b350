"""Events that wait on disk until a process with the store open writes them.

A turn may have many tool results, and opening a store for each would make the user wait; and a host that exits does not
wait. Such an event is put down as a file of its own, written whole or not at all. A separate process, started at the
end of a turn (`write_apart`), or the next hook that has the store open anyway writes it into the ledger and removes the
file afterwards. A file that was written and not yet removed is written again harmlessly, since its name is its key.

The files hold the host's text verbatim, so only their owner may read them. A forget removes those of its scope
(`hold_spools`): a list next to the database names their folders. Only the standard library is loaded here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep, time, time_ns
from typing import Any, NamedTuple

__all__ = [
    "Pending",
    "PendingScope",
    "Spools",
    "hold_spools",
    "home_folder",
    "is_outside",
    "may_read",
    "note_folder",
    "pending_folder",
    "put",
    "the_only_writer",
    "waiting",
    "write_apart",
]

_AT_ONCE = 2_000
"""Maximum number of events one hook takes; the rest waits for the next."""
_UNREADABLE = ".unreadable"
_PART = ".part"
_PART_SECONDS_MAX = 60
"""A file that is still partial after this was left by a process that ended."""
_FOLDER = re.compile(r"[0-9a-f]{16}")
_FOLDERS_BYTES_MAX = 1 << 16
_HOLD_SECONDS_MAX = 10.0
"""Longest wait, as a hook has eight seconds."""
_SESSION_CHARS = 200
_LONG_CHARS = 24
"""Shorter texts recur by chance."""


class Pending(NamedTuple):
    """An event that waits."""

    path: Path
    at_ns: int
    """Time of the event, in nanoseconds since 1970."""
    tenant: str
    event: dict[str, Any]
    user: str = ""
    """Its user and agent; empty if written by an earlier version."""
    agent: str = ""

    @property
    def key(self) -> str:
        return self.path.stem

    @property
    def session(self) -> str:
        """Its session, by the store's name for it; "" where it names none."""
        named = self.event.get("session_id") or self.event.get("conversation_id")
        return named[:_SESSION_CHARS] if isinstance(named, str) else ""

    def done(self) -> None:
        self.path.unlink(missing_ok=True)

    def set_aside(self) -> None:
        """Rename a file that will never be written, so that it can be inspected and blocks nothing."""
        with suppress(FileNotFoundError):  # another hook was quicker
            self.path.rename(self.path.with_suffix(_UNREADABLE))


def home_folder() -> Path:
    """Return muniment's folder for data of a person rather than a project."""
    return Path(os.environ.get("MUNIMENT_HOME") or Path("~/.muniment").expanduser())


def pending_folder(home: Path, db: str) -> Path:
    """Return the folder of events waiting for a store: within the person's muniment folder, one for each store."""
    return home / "pending" / sha256(db.encode()).hexdigest()[:16]


def is_outside(db: str) -> bool:
    """Return whether a store is on a server, so that its hooks may run on any machine."""
    return "://" in db


def _list_beside(db: str) -> Path:
    """Return the file that names the folders in which events for a database wait."""
    return Path(f"{os.path.realpath(db)}-pending")


def note_folder(db: str, folder: Path) -> None:
    """Record a folder next to the database, so that a forget finds it from any home folder."""
    listed = _list_beside(db)
    line = f"{os.path.abspath(folder)}\n".encode("utf-8", "surrogateescape")
    with suppress(FileNotFoundError):
        if line in listed.read_bytes():
            return
    listed.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(listed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(line)


def _folders_of(db: str) -> list[Path]:
    """Return the folders in which events for a store may wait: this person's, and those listed next to it."""
    named: list[str] = []
    if not is_outside(db):
        with suppress(OSError), _list_beside(db).open("rb") as file:
            named = file.read(_FOLDERS_BYTES_MAX).decode("utf-8", "surrogateescape").splitlines()
    places = [db] if is_outside(db) else [os.path.abspath(db), os.path.realpath(db)]
    with suppress(RuntimeError):  # no home folder
        named += [str(pending_folder(home_folder(), place)) for place in places]
    folders = [Path(name) for name in dict.fromkeys(named)]
    return [each for each in folders if _FOLDER.fullmatch(each.name) and each.parent.name == "pending"]


def put(folder: Path, tenant: str, event: Mapping[str, Any], *, user: str, agent: str) -> None:
    """Write an event to disk. Raises `OSError` on failure."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = time_ns()
    name = f"{now:020d}-{os.getpid()}-{os.urandom(4).hex()}"
    beside = folder / f"{name}.part"
    told = {"tenant": tenant, "user": user, "agent": agent, "event": event}
    text = json.dumps(told, ensure_ascii=True, separators=(",", ":"))
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(text)
    beside.replace(folder / f"{name}.json")


def waiting(folder: Path) -> Iterator[Pending]:
    """Yield the waiting events, oldest first; an unreadable file is renamed and skipped."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return
    for name in names[:_AT_ONCE]:
        read = _read(folder / name)
        if read is not None:
            yield read


def _read(path: Path) -> Pending | None:
    try:
        return _parse(path)
    except FileNotFoundError:
        return None  # another hook was quicker
    except _NO_EVENT:
        path.rename(path.with_suffix(_UNREADABLE))
        return None


_NO_EVENT = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


def _parse(path: Path) -> Pending:
    said = json.loads(path.read_bytes())
    at_ns = int(path.name.partition("-")[0])
    whose = str(said.get("user", "")), str(said.get("agent", ""))
    return Pending(path, at_ns, str(said["tenant"]), dict(said["event"]), *whose)


def write_apart(command: Sequence[str]) -> None:
    """Start a process that outlives this one and its host. If it is killed anyway, the next hook writes the waiting
    events.
    """
    from subprocess import DEVNULL, Popen

    new: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        new = {"creationflags": 0x00000208}  # DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP
    Popen(list(command), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, close_fds=True, **new)


@contextmanager
def the_only_writer(folder: Path) -> Iterator[bool]:
    """Yield False if another process is writing: it takes newer events too. True where locks are unavailable."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        yield True
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "writing.lock").open("w") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def may_read(folder: Path) -> Iterator[bool]:
    """Yield False while a forget removes waiting events; while True, no forget does. Where locks are unavailable, the
    store itself knows what was forgotten.
    """
    with ExitStack() as held:
        yield _lock(folder, held, is_shared=True)


def _lock(folder: Path, held: ExitStack, *, is_shared: bool, wait_s: float = 0) -> bool:
    """Lock a folder of waiting events; False where another holds it throughout. True where there is nothing to lock."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
    except ImportError:
        return True
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = held.enter_context((folder / "forgetting.lock").open("w"))
    except OSError:
        return True  # a folder of another's, or none that can be made
    until = monotonic() + wait_s
    while True:
        try:
            flock(lock, (LOCK_SH if is_shared else LOCK_EX) | LOCK_NB)
        except BlockingIOError:
            if monotonic() >= until:
                return False
            sleep(0.02)
        else:
            return True


# -- forgetting ---------------------------------------------------------------------------------------


class PendingScope(NamedTuple):
    """The waiting events to remove: of a tenant, of these users or of any, of a session or of any."""

    tenant: str
    users: Collection[str] | None = None
    session: str | None = None
    texts: Sequence[str] | None = None
    """Only those that contain one of these: as a whole text, or anywhere if it is long."""

    def has(self, each: Pending) -> bool:
        """Return whether an event is in the scope. One without an owner may be anyone's."""
        if each.tenant != self.tenant or (self.session is not None and each.session != self.session):
            return False
        if self.users is not None and each.user and each.user not in self.users:
            return False
        return self.texts is None or any(self._holds(said) for said in _strings(each.event))

    def _holds(self, said: str) -> bool:
        return any(
            said.strip() == text.strip() or (len(text) >= _LONG_CHARS and text in said) for text in self.texts or ()
        )


def _strings(value: Any) -> Iterator[str]:
    """Yield all texts in plain data, at any depth."""
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            rest += [*each, *each.values()]
        elif isinstance(each, list):
            rest += each


class Spools:
    """The folders in which events for a store wait, held during a forget."""

    def __init__(self, folders: Sequence[Path], *, is_held: bool) -> None:
        self._folders = folders
        self._is_held = is_held

    def users(self, scope: PendingScope) -> set[str]:
        """Return the users whose events of a scope wait."""
        return {each.user for each in self._read() if each is not None and scope.has(each)}

    def remove(self, scope: PendingScope) -> tuple[int, int]:
        """Remove the events of a scope; returns how many were removed, and how many may be left: unreadable or
        unremovable ones, and those another process may have read by now.
        """
        removed, left = 0, int(not self._is_held)
        for each in self._read():
            if each is None:
                left += 1
            elif scope.has(each):
                try:
                    each.done()
                except OSError:
                    left += 1
                else:
                    removed += 1
        return removed, left

    def _read(self) -> Iterator[Pending | None]:
        """Read all waiting and set-aside events; None for each unreadable one."""
        for folder in self._folders:
            try:
                names = sorted(os.listdir(folder))
            except FileNotFoundError:
                continue
            except OSError:
                yield None
                continue
            for path in (folder / name for name in names):
                if path.suffix not in (".json", _UNREADABLE, _PART):
                    continue
                try:
                    yield _parse(path)
                except FileNotFoundError:
                    continue
                except _NO_EVENT:
                    if path.suffix != _PART or not _is_being_written(path):
                        yield None


def _is_being_written(path: Path) -> bool:
    """Return whether a hook is writing a partial file now. An abandoned one is removed, as nothing will read it."""
    try:
        if time() - path.stat().st_mtime > _PART_SECONDS_MAX:
            path.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def hold_spools(db: str) -> Iterator[Spools]:
    """Hold a store's spools, so that no hook writes into it meanwhile."""
    folders = [folder for folder in _folders_of(db) if folder.is_dir()]
    with ExitStack() as held:
        is_held = [_lock(each, held, is_shared=False, wait_s=_HOLD_SECONDS_MAX) for each in folders]
        yield Spools(folders, is_held=all(is_held))
