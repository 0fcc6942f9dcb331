"""Bills from events: what ran, what stood still, and what nobody knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.cost.states import STATES, Event, meaning, spans
from gpuwise.cost.usage import Meter, Promise, usage_bill

DAY = datetime(2026, 11, 30, tzinfo=UTC)
REPORT = DAY + timedelta(hours=22, minutes=58)


def seen(*pairs: tuple[float, str]) -> tuple[Event, ...]:
    return tuple(Event(when=DAY + timedelta(hours=hour), state=state) for hour, state in pairs)


def bill(*pairs: tuple[float, str], until: datetime = REPORT, **more: object):
    return usage_bill([Meter(name="m", events=seen(*pairs), **{"price_per_hour": 4.444, **more})], until)


def ends(made) -> tuple[float, float]:
    (total,) = made.totals
    return total.low, total.high


def test_uc_099_cost_ends_when_the_machine_stops():
    made = bill((8, "running"), (10, "autostop"))
    assert ends(made) == (pytest.approx(8.888), pytest.approx(8.888))
    assert [str(note) for note in made.notes] == [
        "m: disks of a stopped machine are billed, and nobody said their price (disk_price_per_month)"
    ]


def test_uc_099_disks_of_a_stopped_machine_are_billed_on():
    made = bill((8, "running"), (10, "autostop"), (22 + 58 / 60, "stopped"), disk_price_per_month=7.30)
    assert ends(made)[0] == pytest.approx(8.888 + (12 + 58 / 60) * 0.01)
    assert made.unknown == ()


def test_uc_099_whether_disks_were_kept_after_the_last_event_is_unknown():
    made = bill((8, "running"), (10, "autostop"), disk_price_per_month=7.30)
    assert ends(made) == (pytest.approx(8.888), pytest.approx(8.888 + (12 + 58 / 60) * 0.01))
    assert [one.span.kind for one in made.unknown] == ["disk"]


@pytest.mark.parametrize("state", ["failed", "launch failed", "ERROR", "cancelled"])
def test_uc_099_a_failed_launch_costs_nothing(state):
    made = bill((8, "requested"), (8.1, state), nodes=100, price_per_hour=8.80)
    assert ends(made) == (0, 0)
    assert made.unknown == ()
    assert [line.amount for line in made.lines] == [0]


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([(8, "running")], "last seen running"),
        ([(8, "requested")], "what became of it"),
        ([(8, "glowing"), (9, "deleted")], 'nobody knows the state "glowing"'),
        ([(8, "running"), (9, "stopping"), (10, "deleted")], "clouds differ"),
        ([(8, "running"), (9, "requested"), (10, "running"), (11, "deleted")], "requested again"),
        ([(8, "requested"), (9, "deleted")], "whether it ran"),
        ([(8, "running"), (9, "deleted"), (10, "running"), (11, "deleted")], "sees it again"),
        ([(8, "running"), (9, "failed"), (10, "deleted")], "still there"),
        ([(9, "deleted"), (8, "running"), (8, "stopped")], "not in order"),
    ],
)
def test_uc_099_unknown_time_is_named_and_makes_a_range(events, why):
    made = bill(*events)
    low, high = ends(made)
    assert low < high
    assert any(why in str(one.span.why) for one in made.unknown)


def test_a_last_seen_running_machine_is_billed_until_the_report_at_most():
    made = bill((8, "up"), until=DAY + timedelta(hours=10))
    assert ends(made) == (0, pytest.approx(8.888))
    assert made.unknown[0].most == pytest.approx(8.888)


def test_a_machine_that_is_seen_again_was_surely_running_in_between():
    assert ends(bill((8, "up"), (10, "up"), until=DAY + timedelta(hours=10))) == (pytest.approx(8.888),) * 2


def test_events_out_of_order_are_sorted_with_a_word():
    made = bill((10, "deleted"), (8, "running"))
    assert ends(made) == (pytest.approx(8.888),) * 2
    assert "sorted by time" in str(made.notes[0])


def test_nothing_is_billed_after_the_report():
    made = bill((8, "running"), (30, "deleted"), until=DAY + timedelta(hours=9))
    assert ends(made) == (pytest.approx(4.444),) * 2


def test_two_events_of_one_time_hold_in_the_order_of_the_file():
    made = bill((8, "requested"), (8, "running"), (9, "stopped"), (9, "deleted"))
    assert ends(made) == (pytest.approx(4.444),) * 2


def test_sessions_are_rounded_one_by_one_and_the_rounding_has_its_line():
    made = bill((8, "running"), (8.5, "deleted"), (8.5, "requested"), (9, "running"), (9.25, "deleted"),
                billing_step_s=3600.0)  # fmt: skip
    assert ends(made) == (pytest.approx(2 * 4.444),) * 2
    assert {line.kind: line.quantity for line in made.lines} == {"compute": 0.75, "billing step": 1.25}


def test_a_minimum_is_billed_for_a_short_session():
    assert (
        ends(bill((8, "running"), (8 + 10 / 3600, "deleted"), billing_minimum_s=60.0))
        == (pytest.approx(4.444 / 60),) * 2
    )


def test_several_currencies_are_never_added_up():
    machines = [
        Meter(name=code, price_per_hour=1.0, currency=code, events=seen((8, "running"), (9, "deleted")))
        for code in ("USD", "EUR")
    ]
    assert [(t.currency, t.low) for t in usage_bill(machines, REPORT).totals] == [("USD", 1), ("EUR", 1)]


def test_terminated_is_said_to_be_read_as_deleted_where_disks_have_a_price():
    made = bill((8, "running"), (9, "TERMINATED"), disk_price_per_month=10.0)
    assert "read as deleted" in str(made.notes[0])


def test_no_machine_has_no_total():
    assert usage_bill([], REPORT).totals == ()


def test_states_are_known_in_any_spelling():
    assert meaning("LAUNCH_FAILED") == meaning("launch failed") == "failed"
    assert meaning("In Use") == "running"
    assert meaning("") is None


# ---- commitments ----


def test_uc_091_a_commitment_is_settled_hour_by_hour_against_the_machines():
    lab = Meter(name="lab", price_per_hour=2.0, events=seen((0, "running"), (12, "deleted")))
    made = usage_bill([lab], DAY + timedelta(days=1), [Promise(per_hour=1.0, start=DAY)])
    (kept,) = made.kept
    assert (kept.paid, kept.used, kept.wasted, kept.on_demand) == (24, 12, 12, 12)
    assert ends(made) == (36, 36)


def test_a_commitment_at_a_discount_covers_more_use_than_it_costs():
    lab = Meter(name="lab", price_per_hour=2.0, events=seen((0, "running"), (24, "deleted")))
    made = usage_bill([lab], DAY + timedelta(days=1), [Promise(per_hour=1.4, start=DAY, off_fraction=0.3)])
    assert made.kept[0].wasted == pytest.approx(0)
    assert ends(made)[0] == pytest.approx(24 * 1.4)


def test_a_commitment_goes_on_though_the_machine_runs_not_at_all():
    lab = Meter(name="lab", price_per_hour=2.0, events=seen((0, "requested"), (1, "failed")))
    made = usage_bill([lab], DAY + timedelta(hours=3), [Promise(per_hour=1.0, start=DAY)])
    assert ends(made) == (3, 3)


def test_unknown_use_makes_what_a_commitment_covers_a_range():
    lab = Meter(name="lab", price_per_hour=2.0, events=seen((0, "running")))
    made = usage_bill([lab], DAY + timedelta(hours=2), [Promise(per_hour=1.0, start=DAY)])
    assert ends(made) == (2, 4)


# ---- whatever was recorded ----

EVENTS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from([*STATES, "odd", ""])), max_size=8)


@given(EVENTS, st.integers(0, 24))
def test_no_stretch_overlaps_another_and_none_passes_the_report(pairs, hour):
    until = DAY + timedelta(hours=hour)
    found = spans(seen(*pairs), until)
    assert all(one.start < one.end <= until for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@given(EVENTS, st.sampled_from([1.0, 60.0, 3600.0]))
def test_the_range_of_a_bill_never_turns_round_and_its_lines_add_up(pairs, step):
    made = bill(*pairs, disk_price_per_month=7.3, billing_step_s=step)
    low, high = ends(made)
    assert 0 <= low <= high <= 4.444 * (23 + 8 * step / 3600) + 0.24
    assert sum(line.amount for line in made.lines) in (pytest.approx(low), pytest.approx(high))
    assert all(line.amount == line.quantity * line.unit_price for line in made.lines)
