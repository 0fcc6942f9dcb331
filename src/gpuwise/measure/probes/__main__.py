"""The child: runs the probes named in SPEC (JSON), one line of JSON for each that begins and each that ends.

It ends itself after a failure of the device, which spoils what follows; the parent starts another for the rest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpuwise.measure import nvml as management
from gpuwise.measure.counters import readers
from gpuwise.measure.devices import cpu, devices
from gpuwise.measure.probes import Found, Skipped, Task
from gpuwise.measure.probes.names import PROBES
from gpuwise.measure.record import Device
from gpuwise.measure.system import REAL

ON_DEVICE = ("memory", "host", "matmul", "convolution")
FAILURES = (RuntimeError, OSError, ValueError, TypeError, MemoryError, ImportError, AttributeError, ArithmeticError)
SPOILED = 3
"""Exit code after a failure of the device."""


def main(spec: Mapping[str, Any]) -> int:
    found = _devices()
    _say(devices=[asdict(d) for d in found])
    task = Task(device=_torch_device(found[0]), folder=Path(spec["folder"]), cap_s=spec["cap_s"], devices=len(found))
    watched, _ = readers(found[:1], management.find(), REAL)
    for name in spec["names"]:
        _say(begin=name)
        outcome = _outcome(name, task)
        if watched and name.startswith(ON_DEVICE) and "conditions" in outcome:
            outcome["conditions"] |= _shown(watched[0].read(0.0))
        _say(end=name, **outcome)
        if "CUDA error" in str(outcome.get("reason")):
            return SPOILED
    return 0


def _devices() -> tuple[Device, ...]:
    """As the framework sees them; without one, the CPU: what needs no framework still runs."""
    try:
        import torch
    except (ImportError, OSError):
        return (cpu(),)
    return devices(torch=torch)


def _torch_device(device: Device) -> str:
    return "cuda" if device.backend == "rocm" else device.backend


def _outcome(name: str, task: Task) -> dict[str, Any]:
    try:
        found: Found = PROBES[name](task)
    except Skipped as why:
        return {"reason": str(why)}
    except FAILURES as error:
        return {"reason": f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0]}"}
    return {"unit": found.unit, "value": asdict(found.value), "conditions": dict(found.conditions)}


def _shown(sample: Any) -> dict[str, float | str]:
    """Clock, power and heat just after a probe: what the figure was had at."""
    seen = {name: getattr(sample, name) for name in ("clock_mhz", "power_w", "temperature_c")}
    held = {"throttled": ", ".join(sample.throttle)} if sample.throttle else {}
    return {name: value for name, value in seen.items() if value is not None} | held


def _say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
