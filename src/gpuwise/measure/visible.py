"""Which devices a job may see, from the variables that limit them, in all their spellings. No device is asked.

Source: CUDA C++ programming guide, CUDA environment variables; NVIDIA MIG user guide, device names (MIG-GPU-<uuid>/
<GPU instance>/<compute instance> up to driver 460, MIG-<uuid> since 470).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpuwise.measure.record import Backend

VARIABLES: Mapping[Backend, tuple[str, ...]] = {
    "cuda": ("CUDA_VISIBLE_DEVICES",),
    "rocm": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    "xpu": ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
    "xla": ("TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a list. kind: index (as numbered), gpu (uuid, possibly its beginning only) or slice.

    Of a slice, uuid is its own, or its GPU's together with both instance numbers.
    """

    kind: Literal["index", "gpu", "slice"]
    index: int | None = None
    uuid: str | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None


_OLD_SLICE = re.compile(r"MIG-(GPU-[0-9a-fA-F-]+)/(\d+)/(\d+)$")


def entries(text: str | None) -> tuple[Entry, ...] | None:
    """The entries of a list; None without a list: all devices are visible.

    CUDA reads up to the first entry that names no device: "-1", "" and "NoDevFiles" leave none, "0,-1,1" leaves one.
    """
    if text is None:
        return None
    found: list[Entry] = []
    for part in text.split(","):
        entry = _entry(part.strip())
        if entry is None:
            break
        found.append(entry)
    return tuple(found)


def _entry(part: str) -> Entry | None:
    if part.isdecimal():
        return Entry(kind="index", index=int(part))
    old = _OLD_SLICE.match(part)
    if old:
        return Entry(kind="slice", uuid=old[1], gpu_instance=int(old[2]), compute_instance=int(old[3]))
    if part.startswith("MIG-"):
        return Entry(kind="slice", uuid=part)
    if part.startswith("GPU-"):
        return Entry(kind="gpu", uuid=part)
    return None


def limited(backend: Backend, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The variable that limits a backend's devices, with its text; None where none is set."""
    return next(((name, environ[name]) for name in VARIABLES.get(backend, ()) if name in environ), None)
