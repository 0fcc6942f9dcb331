"""What is mounted where: the kind of the file system under a path, the shared memory, free space.

Source: proc_pid_mountinfo(5): fields before " - " are ids, root and mount point, after it type, source, options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpuwise.measure.record import Storage
from gpuwise.measure.system import System
from gpuwise.units import BYTES_PER_GIB, Fraction, Gib

SHARED_MEMORY = "/dev/shm"

NETWORK = frozenset({
    "nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "ceph", "glusterfs",
    "afs", "ocfs2", "gfs2", "orangefs", "pvfs2", "wekafs", "quobyte", "davfs", "ncpfs", "mmfs", "panfs",
})  # fmt: skip
"""Types of file systems whose data lie on another machine."""

NETWORK_USER_SPACE = (
    "s3", "gcs", "goofys", "blobfuse", "azure", "adls", "rclone", "sshfs", "juicefs", "gluster", "ceph", "dfs", "davfs",
    "alluxio", "seaweed", "moosefs", "mfs", "lizard", "cvmfs", "jindo", "cosfs", "ossfs", "curve", "geesefs", "weka",
)  # fmt: skip
"""Parts of names after "fuse." that stand for a store elsewhere."""

OUTSIDE = frozenset({"9p", "virtiofs", "vboxsf", "prl_fs", "hgfs", "drvfs", "fuse.vmhgfs-fuse", "fuse.grpcfuse"})
"""Folders of the machine that this virtual machine runs on: no network, and slower than a disk of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of mountinfo. root: the folder of the file system that is seen at `point`."""

    point: str
    root: str
    filesystem: str
    source: str
    options: frozenset[str]


def mounts(system: System) -> tuple[Mount, ...]:
    """All mounts, in the order of mounting; none where the system has no /proc."""
    text = system.text("/proc/self/mountinfo") or ""
    return tuple(m for m in map(_mount, text.splitlines()) if m is not None)


def _mount(line: str) -> Mount | None:
    before, _, after = line.partition(" - ")
    fields, kind = before.split(), after.split()
    if len(fields) < 6 or len(kind) < 2:
        return None
    return Mount(
        point=_plain(fields[4]),
        root=_plain(fields[3]),
        filesystem=kind[0],
        source=_plain(kind[1]),
        options=frozenset(kind[2].split(",")) if len(kind) > 2 else frozenset(),
    )


def _plain(text: str) -> str:
    """The kernel writes blanks and the like in octal: \\040."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def holding(path: str | Path, among: Sequence[Mount]) -> Mount | None:
    """The mount that a path lies on: the longest mount point above it, of equal ones the last."""
    place = PurePosixPath(str(path))
    above = [m for m in among if place.is_relative_to(m.point)]
    return max(enumerate(above), key=lambda im: (len(PurePosixPath(im[1].point).parts), im[0]))[1] if above else None


def is_network(filesystem: str) -> bool | None:
    """Whether a type of file system has its data on another machine; None for a user-space one nobody knows."""
    if filesystem in NETWORK:
        return True
    if filesystem in OUTSIDE:
        return None
    if filesystem in {"fuse", "fuseblk"} or filesystem.startswith("fuse."):
        return _network_user_space(filesystem)
    return False


def _network_user_space(filesystem: str) -> bool | None:
    if filesystem in {"fuseblk", "fuse.overlayfs", "fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.bindfs"}:
        return False
    return True if any(part in filesystem for part in NETWORK_USER_SPACE) else None


def storage(path: Path, system: System) -> tuple[Storage, dict[str, str]]:
    """Where a path lies, with reasons for what is not known. A path that is not there yet: its nearest folder."""
    there = _existing(path, system)
    mount, seen = holding(there, mounts(system)), system.usage(system.path(there))
    network = is_network(mount.filesystem) if mount else None
    found = Storage(
        filesystem=mount.filesystem if mount else None,
        network=network,
        free_gib=seen[1] / BYTES_PER_GIB if seen else None,
    )
    return found, _reasons(mount, network, seen is not None)


def _reasons(mount: Mount | None, network: bool | None, free: bool) -> dict[str, str]:
    reasons = {}
    if mount is None:
        reasons["filesystem"] = reasons["network"] = "this system does not list its mounts in /proc"
    elif network is None:
        outside = mount.filesystem in OUTSIDE
        reasons["network"] = (
            "a folder of the machine that this one runs on: where that keeps it is not visible"
            if outside
            else "a file system in user space whose store is not known"
        )
    if not free:
        reasons["free_gib"] = "the file system does not tell its free space"
    return reasons


def _existing(path: Path, system: System) -> Path:
    """The path with links followed, or its nearest folder that exists."""
    place = path.absolute()
    while not system.exists(place) and place != place.parent:
        place = place.parent
    return place.resolve() if system.root == Path("/") else place


def shared_memory(system: System) -> tuple[Gib, Fraction] | str:
    """Size of the shared memory mount and its used share, or why there is none to tell.

    Loader workers hand their batches over through it; a container has 64 MiB unless it was asked for more.
    """
    if system.name != "Linux":
        return f"{system.name} has no shared memory mount"
    if not any(m.point == SHARED_MEMORY for m in mounts(system)):
        return f"nothing is mounted at {SHARED_MEMORY}"
    seen = system.usage(system.path(SHARED_MEMORY))
    if seen is None or not seen[0]:
        return f"the mount at {SHARED_MEMORY} does not tell its size"
    return seen[0] / BYTES_PER_GIB, 1 - seen[1] / seen[0]
