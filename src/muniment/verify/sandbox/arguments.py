"""The command lines of a sandbox. Pure: lists of arguments, no shell, nothing that was not listed.

Two of them. The **stage** is a mount namespace of the session that holds the read-only root of the sandbox and
the sized scratch; nothing of the agent ever runs in it. An **action** enters it, steps down to an ordinary user if
it was root, and builds the wall: every namespace of its own, no capability, a fresh /proc, a read-only root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from muniment.verify.sandbox.caps import MB

__all__ = [
    "GROUP",
    "ROOT",
    "SCRATCH",
    "STEP_DOWN",
    "USER",
    "Descriptors",
    "Tools",
    "Tree",
    "action_arguments",
    "environment",
    "stage_arguments",
]

USER = GROUP = 1000
"""Who an action is inside."""
STEP_DOWN = 65534
"""Who an action of root is outside."""
ROOT, SCRATCH = "/stage/root", "/stage/scratch"


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs it takes: where they are here, and for those run on the stage, where they are there."""

    bwrap: str
    staged_bwrap: str
    nsenter: str
    binds: tuple[tuple[str, str], ...] = ()
    """Host path → stage path: where bubblewrap does not lie under /usr."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A read-only root: (host path, path inside) to bind, (target, path inside) to link."""

    binds: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Descriptors:
    """File descriptors an action is handed."""

    status: int
    block: int
    seccomp: int


def stage_arguments(tools: Tools, system: Tree, root: Tree, *, workdir: str, disk_mb: int, is_root: bool) -> list[str]:
    """`cat` in a mount namespace that holds the sandbox's root; it ends when its input does."""
    made = [tools.bwrap]
    if not is_root:
        made += ["--unshare-user", "--uid", str(USER), "--gid", str(GROUP)]
    made += _planted(system, "")
    # /proc as it is here: the kernel grants a fresh one only where the old one is seen whole.
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
    """Folders on the way are made first and openly, as bubblewrap would make some of them for their owner alone."""
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
    """One action: onto the stage, down from root, behind the wall, then the command."""
    made = [tools.nsenter, "--target", str(stage_pid), "--mount"]
    if is_root:
        made += ["--setgid", str(STEP_DOWN), "--setuid", str(STEP_DOWN), "--"]  # no further groups either
    else:
        made += ["--user", "--preserve-credentials", "--"]
    made += [tools.staged_bwrap, "--unshare-all", *(["--share-net"] if share_net else [])]
    made += ["--new-session", "--die-with-parent", "--cap-drop", "ALL"]
    made += ["--uid", str(USER), "--gid", str(GROUP), "--hostname", "sandbox", "--clearenv"]
    for name, value in env.items():
        made += ["--setenv", name, value]
    made += ["--ro-bind", ROOT, "/", "--proc", "/proc", "--dev", "/dev"]
    # Process 1 is bubblewrap's own, under the same user, and says how the action ended: its memory is hidden.
    made += ["--tmpfs", "/proc/1", "--remount-ro", "/proc/1"]
    for folder, path in (("work", workdir), ("tmp", "/tmp"), ("shm", "/dev/shm")):
        made += ["--bind", f"{SCRATCH}/{folder}", path]
    made += ["--remount-ro", "/dev", "--chdir", workdir]  # else /dev is a file system without a size
    made += ["--json-status-fd", str(descriptors.status), "--block-fd", str(descriptors.block)]
    return [*made, "--seccomp", str(descriptors.seccomp), "--", *command]


def environment(
    workdir: str, *, library_path: str | None, has_packages: bool, proxy_port: int | None
) -> dict[str, str]:
    """Every variable an action sees."""
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
