"""Which devices a job uses: by the framework, tied to the physical ones, in every spelling, and never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import GIB, MEMINFO, NOT_SUPPORTED, UNKNOWN, FakeCard, FakeError, FakeNvml, FakeSlice, machine, torch_with

from gpuwise.measure.devices import UNUSED, devices, native_bf16, words
from gpuwise.measure.system import Ran
from gpuwise.measure.visible import Entry, entries

PARENT = "GPU-8f6d1c00-0000-0000-0000-000000000002"
NEW = "MIG-6fe6a5f0-0000-0000-0000-000000000001"


def eight(*, name: str = "NVIDIA A100-SXM4-40GB") -> FakeNvml:
    return FakeNvml(*(FakeCard(uuid=f"GPU-0000000{i}", name=name, bus=16 + i) for i in range(8)))


def props(**given: object) -> dict[str, object]:
    return {
        "name": "NVIDIA A100-SXM4-40GB",
        "total_memory": 40 * GIB,
        "major": 8,
        "minor": 0,
        "pci_domain_id": 0,
        **given,
    }


@pytest.mark.parametrize("how", [{"uuid": "00000004"}, {"uuid": "", "pci_bus_id": 20, "pci_device_id": 0}])
def test_uc_028_a_device_of_the_framework_is_the_physical_one_of_its_uuid_or_bus(
    tmp_path: Path, how: dict[str, object]
) -> None:
    found = devices(torch=torch_with(props(**how)), nvml=eight(), system=machine(tmp_path))
    assert [d.uuid for d in found] == ["GPU-00000004"]
    assert found[0].power_limit_w == 400


def test_uc_028_a_device_that_cannot_be_tied_has_no_power_and_says_so(tmp_path: Path) -> None:
    (found,) = devices(torch=torch_with(props(uuid="99999999")), nvml=eight(), system=machine(tmp_path))
    assert (found.uuid, found.power_limit_w) == (None, None)
    assert "cannot be tied" in found.reasons["power_limit_w"]


def test_uc_028_without_a_framework_the_list_of_visible_devices_gives_the_order(tmp_path: Path) -> None:
    system = machine(tmp_path, environ={"CUDA_VISIBLE_DEVICES": "4,5"})
    assert [(d.index, d.uuid) for d in devices(torch=None, nvml=eight(), system=system)] == [
        (0, "GPU-00000004"),
        (1, "GPU-00000005"),
    ]


def test_numbers_of_unlike_cards_are_certain_only_by_bus_order(tmp_path: Path) -> None:
    nvml = FakeNvml(FakeCard(uuid="GPU-a", name="NVIDIA T4"), FakeCard(uuid="GPU-b", name="NVIDIA H100 PCIe", bus=2))
    environ = {"CUDA_VISIBLE_DEVICES": "0"}
    (unsure,) = devices(torch=None, nvml=nvml, system=machine(tmp_path, environ=environ))
    (sure,) = devices(
        torch=None, nvml=nvml, system=machine(tmp_path, environ=environ | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    )
    assert (unsure.uuid, sure.uuid) == (None, "GPU-a")
    assert "CUDA_DEVICE_ORDER" in unsure.reasons["uuid"]


def test_unlike_cards_that_are_all_visible_are_numbered_with_certainty_only_by_bus_order(tmp_path: Path) -> None:
    """CUDA numbers the H100 first, NVML the T4: nobody reads the power of the other card."""
    nvml = FakeNvml(FakeCard(uuid="GPU-a", name="NVIDIA T4"), FakeCard(uuid="GPU-b", name="NVIDIA H100 PCIe", bus=2))
    unsure = devices(torch=None, nvml=nvml, system=machine(tmp_path))
    sure = devices(torch=None, nvml=nvml, system=machine(tmp_path, environ={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}))
    alike = devices(torch=None, nvml=eight(), system=machine(tmp_path))
    assert [(d.uuid, d.power_limit_w) for d in unsure] == [(None, None), (None, None)]
    assert [d.uuid for d in sure] == ["GPU-a", "GPU-b"]
    assert [d.uuid for d in alike] == [f"GPU-0000000{i}" for i in range(8)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (NEW, (Entry(kind="slice", uuid=NEW),)),
        ("MIG-" + PARENT + "/7/0", (Entry(kind="slice", uuid=PARENT, gpu_instance=7, compute_instance=0),)),
        ("GPU-8f6d1c00", (Entry(kind="gpu", uuid="GPU-8f6d1c00"),)),
        ("0,1", (Entry(kind="index", index=0), Entry(kind="index", index=1))),
        (" 0 , -1, 1", (Entry(kind="index", index=0),)),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        (None, None),
    ],
)
def test_uc_029_every_spelling_of_the_visible_devices_is_read(text: str | None, found: object) -> None:
    assert entries(text) == found


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [(NEW, [NEW]), ("MIG-" + PARENT + "/7/0", [NEW]), ("GPU-8f6d1c00", [NEW]), ("-1", [None]), ("NoDevFiles", [None])],
)
def test_uc_029_a_slice_is_found_by_both_forms_and_called_a_slice(
    tmp_path: Path, visible: str, uuids: list[str | None]
) -> None:
    nvml = FakeNvml(FakeCard(uuid=PARENT, name="NVIDIA H100 80GB HBM3", slices=[FakeSlice(uuid=NEW)]))
    found = devices(torch=None, nvml=nvml, system=machine(tmp_path, environ={"CUDA_VISIBLE_DEVICES": visible}))
    assert [d.uuid for d in found] == uuids
    if uuids != [None]:
        assert [str(w) for w in words(found)] == ["1 MIG slice, 1g.10gb of H100"]
        assert (found[0].memory_gib, found[0].power_limit_w) == (10, None)
        assert "MIG" in found[0].reasons["power_limit_w"]


def test_a_slice_that_the_framework_sees_is_tied_by_its_own_uuid(tmp_path: Path) -> None:
    nvml = FakeNvml(FakeCard(uuid=PARENT, slices=[FakeSlice(uuid="MIG-aa"), FakeSlice(uuid="MIG-bb")]))
    torch = torch_with(props(name="NVIDIA H100 80GB HBM3 MIG 1g.10gb", uuid="bb", major=9))
    (found,) = devices(torch=torch, nvml=nvml, system=machine(tmp_path))
    assert (found.uuid, found.slice, found.name) == ("MIG-bb", "1g.10gb", "NVIDIA H100 80GB HBM3")


def test_uc_031_the_framework_decides_that_a_device_is_amds_whatever_tools_are_there(tmp_path: Path) -> None:
    mi300x = {"name": "AMD Instinct MI300X", "total_memory": 192 * GIB, "gcnArchName": "gfx942:sramecc+"}
    mi300x |= {"pci_domain_id": 0, "pci_bus_id": 0xC1, "pci_device_id": 0}
    system = machine(tmp_path, programs={"nvidia-smi": lambda command: Ran(failure="nvidia-smi ended with 9")})
    (found,) = devices(torch=torch_with(mi300x, hip="6.2", cuda=None), nvml=eight(), system=system)
    assert (found.vendor, found.backend, found.name) == ("AMD", "rocm", "AMD Instinct MI300X")
    assert (found.uuid, found.power_limit_w, found.native_bf16) == ("0000:c1:00.0", None, True)


def test_uc_032_a_gpu_that_the_framework_cannot_use_is_told_with_the_reason(tmp_path: Path) -> None:
    nvml = FakeNvml(FakeCard(uuid="GPU-a", name="NVIDIA GeForce RTX 3090"))
    (found,) = devices(torch=torch_with(cuda=None), nvml=nvml, system=machine(tmp_path))
    assert found.backend == "cpu"
    assert found.reasons[UNUSED] == (
        "a GPU is present (NVIDIA GeForce RTX 3090) but the job uses the CPU: "
        "torch 2.14.1 is built without CUDA and ROCm"
    )


def test_uc_032_a_card_without_its_driver_is_seen_on_the_bus(tmp_path: Path) -> None:
    files = {
        "/sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
        "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
    }
    missing = FakeNvml(init=FakeError("NVML Shared Library Not Found"))
    (found,) = devices(torch=torch_with(), nvml=missing, system=machine(tmp_path, files))
    assert "NVIDIA accelerator" in found.reasons[UNUSED]
    assert "NVML Shared Library Not Found" in found.reasons[UNUSED]


def test_uc_032_hidden_devices_are_named_as_the_reason(tmp_path: Path) -> None:
    system = machine(tmp_path, environ={"CUDA_VISIBLE_DEVICES": ""})
    (found,) = devices(torch=torch_with(available=False), nvml=eight(), system=system)
    assert "CUDA_VISIBLE_DEVICES='' hides every device" in found.reasons[UNUSED]


def test_a_machine_without_any_accelerator_has_the_cpu_and_no_complaint(tmp_path: Path) -> None:
    info = "model name\t: Intel(R) Xeon(R) Gold 6430\nflags\t\t: amx_bf16\n"
    (found,) = devices(torch=torch_with(), nvml=None, system=machine(tmp_path, {"/proc/cpuinfo": info}))
    assert (found.name, found.vendor, found.backend, found.native_bf16) == (
        "Intel(R) Xeon(R) Gold 6430", "Intel", "cpu", True,
    )  # fmt: skip
    assert UNUSED not in found.reasons


def test_uc_025_calls_that_fail_one_by_one_leave_the_others(tmp_path: Path) -> None:
    broken = {"nvmlDeviceGetCudaComputeCapability": UNKNOWN, "nvmlDeviceGetEnforcedPowerLimit": NOT_SUPPORTED}
    nvml = FakeNvml(FakeCard(uuid="GPU-a", name="NVIDIA GeForce RTX 4090", values=broken))
    (found,) = devices(torch=None, nvml=nvml, system=machine(tmp_path))
    assert (found.name, found.memory_gib) == ("NVIDIA GeForce RTX 4090", 40)
    assert (found.capability, found.power_limit_w, found.native_bf16) == (None, None, None)
    assert "Unknown Error" in found.reasons["capability"]
    assert "Not Supported" in found.reasons["power_limit_w"]


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("x"), AttributeError("nvmlInit"), FakeError("code 999")])
def test_whatever_the_library_raises_at_its_start_is_a_reason(tmp_path: Path, error: Exception) -> None:
    (found,) = devices(torch=torch_with(props(uuid="00000004")), nvml=FakeNvml(init=error), system=machine(tmp_path))
    assert found.backend == "cuda"
    assert found.uuid is None
    assert "cannot be tied" in found.reasons["uuid"]


def test_uc_026_a_board_that_shares_its_memory_has_the_hosts(tmp_path: Path) -> None:
    thor = FakeCard(uuid="GPU-a", name="NVIDIA Thor", values={"nvmlDeviceGetMemoryInfo": NOT_SUPPORTED})
    system = machine(tmp_path, {"/proc/meminfo": f"MemTotal: {128 * 2**20} kB\n"})
    found = devices(torch=None, nvml=FakeNvml(thor), system=system)
    assert (found[0].unified, found[0].memory_gib) == (True, 128)
    assert "not comparable" in found[0].reasons["memory_gib"]
    assert [str(w) for w in words(found)] == ["1 Thor, unified memory 128 GiB (shared)"]


def test_a_discrete_card_whose_memory_is_not_told_is_not_called_shared(tmp_path: Path) -> None:
    card = FakeCard(uuid="GPU-a", values={"nvmlDeviceGetMemoryInfo": NOT_SUPPORTED})
    (found,) = devices(torch=None, nvml=FakeNvml(card), system=machine(tmp_path, {"/proc/meminfo": MEMINFO}))
    assert (found.unified, found.memory_gib) == (False, None)


@pytest.mark.parametrize(
    ("capability", "native"),
    [("7.5", False), ("7.0", False), ("8.0", True), ("8.9", True), ("10.0", True), (None, None)],
)
def test_uc_037_bfloat16_is_native_from_capability_8(capability: str | None, native: bool | None) -> None:
    assert native_bf16(capability) is native


def test_uc_035_an_intel_device_comes_from_its_framework(tmp_path: Path) -> None:
    from types import SimpleNamespace

    xpu = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_properties=lambda i: SimpleNamespace(
            name="Intel(R) Data Center GPU Max 1550", total_memory=64 * GIB
        ),
    )
    torch = SimpleNamespace(version=SimpleNamespace(cuda=None, hip=None), xpu=xpu)
    (found,) = devices(torch=torch, nvml=None, system=machine(tmp_path))
    assert (found.vendor, found.backend, found.memory_gib) == ("Intel", "xpu", 64)


def test_apples_devices_share_the_hosts_memory(tmp_path: Path) -> None:
    from types import SimpleNamespace

    mps = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: True))
    torch = SimpleNamespace(version=SimpleNamespace(cuda=None, hip=None), backends=mps)
    programs = {"sysctl": lambda command: Ran(text="Apple M2 Max\n")}
    (found,) = devices(torch=torch, nvml=None, system=machine(tmp_path, name="Darwin", programs=programs))
    assert (found.name, found.backend, found.unified, found.memory_gib) == ("Apple M2 Max", "mps", True, None)


def test_a_tpu_is_known_by_its_runtime(tmp_path: Path) -> None:
    system = machine(tmp_path, environ={"PJRT_DEVICE": "TPU", "TPU_ACCELERATOR_TYPE": "v5litepod-4"})
    (found,) = devices(torch=torch_with(), nvml=None, system=system)
    assert (found.name, found.vendor, found.backend) == ("TPU v5litepod-4", "Google", "xla")


def test_where_no_library_answers_the_tool_on_the_path_does(tmp_path: Path) -> None:
    text = "index, uuid, name, driver_version, compute_cap\n0, GPU-a, NVIDIA L4, 550.54.15, 8.9\n"
    system = machine(tmp_path, programs={"nvidia-smi": lambda command: Ran(text=text)})
    (found,) = devices(torch=None, nvml=None, system=system)
    assert (found.name, found.uuid, found.driver, found.native_bf16) == ("NVIDIA L4", "GPU-a", "550.54.15", True)


def test_this_very_machine_has_at_least_one_device() -> None:
    assert devices()
