"""System calls that a sandboxed process may not make, as a filter program for the kernel.

Pure: classic BPF, assembled here, so that no compiler is needed. The filter is a second barrier behind the namespaces.
It also blocks ways to hide memory from accounting (segments and files that belong to no process) and to reach past a
namespace (VSOCK, file handles, further user namespaces).
"""

from __future__ import annotations

import errno
import struct
from typing import NamedTuple

__all__ = ["MACHINES", "Instruction", "filter_program", "instructions"]


class Instruction(NamedTuple):
    """One `sock_filter`: opcode, jump if true, jump if false, operand."""

    code: int
    jt: int
    jf: int
    k: int


class _Machine(NamedTuple):
    audit: int
    column: int


MACHINES = {"x86_64": _Machine(0xC000003E, 0), "aarch64": _Machine(0xC00000B7, 1)}
"""Value of `platform.machine()` → the kernel's name for it, and the column of `_DENIED`."""

# fmt: off
_DENIED: dict[str, tuple[int | None, int | None]] = {  # name → number on x86_64, on aarch64
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "kcmp": (312, 272), "process_madvise": (440, 440), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # mounts and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    # the kernel itself
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171), "lookup_dcookie": (212, 18),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58), "nfsservctl": (180, 42),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
    "_sysctl": (156, None),
    # memory that belongs to no process
    "shmget": (29, 194), "memfd_create": (319, 279), "memfd_secret": (447, 447),
}
_MISSING: dict[str, tuple[int, int]] = {  # reported as missing, so that callers fall back
    "clone3": (435, 435),  # its flags are in memory, where no filter can read them
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),  # bypass a filter
}
_CLONE, _SOCKET, _IOCTL = (56, 220), (41, 198), (16, 29)
# fmt: on

_FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink (used by getaddrinfo)
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW… flag that clone takes
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def filter_program(machine: str) -> bytes:
    """The program in the form `--seccomp` reads; raises KeyError for a machine not in `MACHINES`."""
    return b"".join(struct.pack("=HBBI", *step) for step in instructions(machine))


def instructions(machine: str) -> list[Instruction]:
    audit, column = MACHINES[machine]
    steps = [
        _load(_ARCH_AT),
        Instruction(_EQUAL, 1, 0, audit),
        _give(_KILL),  # a 32-bit call has other numbers
        _load(_NUMBER_AT),
    ]
    if machine == "x86_64":
        steps += [Instruction(_AT_LEAST, 0, 1, _X32), _give(_KILL)]
    for numbers in _DENIED.values():
        if numbers[column] is not None:
            steps += [_unless(numbers[column]), _refuse(errno.EPERM)]
    for known in _MISSING.values():
        steps += [_unless(known[column]), _refuse(errno.ENOSYS)]
    steps += _when(_CLONE[column], _clone())
    steps += _when(_SOCKET[column], _socket())
    steps += _when(_IOCTL[column], _ioctl())
    return [*steps, _give(_ALLOW)]


def _clone() -> list[Instruction]:
    return [_load(_FIRST_ARGUMENT_AT), Instruction(_ANY_BIT, 0, 1, _NEW_NAMESPACES), _refuse(errno.EPERM)]


def _socket() -> list[Instruction]:
    allowed = [step for family in _FAMILIES for step in (Instruction(_EQUAL, 0, 1, family), _give(_ALLOW))]
    return [_load(_FIRST_ARGUMENT_AT), *allowed, _refuse(errno.EAFNOSUPPORT)]


def _ioctl() -> list[Instruction]:
    refused = [step for request in _TERMINAL_INPUT for step in (_unless(request), _refuse(errno.EPERM))]
    return [_load(_SECOND_ARGUMENT_AT), *refused]


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    """Instructions for one call number, which must end in a verdict, as the number is no longer loaded afterwards."""
    return [Instruction(_EQUAL, 0, len(body) + 1, number), *body, _give(_ALLOW)]


def _unless(value: int | None) -> Instruction:
    """Skip the next instruction unless the loaded value is this one."""
    assert value is not None
    return Instruction(_EQUAL, 0, 1, value)


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _give(action: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, action)


def _refuse(number: int) -> Instruction:
    return _give(_ERRNO | number)
