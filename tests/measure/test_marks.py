"""Text of marks files → series, phases and events."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.measure import marks, steps
from gpuwise.measure.tail import Tail

SECOND = 10**9


def start(second: float, **more) -> str:
    return json.dumps({"event": "start", "t": int(second * SECOND), **more}) + "\n"


def line(
    second: float, samples: int = 4, *, tokens: int = -1, micro: int = 1, stages: str = "-1 -1 -1 -1 -1 -1 -1"
) -> str:
    return f"{int(second * SECOND)} {samples} {tokens} {micro} {stages}\n"


def lines(begin: float, count: int, every: float, **more) -> str:
    return "".join(line(begin + every * (i + 1), **more) for i in range(count))


def test_nothing_written_is_no_series():
    found = marks.parse({})
    assert found.series == ()
    assert found.sessions == 1


def test_minus_one_is_not_seen_and_nanoseconds_become_seconds():
    text = start(1) + line(3, stages="1000000000 -1 500000000 -1 -1 0 -1")
    (series,) = marks.parse({"0-7.marks": text}).series
    assert series.start_s == 1
    assert series.end_s.tolist() == [3]
    assert (series.wait_s[0], series.forward_s[0], series.optimizer_s[0]) == (1, 0.5, 0)
    assert np.isnan(series.copy_s[0])
    assert np.isnan(series.tokens[0])


def test_a_line_that_was_cut_off_is_passed_over_wherever_it_was_cut():
    whole = start(0) + line(1) + line(2)
    last = line(3, samples=17)
    for cut in range(len(last)):
        (series,) = marks.parse({"0-1.marks": whole + last[:cut]}).series
        assert series.end_s.tolist() == [1, 2]
    (series,) = marks.parse({"0-1.marks": whole + last}).series
    assert series.samples.tolist() == [4, 4, 17]


@given(st.text())
def test_any_text_can_be_parsed(text):
    found = marks.parse({"0-1.marks": text})
    assert len(found.series) <= 1


def test_events_carry_their_rank_and_file_and_come_in_the_order_of_time():
    files = {
        "1-5.marks": start(2, rank=1) + json.dumps({"event": "setup", "t": 5, "model": "x"}) + "\n",
        "0-4.marks": start(1) + "{broken\n" + '{"event": 3, "t": 1}\n' + line(3),
    }
    found = marks.parse(files)
    assert [(e["event"], e["rank"], e["file"]) for e in found.events] == [
        ("setup", 1, "1-5.marks"), ("start", 0, "0-4.marks"), ("start", 1, "1-5.marks"),
    ]  # fmt: skip
    assert found.told("setup")[0]["model"] == "x"


def test_the_rank_that_a_process_tells_itself_counts_more_than_its_files_name():
    text = start(0, rank=2) + line(1)
    assert marks.parse({"0-9.marks": text}).series[0].rank == 2


def test_a_second_process_of_a_rank_later_on_is_a_session_of_its_own():
    first = start(0, unix_ns=1000 * SECOND) + lines(0, 10, 1.0)
    second = start(5, unix_ns=5000 * SECOND) + lines(5, 20, 2.0)  # the machine was restarted: its clock too
    found = marks.parse({"0-99.marks": first, "0-11.marks": second})
    (series,) = found.series
    assert found.sessions == 2
    assert series.session_starts == (0, 10)
    assert series.session_start_s == (0, 5)
    assert len(series.end_s) == 30
    assert series.samples.sum() == 120


def test_steps_after_the_last_checkpoint_count_once():
    first = start(0, unix_ns=1) + lines(0, 130, 1.0)
    resumed = json.dumps({"event": "resume", "t": 500 * SECOND, "from_step": 100}) + "\n"
    second = start(500, unix_ns=10**12) + resumed + lines(500, 50, 1.0)
    found = marks.parse({"0-1.marks": first, "0-2.marks": second})
    (series,) = found.series
    assert found.redone == 30
    assert len(series.end_s) == 150
    assert series.session_starts == (0, 100)


def test_a_checkpoint_from_before_the_last_session_cuts_through_both():
    files = {
        f"0-{i}.marks": start(100 * i, unix_ns=i * 10**12)
        + (json.dumps({"event": "resume", "t": 1, "from_step": begin}) + "\n")
        + lines(100 * i, 10, 1.0)
        for i, begin in enumerate((0, 10, 5))
    }
    (series,) = marks.parse(files).series
    assert len(series.end_s) == 15
    assert series.session_starts == (0, 5, 5)


def test_of_two_processes_of_one_rank_at_one_time_the_busier_counts():
    search = start(0, unix_ns=0) + lines(0, 5, 1.0)
    train = start(1, unix_ns=1 * SECOND) + lines(1, 50, 1.0)
    (series,) = marks.parse({"0-1.marks": search, "0-2.marks": train}).series
    assert len(series.end_s) == 50


def test_uc_005_tokens_of_the_session_are_divided_by_its_own_time():
    """900 M tokens before the restart; then 100 M in 10,000 s are 10,000 a second, not 100,000."""
    first = start(0, unix_ns=1) + lines(0, 100, 900.0, tokens=9_000_000)
    second = start(200_000, unix_ns=10**15) + lines(200_000, 100, 100.0, tokens=1_000_000)
    found = marks.parse({"0-1.marks": first, "0-2.marks": second})
    assert steps.pace(found).tokens_per_s == pytest.approx(10_000, rel=0.01)


def test_a_line_that_comes_in_pieces_is_read_once_it_is_whole(tmp_path: Path):
    text = start(0) + line(1) + line(2, samples=17)
    tail, file = Tail(tmp_path), tmp_path / "0-4711.marks"
    for end in range(1, len(text) + 1):
        file.write_text(text[:end])
        assert tail.look()
    assert not tail.look()
    (series,) = tail.marks().series
    assert (series.end_s.tolist(), series.samples.tolist()) == ([1, 2], [4, 17])
    assert (tail.steps, tail.mains) == (2, (4711,))


def test_what_grows_is_read_as_if_it_had_been_there_at_once(tmp_path: Path):
    texts = {f"{r}-{r + 1}.marks": start(0, rank=r) + lines(0, 50, 1.0, micro=r + 1) for r in range(2)}
    tail = Tail(tmp_path)
    for place in range(0, 2000, 97):
        for name, text in texts.items():
            (tmp_path / name).write_text(text[:place])
        tail.look()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    tail.look()
    at_once = marks.parse(texts)
    assert tail.marks().events == at_once.events
    assert [s.end_s.tolist() for s in tail.marks().series] == [s.end_s.tolist() for s in at_once.series]


def test_marks_that_were_handed_out_stay_as_they_were_when_more_steps_come():
    reader = marks.Reader("0-1.marks")
    reader.add(start(0) + lines(0, 10, 1.0))
    (before,) = marks.joined([reader]).series
    for n in range(10, 500):
        reader.add(line(n + 1, samples=9))
    assert before.end_s.tolist() == [float(n) for n in range(1, 11)]
    assert before.samples.sum() == 40
    assert len(reader) == 500


def test_steps_of_an_earlier_session_are_read_and_are_not_of_this_one(tmp_path: Path):
    (tmp_path / "0-1.marks").write_text(start(0, unix_ns=1) + lines(0, 10, 1.0))
    tail = Tail(tmp_path)
    (tmp_path / "0-2.marks").write_text(start(500, unix_ns=10**12) + lines(500, 3, 1.0))
    tail.look()
    assert len(tail.marks().series[0].end_s) == 13
    assert (tail.steps, tail.mains, tail.new("0-1.marks")) == (3, (2,), False)


def test_a_step_is_kept_in_less_than_150_bytes_and_its_text_not_at_all(tmp_path: Path):
    """A million steps were half a gigabyte as text."""
    count, stages = 40_000, "10000000 -1 30000000 60000000 -1 5000000 -1"
    file = tmp_path / "0-1.marks"
    file.write_text(start(0))
    tracemalloc.start()
    tail = Tail(tmp_path)
    with file.open("a") as out:
        for begin in range(0, count, 1000):
            out.write("".join(line(begin + n + 1, stages=stages) for n in range(1000)))
            out.flush()
            tail.look()
            assert len(tail.marks().series[0].end_s) == begin + 1000
    kept, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept / count < 150


def test_a_number_that_is_none_is_passed_over():
    text = start(0) + line(1) + line(2).replace("4", "--4") + line(3).replace("4", "9" * 400)
    assert marks.parse({"0-1.marks": text}).series[0].end_s.tolist() == [1]


def test_phases_are_told_by_name_and_rank():
    event = {"event": "phase", "t": 9, "name": "validation", "begin": 2 * SECOND, "end": 5 * SECOND}
    found = marks.parse({"3-1.marks": json.dumps(event) + "\n"})
    assert found.phases == (marks.Phase(rank=3, name="validation", begin_s=2.0, end_s=5.0),)
