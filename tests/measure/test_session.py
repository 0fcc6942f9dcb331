"""A program as a measured child: its output, its end, and the record that stays whatever happens."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwise import meter
from gpuwise.errors import InvalidInput
from gpuwise.measure import session
from gpuwise.measure.energy import HostSample
from gpuwise.measure.failing import died, killed_for_memory, last_words
from gpuwise.measure.record import Cpus, Device, Host, Record, Setup
from gpuwise.measure.session import TRAINING_GRACE_S, Patience, Until
from gpuwise.measure.system import System

HOST = Host(system="Linux", cpus=Cpus(host=8, allowed=8.0), shm_gib=1.0, shm_used_fraction=0.1)
METER = Path(meter.__file__).parent
MARKED = f"import sys, time; sys.path.insert(0, {str(METER)!r})\nfrom meter import Meter\nm = Meter(samples=4)\n"
"""The beginning of a program that marks its steps and imports no framework."""
STEPS = "for _ in range({count}):\n    time.sleep({seconds})\n    m.step()\n"


class FakeWatch:
    """A sampler that sees shared memory 87 % full."""

    asked_s = 0.2
    affinity = (None, None)

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.mains: list[tuple[int, ...]] = []
        self.used: list[tuple[Device, ...]] = []
        self.device_reasons: dict[int, dict[str, str]] = {}
        self.host_reasons: dict[str, str] = {}

    def start(self, pid, devices=(), *, allowed=None):
        self.calls.append(f"start {allowed:g}")

    def watch(self, mains):
        self.mains.append(tuple(mains))

    def use(self, devices):
        self.used.append(tuple(devices))

    def taken(self):
        return (), (HostSample(t_s=time.perf_counter(), shm_used_fraction=0.87),)

    def stop(self):
        self.calls.append("stop")
        return self.taken()


class Ran:
    def __init__(self, record: Record, output: bytes, kept: list[Record]) -> None:
        self.record, self.output, self.kept = record, output.decode(), kept


@pytest.fixture
def run(tmp_path) -> Callable[..., Ran]:
    def ran(code: str, **options) -> Ran:
        output, kept = io.BytesIO(), []
        program = tmp_path / "program.py"
        program.write_text(code)
        command = options.pop("command", (sys.executable, str(program)))
        options.setdefault("output", output)
        record = session.run(
            command, setup=Setup(workload="own"), folder=tmp_path / "run", host=HOST, keep=kept.append, **options
        )
        return Ran(record, output.getvalue(), kept)

    return ran


def gone(pid: int) -> bool:
    """Whether a process has ended, within ten seconds."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


# ---- a program that ends by itself ----


def test_steps_of_a_program_become_its_record_and_its_output_is_passed_on(run):
    ran = run(MARKED + "print('out'); print('err', file=sys.stderr)\n" + STEPS.format(count=20, seconds=0.01))
    assert "out" in ran.output
    assert "err" in ran.output
    assert (ran.record.status, ran.record.ending, ran.record.failure) == ("finished", "program ended", None)
    assert ran.record.pace is not None
    assert ran.record.pace.steps == 20
    assert ran.record.pace.samples_per_step == 4
    assert ran.record.setup.command[0] == sys.executable
    assert ran.kept == [ran.record]


def test_watching_begins_with_the_child_and_ends_with_it(run):
    watch = FakeWatch()
    run("pass", watch=watch)
    assert watch.calls == ["start 8", "stop"]


def test_the_processes_that_step_are_told_to_the_watch_at_every_look(run):
    watch = FakeWatch()
    ran = run(MARKED + "import os; print(os.getpid())\n" + STEPS.format(count=150, seconds=0.01), watch=watch)
    assert (int(ran.output),) in watch.mains


CARDS = tuple(Device(index=i, name="NVIDIA H100", vendor="NVIDIA", backend="cuda", uuid=f"GPU-{i}") for i in range(8))


def test_only_the_devices_that_the_program_uses_are_watched_once_it_has_told_them(run):
    watch = FakeWatch()
    told = (
        "from meter import Writer\nw = Writer.from_environment()\n"
        "w.event('devices', list=[{'backend': 'cuda', 'index': 3}], flush=True)\n"
    )
    ran = run(MARKED + told + STEPS.format(count=150, seconds=0.01), watch=watch, devices=CARDS)
    assert watch.used == [(CARDS[3],)]
    assert ran.record.devices == (CARDS[3],)


@pytest.mark.parametrize("error", [BrokenPipeError, OSError, ValueError])
def test_a_program_goes_on_where_nobody_takes_its_output_any_more(run, error):
    """A pipe holds 64 KiB: who stops reading it stops the program."""

    class Gone(io.BytesIO):
        def write(self, _):
            raise error

    code = MARKED + "print('x' * 500_000)\nprint('last words', file=sys.stderr)\n" + STEPS.format(count=9, seconds=0)
    ran = run(code + "raise ValueError('bad label')\n", output=Gone(), until=Until(minutes=0.5))
    assert (ran.record.ending, ran.record.failure) == ("failed", "ValueError: bad label")


def test_reference_training_can_be_given_a_minute_for_its_checkpoint():
    assert TRAINING_GRACE_S >= 60 > Patience().grace_s


def test_a_program_that_marks_nothing_gives_the_reason(run):
    ran = run("", command=("sh", "-c", "echo hello"))
    assert ran.output == "hello\n"
    assert ran.record.pace is None
    assert "no Python program" in ran.record.reasons["pace"]
    assert ran.record.measurement is None


def test_an_isolated_python_gives_the_reason(run):
    ran = run("", command=(sys.executable, "-I", "-c", "pass"))
    assert "isolated" in ran.record.reasons["pace"]


def test_the_variables_of_the_program_are_its_own_and_two_more(run, tmp_path):
    environ = {"PATH": os.environ["PATH"], "MINE": "1", "PYTHONPATH": "/mine"}
    code = "import os; print(sorted(k for k in os.environ if k[:2] not in ('LC', '__')), os.environ['PYTHONPATH'])"
    ran = run(code, environ=environ)
    assert "'GPUWISE_MARKS', 'MINE', 'PATH', 'PYTHONPATH'" in ran.output
    assert ran.output.strip().endswith("site:/mine")


def test_a_second_session_goes_on_with_the_record_of_the_first(run):
    run(MARKED + STEPS.format(count=20, seconds=0.005))
    ran = run(MARKED + STEPS.format(count=10, seconds=0.005))
    assert ran.record.sessions == 2
    assert ran.record.pace is not None
    assert ran.record.pace.steps == 30


# ---- limits ----


def test_a_program_is_ended_after_so_many_steps(run):
    ran = run(MARKED + STEPS.format(count=100_000, seconds=0.01), until=Until(steps=30))
    assert (ran.record.status, ran.record.ending) == ("finished", "steps")
    assert ran.record.pace is not None
    assert 30 <= ran.record.pace.steps < 1000


def test_a_program_is_ended_after_so_much_time(run):
    ran = run(MARKED + STEPS.format(count=100_000, seconds=0.01), until=Until(minutes=0.02))
    assert (ran.record.status, ran.record.ending) == ("finished", "minutes")


def test_a_program_that_does_not_listen_is_made_to_end(run):
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)\n"
    ran = run(deaf, until=Until(minutes=0.01), patience=Patience(grace_s=0.3))
    assert ran.record.ending == "minutes"


def test_uc_021_a_program_that_hangs_is_ended_with_what_was_measured_and_how_full_shared_memory_is(run):
    ran = run(
        MARKED + STEPS.format(count=20, seconds=0.005) + "time.sleep(1000)\n",
        patience=Patience(stall_s=1.0, first_stall_s=60.0), watch=FakeWatch(),
    )  # fmt: skip
    assert (ran.record.status, ran.record.ending) == ("failed", "stalled")
    assert "no progress for" in (ran.record.failure or "")
    assert ran.record.reasons["ending"] == "no progress for 1 s, shared memory 87 % full"
    assert ran.record.pace is not None
    assert ran.record.pace.steps >= 19


def test_uc_021_a_program_that_never_begins_is_ended_too(run):
    ran = run("import time; time.sleep(1000)", patience=Patience(stall_s=60.0, first_stall_s=0.5))
    assert ran.record.ending == "stalled"
    assert ran.record.pace is None


# ---- failures ----


def test_the_exception_of_a_program_is_the_failure_of_its_record(run):
    ran = run(MARKED + STEPS.format(count=20, seconds=0.002) + "raise ValueError('the label is missing')\n")
    assert (ran.record.status, ran.record.ending) == ("failed", "failed")
    assert ran.record.failure == "ValueError: the label is missing"
    assert ran.record.pace is not None


def test_a_program_killed_from_outside_is_told_so(run):
    ran = run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert (ran.record.status, ran.record.ending) == ("failed", "killed")
    assert "not known" in (ran.record.failure or "")


def test_uc_020_a_bus_error_is_named(run):
    ran = run("import os, signal; os.kill(os.getpid(), signal.SIGBUS)")
    assert ran.record.ending == "failed"
    assert "SIGBUS (bus error)" in (ran.record.failure or "")


@pytest.mark.parametrize("command", [(), ("no-such-program-here",)])
def test_a_command_that_does_not_exist_is_one_clear_error(run, command):
    with pytest.raises(InvalidInput):
        run("", command=command)


def test_a_script_without_python_before_it_is_one_clear_error(run, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print(1)")
    with pytest.raises(InvalidInput, match="gpuwise measure -- python"):
        run("", command=(str(script),))


def test_the_end_that_a_program_tells_itself_counts(run):
    code = (
        MARKED + "from meter import Writer\nw = Writer.from_environment()\n"
        "w.event('end', ending='target', failure=None)\n"
    )
    assert run(code).record.ending == "target"
    ran = run("raise SystemExit(3)")  # the told end belongs to the session before
    assert (ran.record.ending, ran.record.failure) == ("failed", "exit code 3")


@pytest.mark.parametrize(
    ("code", "errors", "kills", "ending"),
    [
        (1, ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"], 0, "out of memory"),
        (1, ["OSError: [Errno 28] No space left on device"], 0, "disk full"),
        (1, ["RuntimeError: unable to write to file </torch_9_1>: No space left on device (28)"], 0, "failed"),
        (1, ["RuntimeError: DataLoader worker is killed by signal: Bus error. out of shared memory"], 0, "failed"),
        (-9, [], 1, "out of memory"),
        (-9, [], 0, "killed"),
        (2, [], 0, "failed"),
        (0, ["ValueError: only printed"], 0, "program ended"),
    ],
)  # fmt: skip
def test_endings_are_told_apart(code, errors, kills, ending):
    assert died(code, errors, kills).ending == ending


def test_the_last_words_are_the_exception_and_not_what_the_launcher_says_after_it():
    lines = [
        "[rank1]: Traceback (most recent call last):", "[rank1]:   File x", "[rank1]: ValueError: bad label 7",
        "W1130 sending SIGTERM", "=====",
    ]  # fmt: skip
    assert last_words(lines) == "ValueError: bad label 7"
    assert last_words(["only words"]) == "only words"
    assert last_words([]) is None


def test_kills_by_the_kernel_are_counted_in_the_own_group_first(tmp_path):
    def put(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    assert killed_for_memory(System(root=tmp_path)) == 0
    put("proc/vmstat", "pgfault 3\noom_kill 7\n")
    assert killed_for_memory(System(root=tmp_path)) == 7
    put("proc/self/cgroup", "0::/job.slice\n")
    put("sys/fs/cgroup/job.slice/memory.events", "low 0\noom 2\noom_kill 1\n")
    assert killed_for_memory(System(root=tmp_path)) == 1


# ---- interruption ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_us_ends_the_program_and_keeps_its_record(run, number, tmp_path):
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    ready = tmp_path / "ready"

    def interrupt() -> None:
        while not ready.exists():
            time.sleep(0.02)
        time.sleep(0.7)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    code = MARKED + f"open({str(ready)!r}, 'w').close()\n" + STEPS.format(count=100_000, seconds=0.005)
    ran = run(code)
    thread.join()
    assert (ran.record.status, ran.record.ending) == ("interrupted", "interrupted")
    assert ran.record.pace is not None
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_the_program_and_its_children_do_not_outlive_us(tmp_path):
    """We are killed so that we cannot do anything any more."""
    pids = tmp_path / "pids"
    program = (
        "import os, subprocess, sys, time; child = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}} done'); time.sleep(1000)\n"
    )
    (tmp_path / "program.py").write_text(program)
    code = (
        "import sys; from pathlib import Path; from gpuwise.measure import session\n"
        "from gpuwise.measure.record import Cpus, Host, Setup\n"
        "session.run((sys.executable, sys.argv[1]), setup=Setup(workload='own'), folder=Path(sys.argv[2]),\n"
        "            host=Host(system='Linux', cpus=Cpus(host=1, allowed=1.0)))\n"
    )
    us = subprocess.Popen((sys.executable, "-c", code, tmp_path / "program.py", tmp_path / "run"))
    while not (pids.exists() and pids.read_text().endswith("done")):
        assert us.poll() is None
        time.sleep(0.05)
    us.kill()
    us.wait()
    assert [gone(int(pid)) for pid in pids.read_text().split()[:2]] == [True, True]


# ---- several processes ----


DDP = """
import time, torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
data = TensorDataset(torch.rand(320, 16), torch.arange(320) % 4)
for x, y in DataLoader(data, batch_size=8, sampler=DistributedSampler(data)):
    optimizer.zero_grad()
    time.sleep(0.03 * dist.get_rank())
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_uc_009_an_unmodified_script_under_torchrun_is_one_job_of_two_ranks(run, tmp_path):
    (tmp_path / "ddp.py").write_text(DDP)
    launcher = (
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(tmp_path / "ddp.py"),
    )
    ran = run("", command=launcher, environ={**os.environ, "OMP_NUM_THREADS": "1"})
    record = ran.record
    assert record.ending == "program ended", ran.output
    assert record.setup.processes == 2
    assert record.pace is not None
    assert record.pace.samples_per_step == 16
    assert record.pace.samples_per_s.value == pytest.approx(16 / record.pace.step_s.value)
    assert [rank.rank for rank in record.ranks] == [0, 1]
    first, second = record.ranks
    assert first.all_reduce_s > 0.02  # it waits for the second, which sleeps 30 ms a step
    assert second.all_reduce_s < first.all_reduce_s / 2
