"""The scratch folder of a session, seen from outside through one open descriptor.

Every step goes from descriptor to descriptor and follows no link, so nothing an action leaves there can lead out.
No process of the sandbox is alive while we look. Names are text here: bytes that are not UTF-8 are spelled `\\xff`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from secrets import token_hex

from muniment.errors import InvalidInput, NotFound, TooLarge
from muniment.verify.sandbox.traces import Entry

__all__ = ["Scratch", "empty"]

DEPTH_MAX = 64
"""Maximum folder depth listed; deeper files only count towards the file cap."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20


class Scratch:
    """Reads, writes and lists below `root`, a descriptor that it closes; new files belong to `owner`."""

    def __init__(self, root: int, owner: tuple[int, int] | None) -> None:
        self._root = root
        self._owner = owner

    def close(self) -> None:
        os.close(self._root)

    def in_use(self) -> tuple[int, int]:
        """Bytes and files used in the whole scratch file system."""
        now = os.fstatvfs(self._root)
        return (now.f_blocks - now.f_bfree) * now.f_frsize, now.f_files - now.f_ffree

    def read(self, parts: tuple[str, ...], bytes_max: int) -> bytes:
        with self._file(parts, os.O_RDONLY) as file:
            if os.fstat(file).st_size > bytes_max:
                raise TooLarge(f"{'/'.join(parts)} has more than {bytes_max:,} bytes", path="$.path")
            data = bytearray()
            while part := os.read(file, _CHUNK):
                data += part
            return bytes(data)

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        if not parts:
            return True
        try:
            with self._folder(parts[:-1], make=False) as folder:
                return stat.S_ISDIR(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode)
        except OSError as error:
            raise _said(error, parts) from None

    def write(self, parts: tuple[str, ...], data: bytes, *, new: bool = False) -> None:
        """Write a file whole, making its folders; `new` refuses one that exists."""
        flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else os.O_TRUNC)
        with self._file(parts, flags, make=True) as file:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(file, view) :]
            except OSError as error:
                raise _said(error, parts) from None

    def remove(self, parts: tuple[str, ...]) -> None:
        try:
            with self._folder(parts[:-1], make=False) as folder:
                os.unlink(parts[-1], dir_fd=folder)
        except OSError as error:
            raise _said(error, parts) from None

    @contextmanager
    def _file(self, parts: tuple[str, ...], flags: int, *, make: bool = False) -> Iterator[int]:
        if not parts:
            raise InvalidInput("this is the scratch folder itself", path="$.path")
        safe = flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe there must not block us
        try:
            with self._folder(parts[:-1], make=make) as folder:
                file = os.open(parts[-1], safe, 0o644, dir_fd=folder)
        except OSError as error:
            raise _said(error, parts) from None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise InvalidInput(f"{'/'.join(parts)} is not a file", path="$.path")
            if flags & os.O_CREAT:
                self._own(file)
            yield file
        finally:
            os.close(file)

    @contextmanager
    def _folder(self, parts: tuple[str, ...], *, make: bool) -> Iterator[int]:
        here = os.dup(self._root)
        try:
            for part in parts:
                made = False
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=here)
                        made = True
                there = os.open(part, _FOLDER, dir_fd=here)
                os.close(here)
                here = there
                if made:
                    self._own(here)
            yield here
        finally:
            os.close(here)

    def _own(self, file: int) -> None:
        if self._owner is not None:
            os.fchown(file, *self._owner)

    def scan(self, before: Mapping[str, Entry], files_max: int, bytes_max: int) -> dict[str, Entry]:
        """Every file and link with its digest; one unchanged since `before` is not reread.

        At most `bytes_max` bytes are read: sparse files may seem larger than the scratch. Unread and unreadable files
        have no digest; a folder that cannot be entered stands for its content.
        """
        os.fchmod(self._root, 0o755)  # it belongs to the sandbox, which may have made it inaccessible
        look = _Look(before, files_max, bytes_max)
        look.at(os.dup(self._root), "", 0)
        return look.found


class _Look:
    """One scan: its results, and the bytes left to read."""

    def __init__(self, before: Mapping[str, Entry], files_max: int, bytes_max: int) -> None:
        self.found: dict[str, Entry] = {}
        self._before = before
        self._files_max = files_max
        self._bytes_left = bytes_max

    def at(self, folder: int, prefix: str, depth: int) -> None:
        """Scan an open folder and close it."""
        try:
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: os.fsencode(entry.name))
            for entry in inside:
                path = prefix + _spelled(entry.name)
                if len(self.found) >= self._files_max:
                    return
                try:
                    if not entry.is_dir(follow_symlinks=False):
                        self.found[path] = self._entry(folder, entry.name, self._before.get(path))
                    elif depth < DEPTH_MAX:
                        self.at(os.open(entry.name, _FOLDER, dir_fd=folder), f"{path}/", depth + 1)
                except PermissionError:
                    self.found[path] = Entry(0, None)
        finally:
            os.close(folder)

    def _entry(self, folder: int, name: str, before: Entry | None) -> Entry:
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        stamp = (seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if before is not None and before.stamp == stamp:
            return before
        if stat.S_ISLNK(seen.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=folder))
            return Entry(0, f"link:{sha256(target).hexdigest()}", stamp)
        if not stat.S_ISREG(seen.st_mode):
            return Entry(0, None, stamp)
        if seen.st_size > self._bytes_left:
            return Entry(seen.st_size, None, stamp)
        self._bytes_left -= seen.st_size
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(file, "rb") as stream:
            return Entry(seen.st_size, f"sha256:{file_digest(stream, 'sha256').hexdigest()}", stamp)


def empty(folder: int) -> None:
    """Remove everything below an open folder, however deep: folders are moved up before they are entered."""
    os.fchmod(folder, 0o1777)
    aside, count = f".{token_hex(8)}", 0  # a name that cannot exist already
    while names := os.listdir(folder):
        for name in names:
            if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
                continue
            os.chmod(name, 0o700, dir_fd=folder)
            below = os.open(name, _FOLDER, dir_fd=folder)
            try:
                for inner in os.listdir(below):
                    if stat.S_ISDIR(os.stat(inner, dir_fd=below, follow_symlinks=False).st_mode):
                        os.chmod(inner, 0o700, dir_fd=below)  # a folder must be writable to change its parent
                        count += 1
                        os.rename(inner, f"{aside}.{count}", src_dir_fd=below, dst_dir_fd=folder)
                    else:
                        os.unlink(inner, dir_fd=below)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=folder)


def _spelled(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _said(error: OSError, parts: tuple[str, ...]) -> InvalidInput | NotFound | TooLarge:
    path = "/".join(parts)
    if error.errno == errno.ENOENT:
        return NotFound(f"there is no {path}", path="$.path")
    if error.errno in (errno.ENOSPC, errno.EFBIG):
        return TooLarge(f"the scratch is full: {path} was not written whole", path="$.path")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return InvalidInput(f"{path} leads through a link or a file", path="$.path", hint="name the file itself")
    if error.errno == errno.EEXIST:
        return InvalidInput(f"{path} exists already", path="$.path", hint="edit it with str_replace")
    return InvalidInput(f"{path}: {os.strerror(error.errno or errno.EIO)}", path="$.path")
