"""What is there, what is missing, and whether a job can start: each machine gets its mark and a way on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from machines import GIB, MEMINFO, MOUNTS, FakeCard, FakeError, FakeNvml, machine

from gpuwise.measure.check import INSTALLING_S, PACKAGES, Checked, check, document
from gpuwise.measure.first_step import matmul_is_right
from gpuwise.measure.system import Ran

FILES = {"/proc/self/mountinfo": MOUNTS, "/proc/meminfo": MEMINFO}
WORKING = {
    "import_s": 3.0, "version": "2.14.1", "cuda": "13.0", "device": "cuda", "right": True, "build_s": 1.0,
    "step_s": 0.5,
}  # fmt: skip
LIBRARY_MISSING = FakeError("NVML Shared Library Not Found")


def checked(
    tmp_path: Path,
    *,
    nvml: FakeNvml | None = None,
    step: Mapping[str, object] | None = WORKING,
    files: Mapping[str, str] = FILES,
    lacking: tuple[str, ...] = (),
    shm_bytes: int = 16 * GIB,
    free_bytes: int = 40 * GIB,
    failure: str | None = None,
    tools: Mapping[str, Ran] | None = None,
) -> Checked:
    """The machine as told; its child prints `step`, one line a figure."""
    lines = "".join(json.dumps({name: value}) + "\n" for name, value in (step or {}).items())
    programs = {name: (lambda command, ran=ran: ran) for name, ran in (tools or {}).items()}
    system = machine(
        tmp_path,
        files,
        programs={"child": lambda command: Ran(text=lines, failure=failure), **programs},
        usage=lambda p: (shm_bytes, shm_bytes) if "shm" in str(p) else (100 * GIB, free_bytes),
    )
    return check(
        tmp_path,
        nvml=nvml or FakeNvml(init=LIBRARY_MISSING),
        system=system,
        command=("child",),
        version=lambda package: None if package in lacking else "1.0",
    )


def state(seen: Checked) -> dict[str, str]:
    return {item.name: item.state for item in seen.items}


def test_a_machine_whose_device_computes_right_is_ready_at_once(tmp_path: Path) -> None:
    seen = checked(tmp_path, nvml=FakeNvml(FakeCard(uuid="GPU-a")))
    assert seen.ready == "ready"
    assert seen.missing == ()
    assert seen.first_step_s == seen.preparation_s == 4.5


def test_a_machine_without_an_accelerator_is_ready_for_the_cpu(tmp_path: Path) -> None:
    seen = checked(tmp_path, step=WORKING | {"device": "cpu", "cuda": None})
    assert seen.ready == "ready for CPU only"
    assert state(seen)["driver"] == "absent"
    assert "CUDA" not in state(seen)


def test_uc_032_a_card_that_the_framework_cannot_use_is_missing_something(tmp_path: Path) -> None:
    seen = checked(tmp_path, nvml=FakeNvml(FakeCard(uuid="GPU-a")), step=WORKING | {"device": "cpu", "cuda": None})
    assert seen.ready == "ready for CPU only"
    assert {item.name for item in seen.missing} == {"CUDA", "device"}
    assert all(item.fix is not None for item in seen.missing)


def test_a_card_without_its_driver_is_told_with_a_way_to_get_one(tmp_path: Path) -> None:
    slot = "/sys/bus/pci/devices/0000:01:00.0"
    files = FILES | {f"{slot}/class": "0x030200\n", f"{slot}/vendor": "0x10de\n"}
    seen = checked(tmp_path, files=files, step=WORKING | {"device": "cpu"})
    driver = next(item for item in seen.items if item.name == "driver")
    assert driver.state == "missing"
    assert "NVML Shared Library Not Found" in str(driver.message)
    assert seen.preparation_s is None
    assert "driver" in seen.reasons["preparation_s"]


def test_a_product_that_comes_out_wrong_is_not_ready(tmp_path: Path) -> None:
    seen = checked(tmp_path, nvml=FakeNvml(FakeCard(uuid="GPU-a")), step=WORKING | {"right": False})
    assert seen.ready == "not ready"
    assert state(seen)["device"] == "broken"


def test_a_child_that_dies_keeps_what_it_said(tmp_path: Path) -> None:
    seen = checked(tmp_path, step={"import_s": 3.0, "device": "cuda"}, failure="child ended with -11")
    assert (seen.ready, seen.first_step_s) == ("not ready", None)
    assert seen.first_step.import_s == 3.0
    assert "child ended with -11" in str(next(i for i in seen.missing if i.name == "device").message)


def test_a_missing_framework_takes_as_long_as_it_was_measured_to(tmp_path: Path) -> None:
    seen = checked(tmp_path, lacking=("torch",), step=None)
    assert seen.ready == "not ready"
    assert seen.preparation_s == INSTALLING_S["framework"]
    assert "two cores" in seen.reasons["preparation_s"]


def test_missing_packages_are_named_and_add_their_time(tmp_path: Path) -> None:
    seen = checked(tmp_path, lacking=("simplejpeg",), nvml=FakeNvml(FakeCard(uuid="GPU-a")))
    (item,) = seen.missing
    assert str(item.message) == "not installed: simplejpeg"
    assert seen.preparation_s == INSTALLING_S["packages"] + 4.5


def test_an_older_driver_than_the_frameworks_cuda_is_broken(tmp_path: Path) -> None:
    class Old(FakeNvml):
        def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802
            return 12040

    seen = checked(tmp_path, nvml=Old(FakeCard(uuid="GPU-a")), step=WORKING | {"device": "cpu"})
    assert state(seen)["CUDA"] == "broken"
    assert "12.4" in str(next(i for i in seen.items if i.name == "CUDA").fix)


def test_uc_020_a_containers_shared_memory_is_too_small_before_the_run(tmp_path: Path) -> None:
    seen = checked(tmp_path, shm_bytes=64 * 2**20)
    item = next(i for i in seen.items if i.name == "shared memory")
    assert (item.state, item.found) == ("missing", "64 MiB")
    assert "--shm-size" in str(item.fix)
    assert "Kubernetes" in str(item.fix)


def test_a_full_disk_is_not_ready(tmp_path: Path) -> None:
    seen = checked(tmp_path, free_bytes=2 * GIB)
    assert seen.ready == "not ready"
    assert state(seen)["free space"] == "missing"


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ({}, {"container runtime": "absent"}),
        ({"docker": Ran()}, {"container runtime": "ok", "container toolkit": "missing"}),
        (
            {"docker": Ran(), "nvidia-ctk": Ran(text="NVIDIA Container Toolkit CLI version 1.17.4\ncommit: x\n")},
            {"container runtime": "ok", "container toolkit": "ok"},
        ),
        (
            {"podman": Ran(), "nvidia-container-cli": Ran(failure="nvidia-container-cli ended with 1")},
            {"container runtime": "ok", "container toolkit": "broken"},
        ),
    ],
)
def test_containers_need_a_runtime_and_its_toolkit(
    tmp_path: Path, tools: dict[str, Ran], expected: dict[str, str]
) -> None:
    seen = checked(tmp_path, nvml=FakeNvml(FakeCard(uuid="GPU-a")), tools=tools)
    assert {n: s for n, s in state(seen).items() if n.startswith("container")} == expected


def test_inside_a_container_the_runtime_is_the_hosts_business(tmp_path: Path) -> None:
    seen = checked(tmp_path, files=FILES | {"/.dockerenv": ""}, nvml=FakeNvml(FakeCard(uuid="GPU-a")))
    item = next(i for i in seen.items if i.name == "container runtime")
    assert (item.state, item.found) == ("absent", "docker")


def test_what_is_written_down_is_plain_and_holds_the_time_that_rank_takes(tmp_path: Path) -> None:
    told = json.loads(json.dumps(document(checked(tmp_path, lacking=PACKAGES))))
    assert (told["kind"], told["schema"], told["ready"]) == ("check", 1, "ready")
    assert told["preparation_s"] == 10.5
    assert all(set(item) == {"name", "state", "found", "message", "fix"} for item in told["items"])


def test_a_wrong_product_is_noticed() -> None:
    torch = pytest.importorskip("torch")

    assert matmul_is_right(torch, "cpu")
    assert not matmul_is_right(_Doubled(torch), "cpu")


class _Doubled:
    """A framework whose floating-point numbers are twice what they should be."""

    def __init__(self, torch: object) -> None:
        self._torch = torch

    def arange(self, n: int) -> object:
        return _Number(self._torch.arange(n))  # type: ignore[attr-defined]


class _Number:
    def __init__(self, value: object) -> None:
        self.value = value

    def reshape(self, *shape: int) -> _Number:
        return _Number(self.value.reshape(*shape))  # type: ignore[attr-defined]

    def __mod__(self, n: int) -> _Number:
        return _Number(self.value % n)  # type: ignore[operator]

    def float(self) -> object:
        return self.value.float() * 2  # type: ignore[attr-defined]

    def __matmul__(self, other: _Number) -> object:
        return self.value @ other.value  # type: ignore[operator]


def test_this_very_machine_gets_a_mark_from_a_real_first_step(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    seen = check(tmp_path)
    assert seen.first_step.right is True
    assert seen.first_step_s is not None
    assert seen.ready != "not ready" or any(item.name == "free space" for item in seen.missing)
