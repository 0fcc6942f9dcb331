"""What cards reach beyond their data sheets, pooled over kin and sisters."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.scenes import accelerator

from gpuwise.predict.evidence import CURRENT, Observation, Site
from gpuwise.predict.reached import POOLING, Reached, log_evidence
from gpuwise.store import package

CARDS = {
    card.id: card
    for card in (
        accelerator("measured", bandwidth_gb_per_s=2000.0, fp16_tflops=312.0, tdp_w=400.0),
        accelerator("sister", bandwidth_gb_per_s=1900.0, fp16_tflops=300.0, tdp_w=380.0),
        accelerator("stranger", architecture="Turing", bandwidth_gb_per_s=300.0, fp16_tflops=40.0, tdp_w=70.0),
        accelerator("start"),
    )
}


def saw(card: str, residual: float, **changes: object) -> Observation:
    usual = Observation("resnet50", "cnn", Site(card, "amp"), CURRENT, residual, 1.0, foreign=False, shared=False)
    return usual._replace(**changes)


def amp(card: str) -> Site:
    return Site(card, "amp")


def reached(rows: list[Observation], family: str = "cnn") -> Reached:
    return Reached.of(rows, family, CARDS, map(amp, CARDS))


def test_one_row_on_one_card_is_shrunk_by_its_noise() -> None:
    """By hand: the card's own parts over those, the workload's, the era's and the noise (GPML eq. 2.23)."""
    p = POOLING
    own = p.sheet**2 + p.sheet_family**2 + p.architecture**2 + p.card**2 + p.card_family**2
    rest = p.workload**2 + p.workload_arithmetic**2 + p.era_family**2 + p.noise**2
    found = reached([saw("measured", 0.3)])
    assert found.mean[found.nodes[amp("measured")]] == pytest.approx(0.3 * own / (own + rest))
    assert found.level(amp("measured"), CURRENT) == pytest.approx(0.3 * (own + p.era_family**2) / (own + rest))


def test_a_card_without_a_row_gets_what_its_sister_reaches_and_a_stranger_hardly() -> None:
    rows = [saw("measured", 0.3, workload=name) for name in ("resnet50", "ssd")] + [saw("start", 0.0)]
    found = reached(rows)
    measured, sister, stranger = (found.device(amp("start"), amp(c)) for c in ("measured", "sister", "stranger"))
    assert measured.shift > sister.shift > 0.7 * measured.shift
    assert abs(stranger.shift) < 0.5 * measured.shift
    assert measured.sd < sister.sd < stranger.sd
    assert found.sister(amp("sister")) == "measured"


def test_a_noisy_row_is_drawn_towards_its_sisters() -> None:
    alike = [saw("sister", 0.0, workload=name) for name in ("resnet50", "ssd")]
    alone = reached([saw("measured", 0.4)])
    among = reached([saw("measured", 0.4), *alike])
    where = alone.nodes[amp("measured")]
    assert among.mean[where] < alone.mean[where]


def test_another_family_tells_less() -> None:
    rows = [saw("measured", 0.3, family="transformer", workload="bert_base_squad"), saw("start", 0.0)]
    own, other = (reached(rows, family) for family in ("transformer", "cnn"))
    step = own.device(amp("start"), amp("measured")), other.device(amp("start"), amp("measured"))
    assert step[0].shift > step[1].shift > 0
    assert amp("measured") in own.kin
    assert amp("measured") not in other.kin


def test_software_is_told_from_the_card_by_rows_under_both() -> None:
    old = "PyTorch 1.4"
    rows = [saw(card, level, era=era) for card in ("measured", "start") for era, level in ((old, -0.2), (CURRENT, 0.0))]
    step = reached(rows).software("amp", old, CURRENT)
    assert 0.1 < step.shift < 0.2
    assert reached(rows).software("amp", None, CURRENT).shift == 0


LEVELS = st.lists(st.floats(-1, 1), min_size=1, max_size=12)


@settings(deadline=None)
@given(LEVELS)
def test_errors_are_real_and_a_step_there_and_back_is_none(levels: list[float]) -> None:
    cards = list(CARDS)
    found = reached([saw(cards[i % 4], level) for i, level in enumerate(levels)])
    for source in cards:
        for target in cards:
            there, back = found.device(amp(source), amp(target)), found.device(amp(target), amp(source))
            assert there.shift == pytest.approx(-back.shift)
            assert there.sd == pytest.approx(back.sd)
            assert there.sd**2 <= 4 * (POOLING.sheet**2 + POOLING.sheet_family**2 + POOLING.architecture**2 + 0.01)


def test_without_rows_nothing_is_reached_beyond_the_data_sheets() -> None:
    found = reached([])
    assert found.device(amp("start"), amp("measured")).shift == 0
    assert found.device(amp("start"), amp("measured")).sd > 0.05
    assert found.sister(amp("start")) is None


def test_twins_by_data_sheet_are_better_explained_as_alike() -> None:
    """Rows that agree on sisters are likelier under a pooling that has sisters."""
    rows = [saw(card, 0.3, workload=name) for card in ("measured", "sister") for name in ("resnet50", "ssd")]
    apart = replace(POOLING, sheet=1e-3, sheet_family=1e-3, architecture=1e-3, card=0.2)
    assert log_evidence(rows, CARDS, POOLING) > log_evidence(rows, CARDS, apart)


def test_rows_that_a_host_held_back_do_not_compare_cards() -> None:
    """B200: ResNet-50 and SSD run no faster in AMP than in TF32; its BERT rows are kin, those are not."""
    from gpuwise.predict import Evidence

    known = Evidence.of(package.throughput(), package.accelerators(), package.counts())
    assert {("resnet50", "b200"), ("ssd", "b200")} <= known.held_back
    assert not any(card.startswith(("h100", "h200", "a100")) for _, card in known.held_back)
    assert {o.workload for o in known.kin if o.site.accelerator == "b200"} == {"bert_base_squad", "bert_large_squad"}


def test_a_card_measured_in_groups_only_is_kin_too() -> None:
    from gpuwise.predict import Evidence

    known = Evidence.of(package.throughput(), package.accelerators(), package.counts())
    nvl = [o for o in known.kin if o.site.accelerator == "h200-nvl"]
    assert nvl
    assert all(o.shared for o in nvl)
    assert exp(max(abs(o.residual) for o in nvl)) < exp(log(2))
