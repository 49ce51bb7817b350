"""Which files of this machine a sandbox shows, read-only: programs and libraries, a Python, a few files of /etc.

Nothing of /root, /home, /tmp, /run, /var, /srv, /opt or /mnt is shown, and of /etc only what is named here.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from muniment.core.scope import Network
from muniment.errors import InvalidInput, SandboxUnavailable
from muniment.verify.sandbox.arguments import Tree

__all__ = [
    "INSIDE",
    "PYTEST",
    "PYTEST_IF_THERE",
    "check_workdir",
    "host_tree",
    "image_tree",
    "library_path",
    "package_binds",
    "system_tree",
    "with_network",
]

INSIDE = Path(__file__).parent / "inside"
PYTEST = ("_pytest", "iniconfig", "packaging", "pluggy", "pytest")
PYTEST_IF_THERE = ("exceptiongroup", "py", "pygments", "tomli", "typing_extensions")
"""What pytest is made of, by import names; newer ones want more."""

_TOP = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "ld.so.cache")
_OWN_ETC = ("group", "hosts", "nsswitch.conf", "passwd")
_CERTIFICATES = ("ca-certificates", "pki/tls/certs", "pki/ca-trust/extracted", "ssl/certs", "ssl/openssl.cnf")
_NOT_FROM_IMAGE = ("dev", "proc", "run", "sys", "tmp")


def system_tree() -> Tree:
    """Programs and libraries of this machine."""
    top = [Path("/", name) for name in _TOP]
    links = tuple((str(path.readlink()), str(path)) for path in top if path.is_symlink())
    binds = [(str(path), str(path)) for path in top if path.is_dir() and not path.is_symlink()]
    binds += [(f"/etc/{name}", f"/etc/{name}") for name in _ETC if Path("/etc", name).exists()]
    return Tree(tuple(binds), links)


def host_tree() -> Tree:
    """The root of a sandbox without an image: the system's programs, our Python, an /etc of our own."""
    system = system_tree()
    own = tuple((str(INSIDE / name), f"/etc/{name}") for name in _OWN_ETC)
    return Tree((*system.binds, *own, *_python_binds()), system.links)


def _python_binds() -> tuple[tuple[str, str], ...]:
    prefix = Path(sys.base_prefix).resolve()
    return () if prefix.is_relative_to("/usr") else ((str(prefix), "/opt/python"),)


def library_path(image_id: str | None) -> str | None:
    """Where our Python finds its own shared library, moved with it, if it has one."""
    moved = image_id is None and _python_binds() and sysconfig.get_config_var("Py_ENABLE_SHARED")
    return "/opt/python/lib" if moved else None


def image_tree(folder: Path) -> Tree:
    """The root of a sandbox with an image: an unpacked root file system."""
    if not folder.is_dir():
        raise SandboxUnavailable(f"there is no root file system at {folder}")
    entries = [path for path in sorted(folder.iterdir()) if path.name not in _NOT_FROM_IMAGE]
    links = tuple((str(path.readlink()), f"/{path.name}") for path in entries if path.is_symlink())
    return Tree(tuple((str(path), f"/{path.name}") for path in entries if not path.is_symlink()), links)


def with_network(tree: Tree, network: Network, proxy_folder: Path | None) -> Tree:
    """Certificates and, as the network is, the proxy's socket and its forwarder or the system's resolver."""
    if network == "off":
        return tree
    there = {path for _, path in tree.binds}
    binds = [
        (f"/etc/{name}", f"/etc/{name}")
        for name in _CERTIFICATES
        if Path("/etc", name).exists() and "/etc" not in there
    ]
    if proxy_folder is not None:
        binds += [(str(proxy_folder), "/run/proxy"), (str(INSIDE / "forward.py"), "/opt/muniment/forward.py")]
    elif Path("/etc/resolv.conf").exists() and "/etc" not in there:
        binds.append((str(Path("/etc/resolv.conf").resolve()), "/etc/resolv.conf"))
    return Tree((*tree.binds, *binds), tree.links)


def package_binds(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Importable packages of this environment, each by its own folder or file, at /opt/packages."""
    binds: list[tuple[str, str]] = []
    for name in names:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise SandboxUnavailable(f"the package {name} is not installed here", hint=f"pip install {name}")
        origin = Path(spec.origin).resolve()
        path = origin.parent if origin.name == "__init__.py" else origin
        binds.append((str(path), f"/opt/packages/{path.name}"))
    return tuple(binds)


def check_workdir(workdir: str, tree: Tree) -> str:
    """A folder the scratch can stand at: absolute, plain, and not over something that is shown."""
    parts = workdir.split("/")[1:]
    plain = workdir.startswith("/") and all(part not in ("", ".", "..") for part in parts) and "\0" not in workdir
    taken: Mapping[str, bool] = {path.split("/")[1]: True for _, path in (*tree.binds, *tree.links)}
    if not plain or parts[0] in (*_NOT_FROM_IMAGE, "opt", "etc") or taken.get(parts[0]):
        raise InvalidInput(f"the scratch cannot stand at {workdir!r}", path="$.workdir", hint="such as /scratch")
    return workdir
