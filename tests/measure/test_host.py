"""What a machine tells of itself: every limit on CPUs and memory counts, nothing missing becomes 0."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import GIB, MEMINFO, MOUNTS, machine

from gpuwise.measure import cgroups
from gpuwise.measure.host import container, cpu_flags, cpu_model, cpus, explained, host
from gpuwise.measure.mounts import is_network

PROC = {"/proc/self/mountinfo": MOUNTS, "/proc/meminfo": MEMINFO, "/proc/self/cgroup": "0::/job\n"}


def test_uc_018_the_cpus_a_job_may_use_are_the_least_that_any_rule_leaves(tmp_path: Path) -> None:
    system = machine(tmp_path, PROC, affinity=4, environ={"SLURM_CPUS_PER_TASK": "4"})
    seen = cpus(system)
    assert (seen.host, seen.allowed) == (192, 4)
    assert seen.rules == {"affinity": 4, "slurm": 4}
    assert explained(seen) == "192 on host, 4 allowed (affinity 4, slurm 4)"


def test_a_quota_of_a_version_2_group_above_the_own_one_counts(tmp_path: Path) -> None:
    files = PROC | {
        "/proc/self/cgroup": "0::/pod/job\n",
        "/sys/fs/cgroup/pod/cpu.max": "250000 100000\n",
        "/sys/fs/cgroup/pod/job/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/pod/job/cpuset.cpus.effective": "0-2,8\n",
    }
    seen = cpus(machine(tmp_path, files, affinity=16))
    assert seen.rules == {"affinity": 16, "cpuset": 4, "quota": 2.5}
    assert seen.allowed == 2.5


def test_version_1_groups_count_though_a_container_sees_only_its_own_folder(tmp_path: Path) -> None:
    files = PROC | {
        "/proc/self/cgroup": "3:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n",
        "/proc/self/mountinfo": "1 0 0:1 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "2 0 0:2 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/cpu/cpu.stat": "nr_periods 200\nnr_throttled 50\nthrottled_time 1\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{3 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.stat": f"inactive_file {1 * GIB}\n",
    }
    system = machine(tmp_path, files, affinity=64)
    seen = host(tmp_path, system=system)
    assert seen.cpus.allowed == 4
    assert cgroups.throttled(system) == (200, 50)
    assert (seen.memory_gib, seen.memory_limit_gib, seen.available_gib) == (200, 8, 6)


@pytest.mark.parametrize("text", ["-1\n", "max 100000\n", "\n"])
def test_no_quota_is_no_rule(tmp_path: Path, text: str) -> None:
    name = "cpu.max" if "max" in text else "cpu.cfs_quota_us"
    system = machine(tmp_path, PROC | {f"/sys/fs/cgroup/job/{name}": text}, affinity=8)
    assert cgroups.cpu_quota(system) is None
    assert cpus(system).allowed == 8


def test_a_memory_limit_as_large_as_a_machine_word_is_none(tmp_path: Path) -> None:
    system = machine(tmp_path, PROC | {"/sys/fs/cgroup/job/memory.max": "9223372036854771712\n"})
    assert host(tmp_path, system=system).memory_limit_gib is None


def test_uc_020_shared_memory_of_a_container_is_told_beside_the_free_memory(tmp_path: Path) -> None:
    small = 64 * 2**20
    system = machine(tmp_path, PROC, usage=lambda p: (small, small // 4) if "shm" in str(p) else (GIB, GIB))
    seen = host(tmp_path, system=system)
    assert seen.shm_gib == 0.0625
    assert seen.shm_used_fraction == 0.75
    assert seen.available_gib is not None
    assert seen.available_gib > 190


def test_without_a_shared_memory_mount_there_is_a_reason_not_a_zero(tmp_path: Path) -> None:
    seen = host(tmp_path, system=machine(tmp_path, PROC | {"/proc/self/mountinfo": "1 0 0:1 / / rw - ext4 d rw\n"}))
    assert seen.shm_gib is None
    assert "/dev/shm" in seen.reasons["shm_gib"]


@pytest.mark.parametrize(
    ("path", "filesystem", "network"),
    [
        ("/mnt/paintings/train", "nfs4", True),
        ("/mnt/my bucket/x.jpg", "fuse.s3fs", True),
        ("/mnt/other", "ext4", False),
    ],
)
def test_uc_016_the_mount_of_the_data_says_whether_they_are_elsewhere(
    tmp_path: Path, path: str, filesystem: str, network: bool
) -> None:
    system = machine(tmp_path, PROC)
    (tmp_path / path.lstrip("/")).mkdir(parents=True)
    seen = host(Path(path), system=system).storage
    assert (seen.filesystem, seen.network, seen.free_gib) == (filesystem, network, 40)


@pytest.mark.parametrize(
    ("filesystem", "network"),
    [
        ("lustre", True),
        ("overlay", False),
        ("fuse.gcsfuse", True),
        ("fuse.sshfs", True),
        ("9p", None),
        ("fuse.x", None),
    ],
)
def test_a_file_system_is_elsewhere_here_or_nobody_knows(filesystem: str, network: bool | None) -> None:
    assert is_network(filesystem) is network


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({"/proc/sys/kernel/osrelease": "5.15.0-microsoft-standard-WSL2\n", "/.dockerenv": ""}, {}, "wsl, docker"),
        ({}, {"SLURM_JOB_ID": "1", "APPTAINER_CONTAINER": "/x.sif"}, "slurm, apptainer"),
        ({"/proc/1/cgroup": "0::/kubepods/pod1\n"}, {}, "kubernetes"),
        ({}, {}, None),
    ],
)
def test_what_a_job_runs_inside_is_named_from_the_outside_in(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], kind: str | None
) -> None:
    assert container(machine(tmp_path, files, environ=environ)) == kind


def test_the_cpu_has_a_name_and_flags(tmp_path: Path) -> None:
    info = "processor\t: 0\nmodel name\t: AMD EPYC  9654\nflags\t\t: fpu avx512_bf16\n\nprocessor\t: 1\n"
    system = machine(tmp_path, {"/proc/cpuinfo": info})
    assert cpu_model(system) == "AMD EPYC 9654"
    assert "avx512_bf16" in cpu_flags(system)


@pytest.mark.parametrize("name", ["Darwin", "Windows", "Linux"])
def test_a_system_that_tells_nothing_gives_reasons_and_no_error(tmp_path: Path, name: str) -> None:
    system = machine(tmp_path, name=name, affinity=None, usage=lambda path: None, cpu_count=8)
    seen = host(tmp_path, system=system) if name != "Darwin" else host(tmp_path, system=_with_sysctl(tmp_path))
    assert seen.cpus.host == 8
    assert seen.memory_gib is None
    assert {"memory_gib", "available_gib", "shm_gib", "filesystem", "free_gib"} <= set(seen.reasons)


def _with_sysctl(tmp_path: Path):  # type: ignore[no-untyped-def]
    from gpuwise.measure.system import Ran

    return machine(
        tmp_path, name="Darwin", affinity=None, usage=lambda path: None, cpu_count=8,
        programs={"sysctl": lambda command: Ran(text="Apple M2\n")},
    )  # fmt: skip


def test_this_very_machine_is_read_without_an_error() -> None:
    seen = host()
    assert 0 < seen.cpus.allowed <= seen.cpus.host
