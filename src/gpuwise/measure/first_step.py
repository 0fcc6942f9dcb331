"""The child of `check`: how long until a framework has done one training step here, and whether it computes right.

Writes lines of JSON, each as soon as it is known: import_s, device, right, build_s, step_s. Small on purpose: it times
what every job pays before its own work, not the work.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

SIDE = 64
"""Of the product that is checked: long enough to use a device's matrix units."""
BATCH, PIXELS, CLASSES = 8, 64, 10


def main() -> None:
    before = time.perf_counter()
    import torch

    _say(import_s=time.perf_counter() - before, version=str(torch.__version__), cuda=torch.version.cuda)
    device = _device(torch)
    _say(device=device)
    before = time.perf_counter()
    right = matmul_is_right(torch, device)
    model, optimizer = _model(torch, device)
    _say(right=right, build_s=time.perf_counter() - before)
    before = time.perf_counter()
    _step(torch, device, model, optimizer)
    _say(step_s=time.perf_counter() - before)


def matmul_is_right(torch: Any, device: str) -> bool:
    """A product of whole numbers on the device is exactly what the CPU's integers say."""
    a = torch.arange(SIDE * SIDE).reshape(SIDE, SIDE) % 7
    b = torch.arange(SIDE * SIDE).reshape(SIDE, SIDE) % 5
    there = a.float().to(device) @ b.float().to(device)
    return bool((there.cpu().round().long() == a @ b).all())


def _device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    if getattr(torch, "xpu", None) is not None and torch.xpu.is_available():
        return "xpu"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _model(torch: Any, device: str) -> tuple[Any, Any]:
    nn = torch.nn
    layers = nn.Conv2d(3, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    model = nn.Sequential(*layers, nn.Linear(32, CLASSES)).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def _step(torch: Any, device: str, model: Any, optimizer: Any) -> None:
    images = torch.randn(BATCH, 3, PIXELS, PIXELS, device=device)
    labels = torch.arange(BATCH, device=device) % CLASSES
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    float(next(iter(model.parameters())).flatten()[0])  # waits for the device


def _say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
