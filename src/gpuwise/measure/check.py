"""`gpuwise check`: what is installed and working here, how long until the first step, and whether a job can start.

Nothing is changed and nothing is fetched. What is missing comes with a way to get it; how long that takes is told
where somebody measured it, else it is unknown.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpuwise.errors import Message
from gpuwise.measure import nvml as management
from gpuwise.measure import smi
from gpuwise.measure.devices import INSTALLED, devices, present, words
from gpuwise.measure.host import explained, host
from gpuwise.measure.nvml import Seen
from gpuwise.measure.record import Device, Host
from gpuwise.measure.system import REAL, Ran, System
from gpuwise.units import Gib, Seconds

Readiness = Literal["ready", "ready for CPU only", "not ready"]
State = Literal["ok", "absent", "missing", "broken", "unknown"]
"""absent: not there, and nothing here needs it. missing: needed and not there. broken: there and not working."""

STEP_S: Seconds = 90.0
TOOL_S: Seconds = 10.0
COMMAND = (sys.executable, "-m", "gpuwise.measure.first_step")

LEAST_SHM_GIB: Gib = 1.0
"""Eight workers that prefetch two batches of 256 small pictures as bytes fill 0.6 GiB; containers have 1/16 GiB."""
LEAST_FREE_GIB: Gib = 8.0
"""The framework with its CUDA libraries takes 5.6 GB, a checkpoint and a re-encoded data set the rest."""

INSTALLING_S: Mapping[str, Seconds] = {"framework": 91.0, "packages": 6.0}
"""Seconds of pip for torch with torchvision (CUDA build, 5,573 MB) and for the packages of the extra: wall time in
November 2026 on two cores of an AMD EPYC near a mirror. A slow line takes longer."""
WHERE = Message("installing times as measured on two cores of an AMD EPYC with a fast line, November 2026").template
FIRST_STEP = Message("the first step as measured here").template
HERE = Message("measured here").template

PACKAGES = ("nvidia-ml-py", "psutil", "simplejpeg", "opencv-python-headless", "Pillow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that was looked at. found: its version or figure; message: what that means; fix: how to get it."""

    name: str
    state: State
    found: str | None = None
    message: Message | None = None
    fix: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """Seconds in a fresh process: import of the framework, building a small model, its first training step.

    right: a product on the device is what it must be. failure: how it ended without an answer.
    """

    device: str | None = None
    version: str | None = None
    cuda: str | None = None
    right: bool | None = None
    import_s: Seconds | None = None
    build_s: Seconds | None = None
    step_s: Seconds | None = None
    failure: str | None = None

    @property
    def total_s(self) -> Seconds | None:
        if self.import_s is None or self.build_s is None or self.step_s is None:
            return None
        return self.import_s + self.build_s + self.step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """ready: the mark. preparation_s: until the first step, installing what is missing included; None with a reason
    where nobody knows how long a missing part takes."""

    items: tuple[Item, ...]
    ready: Readiness
    first_step: FirstStep
    first_step_s: Seconds | None
    preparation_s: Seconds | None
    host: Host
    devices: tuple[Device, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    schema: int = 1
    kind: str = "check"

    @property
    def missing(self) -> tuple[Item, ...]:
        """What stands in the way, each with its fix."""
        return tuple(item for item in self.items if item.state in {"missing", "broken"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """All that was seen, before it is judged."""

    system: System
    host: Host
    seen: Seen
    accelerators: tuple[str, ...]
    devices: tuple[Device, ...]
    step: FirstStep
    versions: Mapping[str, str | None]

    @property
    def nvidia(self) -> bool:
        return bool(self.seen.cards) or any("NVIDIA" in name for name in self.accelerators)


def check(
    folder: Path | None = None,
    *,
    nvml: Any = INSTALLED,
    system: System = REAL,
    command: Sequence[str] = COMMAND,
    version: Callable[[str], str | None] | None = None,
) -> Checked:
    """Looks at the machine. folder: where the data will lie. command: of the child that does a first step."""
    library = management.find() if nvml is INSTALLED else nvml
    seen = management.look(library)
    asked = version or installed
    facts = _Facts(
        system=system,
        host=host(folder, system=system),
        seen=seen,
        accelerators=present(seen, system),
        devices=devices(torch=None, nvml=library, system=system),
        step=first_step(system, command) if asked("torch") else FirstStep(failure="torch is not installed"),
        versions={name: asked(name) for name in ("torch", "torchvision", *PACKAGES)},
    )
    return judged(facts)


def installed(package: str) -> str | None:
    """Version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def first_step(system: System, command: Sequence[str] = COMMAND) -> FirstStep:
    """Runs the child; what it said before it failed is kept."""
    ran = system.run(tuple(command), STEP_S)
    told: dict[str, Any] = {}
    for line in ran.text.splitlines():
        told |= _line(line)
    known = {name: told[name] for name in FirstStep.__dataclass_fields__ if name in told}
    failure = ran.failure if ran.failure is not None or "step_s" in told else "it ended before its first step"
    return FirstStep(**{**known, "failure": failure})


def _line(text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def judged(facts: _Facts) -> Checked:
    """The items, the mark and the time to prepare, from what was seen."""
    items = tuple(item for make in _ITEMS for item in make(facts))
    preparation_s, why = _preparation(items, facts.step)
    return Checked(
        items=items,
        ready=_ready(facts, items),
        first_step=facts.step,
        first_step_s=facts.step.total_s,
        preparation_s=preparation_s,
        host=facts.host,
        devices=facts.devices,
        reasons={"preparation_s": why},
    )


def _ready(facts: _Facts, items: Sequence[Item]) -> Readiness:
    """A job needs a framework that computes right and room on the disk; "ready" is with an accelerator."""
    state = {item.name: item.state for item in items}
    if facts.step.right is not True or facts.step.failure is not None or state["free space"] == "missing":
        return "not ready"
    if facts.step.device in {None, "cpu"}:
        return "ready for CPU only"
    return "ready"


def _preparation(items: Sequence[Item], step: FirstStep) -> tuple[Seconds | None, str]:
    """Seconds until the first step, and where they come from or why they are unknown."""
    lacking = [item.name for item in items if item.state in {"missing", "broken"} and item.name not in _NO_TIME]
    unknown = [name for name in lacking if name not in INSTALLING_S]
    if unknown:
        return None, f"nobody measured how long it takes to get: {', '.join(unknown)}"
    if step.total_s is None and "framework" not in lacking:
        return None, f"the first step was not reached: {step.failure}"
    known = sum(INSTALLING_S[name] for name in lacking)
    return known + (step.total_s or 0.0), f"{WHERE}; {FIRST_STEP}" if lacking else HERE


_NO_TIME = frozenset({"shared memory", "free space"})
"""Settings and room, which take no time to speak of."""


def _driver(facts: _Facts) -> Iterator[Item]:
    if facts.seen.cards:
        yield Item(name="driver", state="ok", found=facts.seen.driver)
    elif facts.nvidia:
        yield Item(
            name="driver",
            state="missing",
            message=Message("{gpu} is there, its driver does not answer: {why}", gpu=_names(facts), why=_why(facts)),
            fix=Message("Install NVIDIA's driver; in a container or under WSL, on the host (docker run --gpus all)."),
        )
    else:
        found = _names(facts) or None
        yield Item(name="driver", state="absent", found=found, message=Message("no NVIDIA device was found"))


def _names(facts: _Facts) -> str:
    return ", ".join(facts.accelerators)


def _why(facts: _Facts) -> str:
    return facts.seen.failure or "it lists no device"


def _accelerator(facts: _Facts) -> Iterator[Item]:
    used = [device for device in facts.devices if device.backend != "cpu"]
    found = ", ".join(str(message) for message in words(used)) or ", ".join(facts.accelerators)
    yield Item(name="accelerator", state="ok" if found else "absent", found=found or None)


def _cuda(facts: _Facts) -> Iterator[Item]:
    """The driver has to know at least the CUDA that the framework was built for; of one major version any will do."""
    if not facts.seen.cards:
        return
    driver, built = facts.seen.cuda, facts.step.cuda
    found = f"driver {driver or 'unknown'}, torch {built or 'without CUDA'}"
    if built is None and facts.versions["torch"]:
        yield Item(
            name="CUDA",
            state="missing",
            found=found,
            message=Message("torch is built without CUDA"),
            fix=Message("Install the CUDA build of torch for this driver (CUDA {cuda}).", cuda=driver),
        )
    elif built and driver and smi.version(driver)[0] < smi.version(built)[0]:
        yield Item(
            name="CUDA",
            state="broken",
            found=found,
            message=Message("the driver is too old for the CUDA of torch"),
            fix=Message("Update the driver, or install torch built for CUDA {cuda}.", cuda=driver),
        )
    else:
        yield Item(name="CUDA", state="ok", found=found)


def _framework(facts: _Facts) -> Iterator[Item]:
    version = facts.versions["torch"]
    if version is None:
        yield Item(
            name="framework",
            state="missing",
            message=Message("torch is not installed"),
            fix=Message("pip install 'gpuwise[measure]'"),
        )
    elif facts.step.import_s is None:
        why = facts.step.failure or "it gave no answer"
        yield Item(
            name="framework",
            state="broken",
            found=version,
            message=Message("torch cannot be imported: {why}", why=why),
            fix=Message("Install it anew, in an environment of its own."),
        )
    else:
        yield Item(name="framework", state="ok", found=version)


def _device(facts: _Facts) -> Iterator[Item]:
    """The framework sees the device, and computes right on it."""
    step = facts.step
    if step.device is None:
        return
    if step.right is not True or step.failure is not None:
        why = step.failure or "a product of whole numbers came out wrong"
        yield Item(
            name="device",
            state="broken",
            found=step.device,
            message=Message("the framework does not compute on {device}: {why}", device=step.device, why=why),
            fix=Message("Do not train here before this is settled: restart the machine, then look at its logs."),
        )
    elif step.device == "cpu" and facts.accelerators:
        yield Item(
            name="device",
            state="broken",
            found="cpu",
            message=Message("{gpu} is there, the framework uses the CPU", gpu=_names(facts)),
            fix=Message("See driver and CUDA above; check that CUDA_VISIBLE_DEVICES is not empty."),
        )
    else:
        yield Item(name="device", state="ok", found=step.device, message=Message("a product came out right"))


def _container_tools(facts: _Facts) -> Iterator[Item]:
    runtimes = [name for name in ("docker", "podman", "apptainer", "singularity", "enroot") if facts.system.which(name)]
    if set((facts.host.container or "slurm").split(", ")) - {"slurm", "wsl"}:
        yield Item(
            name="container runtime",
            state="absent",
            found=facts.host.container,
            message=Message("this is inside a container: its host has the runtime"),
        )
        return
    yield Item(name="container runtime", state="ok" if runtimes else "absent", found=", ".join(runtimes) or None)
    if runtimes and facts.nvidia:
        yield _toolkit(facts.system)


def _toolkit(system: System) -> Item:
    for tool in ("nvidia-ctk", "nvidia-container-cli"):
        if system.which(tool):
            ran = system.run((tool, "--version"), TOOL_S)
            return _toolkit_item(ran)
    return Item(
        name="container toolkit",
        state="missing",
        message=Message("containers do not see the device without NVIDIA's container toolkit"),
        fix=Message("Install nvidia-container-toolkit, then: nvidia-ctk runtime configure --runtime=docker"),
    )


def _toolkit_item(ran: Ran) -> Item:
    if ran.failure is not None:
        return Item(name="container toolkit", state="broken", message=Message("{why}", why=ran.failure))
    first = next(iter(ran.text.splitlines()), "")
    return Item(name="container toolkit", state="ok", found=first.rpartition(" ")[2] or None)


def _shared(facts: _Facts) -> Iterator[Item]:
    size = facts.host.shm_gib
    if size is None:
        why = facts.host.reasons.get("shm_gib", "unknown")
        yield Item(name="shared memory", state="unknown", message=Message("{why}", why=why))
    elif size < LEAST_SHM_GIB:
        yield Item(
            name="shared memory",
            state="missing",
            found=f"{size * 1024:.0f} MiB",
            message=Message("loader workers hand batches over through it and die when it is full"),
            fix=Message("docker run --shm-size=8g or --ipc=host; Kubernetes: an emptyDir of medium Memory at /dev/shm"),
        )
    else:
        yield Item(name="shared memory", state="ok", found=f"{size:.1f} GiB")


def _disk(facts: _Facts) -> Iterator[Item]:
    storage = facts.host.storage
    remote = Message("on another machine: copy the data to a local disk, or measure the feed first")
    yield Item(
        name="storage",
        state="ok" if storage.filesystem else "unknown",
        found=storage.filesystem,
        message=remote if storage.network else None,
    )
    free = storage.free_gib
    if free is None:
        yield Item(name="free space", state="unknown", message=Message("the file system does not tell it"))
    elif free < LEAST_FREE_GIB:
        fix = Message("Free some space, or give a folder on another disk.")
        yield Item(name="free space", state="missing", found=f"{free:.1f} GiB", fix=fix)
    else:
        yield Item(name="free space", state="ok", found=f"{free:.1f} GiB")


def _cpus(facts: _Facts) -> Iterator[Item]:
    yield Item(name="CPUs", state="ok", found=explained(facts.host.cpus))


def _packages(facts: _Facts) -> Iterator[Item]:
    lacking = [name for name in PACKAGES if facts.versions[name] is None]
    if lacking:
        names = ", ".join(lacking)
        yield Item(
            name="packages",
            state="missing",
            message=Message("not installed: {names}", names=names),
            fix=Message("pip install 'gpuwise[measure]'"),
        )
    else:
        yield Item(name="packages", state="ok", found=", ".join(PACKAGES))


_ITEMS = (_accelerator, _driver, _cuda, _framework, _device, _container_tools, _shared, _disk, _cpus, _packages)


def document(checked: Checked) -> dict[str, Any]:
    """What `check --out` writes and `rank --checked` reads: plain values, texts in English."""
    step = checked.first_step
    return {
        "kind": checked.kind,
        "schema": checked.schema,
        "ready": checked.ready,
        "preparation_s": checked.preparation_s,
        "first_step_s": checked.first_step_s,
        "first_step": {name: getattr(step, name) for name in FirstStep.__dataclass_fields__},
        "items": [
            {
                "name": item.name,
                "state": item.state,
                "found": item.found,
                "message": None if item.message is None else str(item.message),
                "fix": None if item.fix is None else str(item.fix),
            }
            for item in checked.items
        ],
        "reasons": dict(checked.reasons),
    }
