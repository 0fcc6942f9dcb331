"""Dialects of nvidia-smi and xpu-smi: what is not told is None, what cannot be true is dropped with a note."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import machine

from gpuwise.measure.smi import cell, parse, read, version
from gpuwise.measure.system import Ran

COLUMNS = ("index", "utilization.gpu", "memory.used", "memory.total", "power.draw")


def test_uc_027_bracketed_words_are_nothing_and_two_lines_are_two_devices() -> None:
    text = "0, 45 %, 2300 MiB, 24564 MiB, [N/A]\n1, [Not Supported], [Unknown Error], 24564 MiB, 88.10 W\n"
    first, second = parse(text, COLUMNS)
    assert (first.index, first.busy_fraction, first.power_w) == (0, 0.45, None)
    assert first.used_gib == pytest.approx(2300 / 1024)
    assert (second.index, second.busy_fraction, second.used_gib, second.power_w) == (1, None, None, 88.1)


def test_uc_027_versions_are_compared_by_component_and_not_as_decimals() -> None:
    assert version("418.87.01") == (418, 87, 1)
    assert version("418.87.01") < version("418.110") < version("570.86")


@pytest.mark.parametrize(
    "text", ["", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "ERR!", "-", "not available"]
)
def test_every_way_of_saying_nothing_is_none(text: str) -> None:
    assert cell(text, "%") is None
    assert cell(text, text_wanted=True) is None


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [("45 %", "", 0.45), ("45", "%", 0.45), ("88.10 W", "", 88.1), ("88,10 W", "", 88.1), ("2 GiB", "mib", 2.0)],
)
def test_a_unit_in_the_cell_goes_before_that_of_the_head_in_any_locale(text: str, unit: str, value: float) -> None:
    assert cell(text, unit) == pytest.approx(value)


def test_heads_with_units_name_the_columns() -> None:
    text = "index, name, memory.total [MiB], power.draw [W], driver_version\n0, NVIDIA L4, 23034, 71.5, 550.54.15\n"
    (seen,) = parse(text)
    assert (seen.name, seen.power_w, seen.driver) == ("NVIDIA L4", 71.5, "550.54.15")
    assert seen.memory_gib == pytest.approx(23034 / 1024)


def test_uc_035_blank_and_contradictory_values_of_an_intel_device_are_dropped_with_a_note() -> None:
    head = "DeviceId, GPU Utilization (%), GPU Power (W), GPU Memory Used (MiB), GPU Frequency (MHz)\n"
    asleep, blank = parse(head + "0, N/A, 0.10, 17.52, 0\n1, , , ,\n")
    assert (asleep.busy_fraction, asleep.power_w) == (None, 0.1)
    assert asleep.clock_mhz is None
    assert "sleeps" in asleep.notes["clock_mhz"]
    assert (blank.busy_fraction, blank.power_w, blank.used_gib) == (None, None, None)


def test_uc_035_a_power_range_from_high_to_low_is_dropped() -> None:
    (seen,) = parse("power.min_limit [W], power.max_limit [W]\n1, 0\n")
    assert (seen.power_least_w, seen.power_most_w) == (None, None)
    assert set(seen.notes) == {"power_least_w", "power_most_w"}


def test_more_used_than_there_is_and_a_share_above_one_are_dropped() -> None:
    (seen,) = parse("memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n30000, 24564, 180\n")
    assert (seen.used_gib, seen.busy_fraction) == (None, None)
    assert {"used_gib", "busy_fraction"} <= set(seen.notes)


@given(st.text(max_size=200))
def test_no_text_whatever_raises(text: str) -> None:
    parse(text)
    parse(text, COLUMNS)


def test_an_old_tool_is_asked_again_without_the_field_it_does_not_know(tmp_path: Path) -> None:
    def tool(command: object) -> Ran:
        if "compute_cap" in str(command):
            return Ran(failure='nvidia-smi ended with 2: Field "compute_cap" is not a valid field to query.')
        return Ran(text="index, name\n0, Tesla K80\n")

    assert [r.name for r in read(machine(tmp_path, programs={"nvidia-smi": tool})).readings] == ["Tesla K80"]


def test_a_tool_that_fails_is_a_reason_and_the_other_one_is_asked(tmp_path: Path) -> None:
    broken = {"nvidia-smi": lambda command: Ran(failure="nvidia-smi ended with 9")}
    assert read(machine(tmp_path, programs=broken)).failure == "nvidia-smi ended with 9"
    both = broken | {"xpu-smi": lambda command: Ran(text="DeviceId, GPU Power (W)\n0, 120\n")}
    listing = read(machine(tmp_path, programs=both))
    assert (listing.vendor, listing.readings[0].power_w) == ("Intel", 120)
