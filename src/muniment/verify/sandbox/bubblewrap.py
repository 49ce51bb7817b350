"""The sandbox on bubblewrap: sessions under a policy, or a refusal that says why. Never a run on the host."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from muniment.contracts.runs import SandboxPolicy
from muniment.core.outside.system import SystemIds
from muniment.core.ports.models import Ids
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import Network
from muniment.errors import InvalidInput, SandboxDenied, SandboxUnavailable
from muniment.verify.sandbox.allowlist import parse_entries
from muniment.verify.sandbox.arguments import STEP_DOWN, Tree, stage_arguments
from muniment.verify.sandbox.caps import limits_of
from muniment.verify.sandbox.editing import parts_of
from muniment.verify.sandbox.finding import find_tools
from muniment.verify.sandbox.proxy import FilteringProxy
from muniment.verify.sandbox.seccomp import filter_program
from muniment.verify.sandbox.session import BubblewrapSession, Walls
from muniment.verify.sandbox.stage import Stage
from muniment.verify.sandbox.trees import (
    check_workdir,
    host_tree,
    image_tree,
    package_binds,
    system_tree,
    with_network,
)
from muniment.verify.sandbox.watching import can_watch

__all__ = ["BubblewrapSandbox", "probe"]

WORKDIR = "/scratch"


class BubblewrapSandbox:
    """Opens sessions.

    `images` maps an `image_id` of a policy to an unpacked root file system; without an image, programs of this
    machine are shown. `packages` are import names of this environment to show to the sandbox's Python. `mounts`
    maps further paths inside to folders or files here, read-only.
    """

    def __init__(
        self,
        *,
        images: Mapping[str, Path] | None = None,
        packages: Sequence[str] = (),
        mounts: Mapping[str, Path] | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._images = dict(images or {})
        self._packages = tuple(packages)
        self._mounts = dict(mounts or {})
        self._ids = ids or SystemIds()

    def open(
        self, policy: SandboxPolicy, files: Mapping[str, bytes] | None = None, *, trace_id: str
    ) -> BubblewrapSession:
        """A session with these files in its scratch; raises `SandboxUnavailable` or `SandboxDenied`."""
        if policy.enabled is False:
            raise SandboxDenied("the policy switches the sandbox off", hint="policy.enabled")
        limits, network, is_root = limits_of(policy), policy.network or "off", os.geteuid() == 0
        entries = parse_entries(policy.allowlist or ())
        if entries and network != "allowlist":
            raise InvalidInput(f"an allowlist with network {network!r}", path="$.allowlist")
        tools = find_tools()
        if not can_watch():
            raise SandboxUnavailable("this kernel does not list the children of a process: nothing could be watched")
        owner = (STEP_DOWN, STEP_DOWN) if is_root else None
        with ExitStack() as made:
            proxy = FilteringProxy(entries, owner) if network == "allowlist" else None
            if proxy is not None:
                made.callback(proxy.close)
            root = self._root(policy.image_id, network, proxy)
            workdir = check_workdir(policy.workdir or WORKDIR, root)
            arguments = stage_arguments(
                tools, system_tree(), root, workdir=workdir, disk_mb=limits.disk_mb, is_root=is_root
            )
            stage = Stage(arguments, is_root=is_root)
            made.callback(stage.close)
            for path, data in (files or {}).items():
                stage.scratch.write(parts_of(path, workdir), data)
            walls = Walls(
                tools=tools,
                stage=stage,
                proxy=proxy,
                seccomp=filter_program(platform.machine()),
                workdir=workdir,
                has_packages=bool(self._packages),
                is_root=is_root,
            )
            return BubblewrapSession(policy, limits, walls, self._ids, trace_id=trace_id, closing=made.pop_all())

    def _root(self, image_id: str | None, network: Network, proxy: FilteringProxy | None) -> Tree:
        if image_id is None:
            root = host_tree()
        elif image_id in self._images:
            root = image_tree(self._images[image_id])
        else:
            raise SandboxUnavailable(f"there is no image {image_id!r} here", hint="BubblewrapSandbox(images={…})")
        more = tuple((str(path), inside) for inside, path in self._mounts.items())
        root = Tree((*root.binds, *package_binds(self._packages), *more), root.links)
        return with_network(root, network, None if proxy is None else proxy.folder)


def probe() -> str:
    """Run `true` in a sandbox; answers which bubblewrap did, raises what `open` raises."""
    policy = SandboxPolicy(schema_version=RULECRAFT_VERSION)
    with BubblewrapSandbox().open(policy, trace_id="probe") as session:
        seen = session.execute_bash("true")
    if not seen.ok:
        raise SandboxDenied(f"the sandbox came up, but `true` did not run: {seen.stderr.strip()}")
    return find_tools().bwrap
