"""A table that the predictor has never seen: what is predicted from what, and how it is scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.scoring import by_sheet

from gpuwise.errors import Message
from gpuwise.estimate import Estimate
from gpuwise.predict.against import Claim, Scored, cells, score
from gpuwise.predict.naive import naive
from gpuwise.predict.plausible import doubt, impossible, inverse, sparse
from gpuwise.predict.roofline import Work
from gpuwise.predict.setting import Reading, Setting
from gpuwise.store import package

CARDS = package.accelerators()
RESNET = Work(gmacs=4.1, activations_m=11.1, parameters_m=25.6)
V100, A100 = "v100-sxm2-16gb", "a100-sxm4-40gb"


def setting(card: str, **changes: object) -> Setting:
    """A network in AMP at batch 64 on one card unless changed."""
    usual = Setting(workload="net", family="cnn", accelerator=CARDS[card], precision="amp", batch=64)
    return replace(usual, **changes)  # type: ignore[arg-type]


def claim(
    role: str, *cards: str, rate: float | None = 100.0, group: str = "1", line: int = 2, **changes: object
) -> Claim:
    return Claim(
        line=line,
        group=group,
        role=role,  # type: ignore[arg-type]
        name="/".join(cards),
        workload="net",
        settings=tuple(setting(card, **changes) for card in cards),
        samples_per_s=rate,
    )


def scored(*claims: Claim) -> Scored:
    return score(claims, by_sheet, frozenset())


def test_data_sheets_say_of_a_v100_and_an_a100_what_their_rates_do() -> None:
    said = naive(setting(A100), [Reading(setting=setting(V100), samples_per_s=100.0)])
    assert said["peak"] == pytest.approx(249.6)
    assert said["bandwidth"] == pytest.approx(172.8, rel=2e-3)
    assert said["geometric_mean"] == pytest.approx(207.7, rel=2e-3)


def test_a_ratio_counts_devices_and_several_readings_by_their_geometric_mean() -> None:
    readings = [
        Reading(setting=setting(V100, accelerators=n), samples_per_s=rate) for n, rate in ((2, 200.0), (1, 400.0))
    ]
    said = naive(setting(V100, accelerators=4), readings)
    assert said["peak"] == pytest.approx(4 * 200.0)


def test_no_ratio_is_made_of_nothing() -> None:
    assert naive(setting(A100), []) == {}


def test_a_row_is_predicted_from_the_given_rows_of_its_own_group_and_from_no_other() -> None:
    asked: list[Sequence[Reading]] = []

    def answer(settings: Sequence[Setting], given: Sequence[Reading]) -> list[Estimate | Message]:
        asked.append(given)
        return by_sheet(settings, given)

    rows = (
        claim("given", V100, rate=100.0),
        claim("predict", A100, rate=200.0),
        claim("predict", "t4", rate=50.0),
        claim("given", "t4", rate=7.0, group="2"),
        claim("predict", V100, rate=20.0, group="2"),
    )
    score(rows, answer, frozenset())
    assert [[r.samples_per_s for r in given] for given in asked] == [[100.0], [7.0]]


def test_errors_intervals_and_the_summary_are_those_of_the_rows() -> None:
    told = scored(claim("given", V100, rate=100.0), claim("predict", A100, rate=200.0, line=3))
    (row,) = told.rows
    assert row.error_fraction == pytest.approx(207.7 / 200 - 1, rel=0.05)
    assert row.predicted is not None
    assert row.predicted.low < 200 < row.predicted.high
    assert told.summary.mape_percent == pytest.approx(100 * row.error_fraction)
    assert (told.summary.n, told.summary.coverage_percent, told.given) == (1, 100.0, 1)
    assert told.summary.naive["peak"].mape_percent == pytest.approx(24.8, rel=1e-3)


def test_a_refusal_is_counted_and_the_other_rows_go_on() -> None:
    refused = replace(claim("predict", rate=10.0), refused=Message("no such GPU"))
    told = scored(claim("given", V100), refused, claim("predict", A100, rate=200.0), claim("predict", A100, group="2"))
    assert [str(row.reason) for row in told.rows if row.reason] == ["no such GPU", "nothing was measured"]
    assert (told.summary.n, told.summary.refused) == (1, 2)


def test_a_row_without_a_measured_rate_is_predicted_and_not_scored() -> None:
    told = scored(claim("given", V100), claim("predict", A100, rate=None))
    assert told.rows[0].predicted is not None
    assert told.rows[0].error_fraction is None
    assert told.summary.n == 0


def test_a_name_that_leaves_the_card_open_is_a_range_over_all_of_them() -> None:
    told = scored(claim("given", V100), claim("predict", "a100-pcie-80gb", A100), claim("predict", "a100-pcie-80gb"))
    both, one = (row.predicted for row in told.rows)
    assert both is not None
    assert one is not None
    assert both.low < one.low
    assert both.high >= one.high
    assert "a100-pcie-80gb, a100-sxm4-40gb" in " ".join(map(str, told.rows[0].remarks))
    assert told.rows[0].naive == ()


def test_a_given_name_that_leaves_the_card_open_is_worked_through_for_each() -> None:
    told = scored(claim("given", V100, "t4"), claim("predict", A100))
    sure = scored(claim("given", "t4"), claim("predict", A100))
    assert told.rows[0].predicted is not None
    assert sure.rows[0].predicted is not None
    assert told.rows[0].predicted.high == pytest.approx(sure.rows[0].predicted.high)
    assert told.rows[0].predicted.low < sure.rows[0].predicted.low


def test_given_names_that_leave_too_much_open_are_left_out_and_said() -> None:
    every = ("v100-sxm2-16gb", "v100-sxm2-32gb", "v100-pcie-16gb", "v100-pcie-32gb", "v100-sxm3-32gb")
    told = scored(claim("given", *every), claim("given", *every), claim("given", "t4"), claim("predict", A100))
    assert (told.given, len(told.left_out)) == (2, 1)
    assert "leave open too many cards" in str(told.left_out[0].reason)


def test_rows_whose_workload_and_card_the_tables_have_are_counted_as_seen() -> None:
    bundled = package.throughput()
    there = next(r for r in bundled if r.workload == "resnet50" and r.accelerator == A100 and r.precision == "amp")
    known = claim("predict", A100, workload="resnet50", accelerators=there.accelerators)
    rows = [claim("given", V100), known, claim("predict", A100)]
    assert score(rows, by_sheet, cells(bundled)).seen == 1


# ---- user case 59 ----


def test_uc_059_other_batch_other_precision_and_missing_software_are_listed_and_the_range_is_wider() -> None:
    reference = claim("given", V100, rate=350.0, precision="fp32", batch=32, software="ngc-pytorch-1.13")
    unlike = claim("predict", A100, rate=2450.0, precision="amp", batch=256, software=None)
    row = scored(reference, unlike).rows[0]
    said = " | ".join(map(str, row.remarks))
    assert "measured in fp32 only, and asked in amp" in said
    assert "measured at batch 32, and asked at 256" in said
    assert "the software is not stated in every row" in said
    alike = replace(reference, settings=(setting(V100, batch=256, software="ngc-pytorch-1.13"),))
    asked = replace(unlike, settings=(setting(A100, batch=256, software="ngc-pytorch-1.13"),))
    comparable = scored(alike, asked).rows[0]
    assert comparable.remarks == ()
    assert row.predicted is not None
    assert comparable.predicted is not None
    assert row.predicted.high / row.predicted.low > comparable.predicted.high / comparable.predicted.low


def test_uc_059_rows_with_other_software_or_another_memory_format_say_so() -> None:
    row = scored(
        claim("given", V100, software="ngc-pytorch-1.4", memory_format="nchw"),
        claim("predict", A100, software="ngc-pytorch-2.3", memory_format="nhwc"),
    ).rows[0]
    assert [str(remark) for remark in row.remarks] == [
        "measured with ngc-pytorch-1.4, and asked with ngc-pytorch-2.3",
        "measured in another memory format than nhwc",
    ]


# ---- what cannot be ----


@pytest.mark.parametrize(
    ("rate", "says"),
    [
        (800.0, None),
        (60_000.0, "what the data sheet of Tesla V100"),
        (0.2, "less than a hundredth of what Tesla V100"),
        (30.0, None),
    ],
)
def test_a_rate_that_no_such_device_reaches_is_doubted(rate: float, says: str | None) -> None:
    found = doubt(Reading(setting=setting(V100, work=RESNET), samples_per_s=rate))
    assert (says is None and found is None) or (says is not None and says in str(found))


def test_inference_may_be_three_times_as_fast_as_training_and_several_devices_as_many_times() -> None:
    fast = Reading(setting=setting(V100, work=RESNET), samples_per_s=20_000.0)
    assert doubt(fast) is not None
    assert doubt(replace(fast, setting=setting(V100, work=RESNET, mode="infer"))) is None
    assert doubt(replace(fast, setting=setting(V100, work=RESNET, accelerators=8))) is None


def test_a_network_that_nobody_counted_is_not_doubted() -> None:
    assert doubt(Reading(setting=setting(V100), samples_per_s=1e9)) is None


def test_no_measured_rate_of_the_bundle_is_doubted() -> None:
    counts = package.counts()
    readings = [
        Reading(
            setting=setting(
                r.accelerator,
                workload=r.workload,
                accelerators=r.accelerators,
                precision=r.precision,
                batch=r.batch_per_accelerator,
                work=counts.get(r.workload),
            ),
            samples_per_s=r.samples_per_s,
        )
        for r in package.throughput()
    ]
    assert [str(why) for reading in readings if (why := doubt(reading))] == []


def test_a_doubted_row_is_refused_and_names_its_column() -> None:
    told = scored(claim("given", V100), claim("predict", A100, rate=1e6, work=RESNET))
    assert str(told.rows[0].reason).startswith("samples_per_s: 1,000,000 samples/s is")


def test_a_doubted_given_row_is_not_predicted_from() -> None:
    told = scored(claim("given", V100, rate=1e6, work=RESNET), claim("predict", A100))
    assert "nothing was measured" in str(told.rows[0].reason)
    assert str(told.left_out[0].reason).startswith("samples_per_s")


@pytest.mark.parametrize(
    ("name", "value", "sound"),
    [
        ("gmacs", 4.1, True), ("gmacs", 0.0, False), ("gmacs", -1.0, False), ("gmacs", 4.1e9, False),
        ("activations_m", 11.1, True), ("activations_m", 1.1e7, False),
        ("parameters_m", 25.6, True), ("parameters_m", 25_557_032.0, False), ("parameters_m", float("nan"), False),
    ],
)  # fmt: skip
def test_a_count_that_no_network_has_is_impossible(name: str, value: float, sound: bool) -> None:
    assert (impossible(name, value) is None) == sound


def test_a_million_parameters_in_units_do_not_go_with_the_work_of_a_small_network() -> None:
    assert sparse(0.3, 1_200_000.0, "cnn") is not None
    assert sparse(0.3, 1.2, "cnn") is None
    assert sparse(0.3, 1_200_000.0, "recommendation") is None
    assert sparse(None, 1_200_000.0, "cnn") is None


def test_rates_that_fall_where_devices_are_faster_are_times() -> None:
    rates = [
        (setting(card), rate) for card, rate in (("t4", 60.0), (V100, 130.0), (A100, 260.0), ("h100-sxm5-80gb", 500.0))
    ]
    times = [(where, 64_000 / rate) for where, rate in rates]
    assert inverse([times])
    assert not inverse([rates])
    assert not inverse([times[:3]]), "three rows may be chance"
    assert not inverse([[(where, 100.0) for where, _ in rates]]), "bound by their host"


def test_no_workload_of_the_bundle_looks_like_times() -> None:
    groups: dict[tuple[str, str, str], list[tuple[Setting, float]]] = {}
    for r in package.throughput():
        there = setting(r.accelerator, precision=r.precision, accelerators=r.accelerators)
        groups.setdefault((r.workload, r.precision, r.software or ""), []).append((there, r.samples_per_s))
    assert [key for key, rows in groups.items() if inverse([rows])] == []
