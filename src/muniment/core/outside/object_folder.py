"""Objects as files of one folder. A file appears under its name only when it is complete and on the disk."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

from muniment.core.ports.objects import Listed, Removal
from muniment.errors import InvalidInput, ObjectsRefused, ObjectsUnavailable, StorageFailure, StorageFull

__all__ = ["FolderObjects"]

_PART = ".part"


class FolderObjects:
    """A folder that is there already: one that is made where a disk is not mounted would hold what nobody looks for."""

    def __init__(self, root: str) -> None:
        """A relative path counts from where the process stands now, as that of a store's file does."""
        if not root or "\0" in root:
            raise InvalidInput(
                "that names no folder for objects", path="$.objects", hint="file:objects, file:///srv/objects"
            )
        self._root = Path(os.path.abspath(Path(root).expanduser() if root.startswith("~/") else root))
        if not self._root.is_dir():
            what = "is no folder" if self._root.exists() else "is not there"
            raise InvalidInput(
                f"the folder for objects {what}: {str(self._root)!r:.200}",
                path="$.objects",
                hint="make the folder first; a relative path counts from the folder that the process was started in",
            )

    @property
    def location(self) -> str:
        return self._root.as_uri()

    def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        part = path.with_name(f"{path.name}.{os.urandom(8).hex()}{_PART}")
        try:
            self._check_root()
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(part, "xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(part, path)
            finally:
                part.unlink(missing_ok=True)
            _sync(path.parent)
        except OSError as error:
            raise self._failure(error, "written") from None

    def get(self, key: str) -> bytes | None:
        try:
            self._check_root()
            return self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failure(error, "read") from None

    def remove(self, key: str) -> Removal:
        """Overwritten before it goes, since a file system leaves the bytes of what it deletes."""
        path = self._path(key)
        try:
            self._check_root()
            with open(path, "r+b") as file:
                left = os.fstat(file.fileno()).st_size
                while left > 0:
                    left -= file.write(bytes(min(left, 1 << 20)))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
            _sync(path.parent)
        except FileNotFoundError:
            return Removal(key)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                return Removal(key, 1, "the folder refuses it")
            raise self._failure(error, "deleted") from None
        return Removal(key)

    def listed(self, prefix: str) -> Iterator[Listed]:
        top = self._root / prefix.rpartition("/")[0]
        try:
            self._check_root()
            if not top.is_dir():
                return
            for folder, names, files in os.walk(top, onerror=_raise):
                names.sort()
                for name in sorted(files):
                    path = Path(folder, name)
                    key = path.relative_to(self._root).as_posix()
                    if key.startswith(prefix):
                        try:
                            found = path.stat()
                        except FileNotFoundError:  # deleted since
                            continue
                        yield Listed(key, found.st_size, max(0.0, time.time() - found.st_mtime))
        except OSError as error:
            raise self._failure(error, "listed") from None

    def _path(self, key: str) -> Path:
        return self._root.joinpath(*key.split("/"))

    def _check_root(self) -> None:
        """A folder that vanished is no folder in which nothing is: its disk is not there."""
        if not self._root.is_dir():
            raise OSError(errno.EIO, "the folder of objects is gone")

    def _failure(self, error: OSError, verb: str) -> StorageFailure:
        said = f"an object could not be {verb}: {error.strerror or type(error).__name__}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StorageFull(said, path="$.objects", details={"objects": self.location})
        kind = ObjectsRefused if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else ObjectsUnavailable
        return kind(said, path="$.objects", details={"objects": self.location})


def _raise(error: OSError) -> None:
    raise error


def _sync(folder: Path) -> None:
    """What a folder lists survives a loss of power only when the folder itself is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
