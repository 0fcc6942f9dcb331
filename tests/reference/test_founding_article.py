"""The claims of the founding article of 2021, recomputed from frozen offers: verdicts, intervals and what is named.

How claims are read is said in `benchmarks.founding.claims`. Measured ratios are worked out here from the bundled table,
not from the product's functions.
"""

from __future__ import annotations

import csv
from importlib import resources

import pytest
from benchmarks.founding import answers, report, tables
from benchmarks.founding.answers import CASES, COLAB, COLAB_FREE, DAY, K80, ONE, T4, THREE, V100, VDS, Case
from benchmarks.founding.claims import CLAIMS, SLOWER, Verdict
from benchmarks.founding.page import page
from benchmarks.founding.report import Finding

from gpuwise import api
from gpuwise.estimate import Estimate
from gpuwise.request import RankRequest
from gpuwise.store import package

YES, NO, OPEN = Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.UNDECIDABLE
OFFERS = list(csv.DictReader(answers.OFFERS.read_text("utf-8").splitlines()))
MEASURED = list(
    csv.DictReader((resources.files("gpuwise") / "data" / "throughput.csv").read_text("utf-8").splitlines())
)


def found(claim: str, what: str) -> list[Finding]:
    """One ratio, in the order light fp32, heavy fp32, light amp, heavy amp."""
    same = [f for f in report.findings() if (f.claim, f.what) == (claim, what)]
    assert [(f.case.job, f.case.precision) for f in same] == [(case.job, case.precision) for case in CASES]
    return same


def measured(network: str, card: str, batch: int) -> float:
    """samples/s of one card in fp32, by the bundled table."""
    key = {"workload": network, "accelerator": card, "batch_per_accelerator": str(batch), "accelerators": "1"}
    (row,) = [r for r in MEASURED if r["precision"] == "fp32" and all(r[name] == key[name] for name in key)]
    return float(row["samples_per_s"])


@pytest.mark.parametrize(
    ("claim", "what", "verdicts"),
    [
        ("k80", "Speed of GTX 1080 Ti over K80", [YES, YES, YES, YES]),
        ("k80", "Cost on K80 over GTX 1080 Ti, 200 h a month", [YES, YES, YES, YES]),
        ("k80", "Cost on K80 over GTX 1080 Ti, 730 h a month", [YES, YES, YES, YES]),
        ("t4", "Speed of T4 over GTX 1080 Ti", [NO, NO, YES, OPEN]),
        ("t4", "Speed of V100 over T4", [YES, YES, YES, YES]),
        ("tenfold", "Cost on V100 over GTX 1080 Ti, 200 h a month", [NO, NO, NO, NO]),
        ("tenfold", "Cost on V100 over GTX 1080 Ti, 400 h a month", [YES, YES, OPEN, OPEN]),
        ("tenfold", "Cost on V100 over GTX 1080 Ti, 730 h a month", [NO, NO, OPEN, OPEN]),
        ("tenfold", "Speed of V100 over GTX 1080 Ti", [NO, OPEN, OPEN, OPEN]),
        ("tenfold", "Speed of T4 over GTX 1080 Ti", [NO, NO, NO, NO]),
        ("more", "Speed of three GTX 1080 Ti over V100", [YES, YES, OPEN, OPEN]),
        ("more", "Speed of three GTX 1080 Ti over V100, scans, slow loader", [NO, NO, NO, NO]),
        ("more", "Cost on V100 over three GTX 1080 Ti, 200 h a month", [YES, YES, YES, YES]),
        ("use", "Short: a month's rent over one training on T4", [YES, YES, YES, YES]),
        ("use", "Short: a month's rent over one training on V100", [YES, YES, YES, YES]),
        ("use", "Cost on T4 over GTX 1080 Ti, 200 h a month", [YES, YES, YES, YES]),
        ("use", "Cost on T4 over GTX 1080 Ti, 730 h a month", [YES, YES, YES, YES]),
        ("use", "Cost on Colab's paid T4 over GTX 1080 Ti, 200 h a month", [NO, NO, NO, NO]),
        ("use", "Cost on Colab's paid T4 over GTX 1080 Ti, 400 h a month", [YES, YES, NO, OPEN]),
        ("use", "Cost on Colab's paid T4 over GTX 1080 Ti, 730 h a month", [YES, YES, YES, YES]),
        ("feed", "GTX 1080 Ti, 4 vCPUs, scans, slow loader", [YES, OPEN, YES, OPEN]),
        ("feed", "three GTX 1080 Ti, 4 vCPUs, scans, slow loader", [YES, YES, YES, YES]),
        ("feed", "K80, 4 vCPUs, scans, fast loader", [NO, NO, NO, NO]),
    ],
)
def test_the_verdict_on(claim: str, what: str, verdicts: list[Verdict]) -> None:
    assert [f.verdict for f in found(claim, what)] == verdicts


def test_every_claim_is_judged_for_each_job_in_each_precision() -> None:
    judged = {(f.claim, f.case.job, f.case.precision) for f in report.findings() if f.principal}
    assert judged == {(claim.key, case.job, case.precision) for claim in CLAIMS for case in CASES}


def test_every_figure_has_an_interval_and_evidence() -> None:
    for finding in report.findings():
        interval = finding.figure.interval()
        assert interval.low < interval.value < interval.high, finding.what
        assert all("scaled from" in text for text in finding.origins), "nothing was measured for these very jobs"
        assert len(finding.origins) == len({answers.prediction(finding.case, o).platform for o in finding.offers})


def test_an_interval_over_the_border_decides_nothing() -> None:
    assert SLOWER.verdict(2.0, 3.0) == YES
    assert SLOWER.verdict(1.9, 2.5) == OPEN
    assert SLOWER.verdict(1.0, 4.0) == OPEN
    assert SLOWER.verdict(1.0, 1.9) == NO
    assert SLOWER.missed(Estimate(value=1.5)) == "less slow"


def test_errors_that_two_offers_share_cancel() -> None:
    """The jobs' own ways are on both cards: a ratio is surer than two figures that know nothing of each other."""
    assert all(f.figure.log_sd < f.uncancelled for f in found("k80", "Speed of GTX 1080 Ti over K80"))


def test_the_cpus_of_two_providers_are_not_taken_to_be_equal() -> None:
    slow = found("more", "Speed of three GTX 1080 Ti over V100, scans, slow loader")
    assert all({"vcpu_cpus aws", "vcpu_cpus hostkey"} <= dict(f.figure.spread).keys() for f in slow)


def test_what_is_scaled_from_another_batch_precision_or_model_is_labelled_so() -> None:
    assert "batch 12, torchvision" in tables.origin(CASES[0], ONE)
    assert "batch 12, fp32, torchvision" in tables.origin(CASES[2], ONE)
    assert "batch" not in tables.origin(CASES[0], K80), "the K80 was measured at this batch, in another framework"
    assert "fp32" in tables.origin(CASES[2], T4), "no T4 was measured in mixed precision"
    assert all("other models" in tables.origin(CASES[1], offer) for offer in (K80, T4, V100))


@pytest.mark.parametrize(
    ("network", "job"), [("resnet34@224", "light"), ("resnet50@224", "light"), ("resnet50@224", "heavy")]
)
def test_predicted_orders_are_those_of_the_measured_tables(network: str, job: str) -> None:
    """PROFET at batch 64, fp32: K80 < T4 < V100. The very network lies in the interval, its kin may lie beside it."""
    for faster, slower, over, under in (("t4", "k80-half", T4, K80), ("v100-sxm2-16gb", "t4", V100, T4)):
        ratio = measured(network, faster, 64) / measured(network, slower, 64)
        predicted = answers.rate(Case(job, "fp32"), over) / answers.rate(Case(job, "fp32"), under)
        assert ratio > 1
        assert predicted.interval().low < ratio < predicted.interval().high


def test_the_measured_pairs_on_the_page_are_those_of_the_bundled_table() -> None:
    pairs = list(tables.direct_pairs())
    assert len(pairs) == 21, "ResNet-34 at four batches, ResNet-50 at three, three pairs of cards each"
    for pair in pairs:
        one, other = pair.faster, pair.slower
        assert (one.workload, one.batch_per_accelerator, one.software) == (
            other.workload, other.batch_per_accelerator, other.software,
        )  # fmt: skip
        rates = (measured(r.workload, r.accelerator, r.batch_per_accelerator) for r in (one, other))
        assert pair.ratio == pytest.approx(next(rates) / next(rates))
    (light,) = [p for p in tables.hints() if (p.network, p.slower.accelerator) == ("ResNet-34", "k80-half")]
    assert light.ratio == pytest.approx(
        measured("resnet34", "gtx-1080-ti", 12) / measured("resnet34@224", "k80-half", 16)
    )


def test_each_price_has_its_own_day_and_holds_on_it() -> None:
    known = package.sources()
    assert len({row["observed"] for row in OFFERS}) > 5
    assert all(row["observed"] and row["source"] in known and row["price_log_sd"] == "0" for row in OFFERS)
    assert not any(name.startswith("price age") for f in report.findings() for name, _ in f.figure.spread)


def test_the_number_of_cards_is_named_as_an_assumption() -> None:
    rented = [row for row in OFFERS if row["provider"] == "hostkey"]
    assert {(row["accelerators"], row["price"]) for row in rented} == {("1", "70"), ("3", "210")}
    assert all("assumption" in row["note"] for row in rented)
    text = " ".join(page().split())
    assert "names no number of cards. That it is one is an assumption" in text
    assert all(row["note"] in page() for row in OFFERS)


def test_free_colab_stands_apart() -> None:
    free = answers.candidates(CASES[0])[COLAB_FREE]
    assert free.offer.market == "free"
    assert "free, no guarantee" in map(str, free.marks)
    assert (free.on_frontier, free.p_cheapest) == (False, None)
    assert all(COLAB_FREE not in f.offers for f in report.findings())
    assert "free, no guarantee" in page()


def test_a_host_that_caps_the_feed_is_named_where_it_does() -> None:
    slow = found("more", "Speed of three GTX 1080 Ti over V100, scans, slow loader")
    assert all(any("three GTX 1080 Ti: CPU limits" in text for text in f.limits) for f in slow)
    assert all(text in page() for f in slow for text in f.limits)
    assert not any(f.limits for f in found("more", "Speed of three GTX 1080 Ti over V100"))
    assert all(row["vcpus"] for row in OFFERS)


def test_a_session_of_free_colab_ends_before_a_long_training_does() -> None:
    """6 h a session: the heavy job in fp32 takes longer and is started again, the light one is not."""
    for case, starts_again in ((CASES[0], False), (CASES[1], True)):
        free, paid = (answers.candidates(case)[offer].time_s for offer in (COLAB_FREE, COLAB))
        assert (free.value > paid.value) == starts_again  # type: ignore[union-attr]


def test_a_vds_of_the_same_size_is_the_physical_server_but_for_its_shared_cpus() -> None:
    for case in CASES:
        one, vds = (answers.candidates(case)[offer].prediction.throughput_per_s for offer in (ONE, VDS))
        assert vds.value == pytest.approx(one.value), "copies hold no host back"
        slow = Case(case.job, case.precision, "slow loader")
        assert answers.rate(slow, VDS).value < answers.rate(slow, ONE).value
    assert {row["host_gpus"]: row["host_shared"] for row in OFFERS} == {"": "", "1": "no", "3": "no", "8": "yes"}


@pytest.mark.parametrize(("server", "cloud", "names"), [(ONE, T4, ("gcp",)), (ONE, K80, ("aws",))])
def test_the_break_even_is_the_one_that_rank_says(server: str, cloud: str, names: tuple[str, ...]) -> None:
    case, offer = CASES[1], answers.candidates(CASES[1])[cloud].offer
    request = RankRequest(
        workloads=(answers.JOBS[case.job],),
        offers=(str(answers.OFFERS),),
        only_offers=True,
        provider=(*names, "hostkey"),
        gpu=("gtx-1080-ti", offer.accelerator),
        precision=case.precision,
        max_age_days=answers.ALL_AGES_DAYS,
        limit=None,
    )
    ranking = api.rank(request, today=DAY).ranking
    (said,) = [c.break_even_hours_per_month for c in ranking.candidates if c.offer.id == server]
    mine = report.break_even_h(case, cloud)
    assert said is not None
    assert mine.value == pytest.approx(said.value)
    assert mine.log_sd == pytest.approx(said.log_sd, rel=0.01)


def test_what_rank_itself_says_is_what_is_compared() -> None:
    request = RankRequest(
        workloads=("painter-light",), offers=(str(answers.OFFERS),), only_offers=True, precision="amp",
        hours_per_month=400, max_age_days=answers.ALL_AGES_DAYS, limit=None,
    )  # fmt: skip
    ranked = {c.offer.id: c for c in api.rank(request, today=DAY).ranking.candidates}
    (cheaper,) = [f for f in found("tenfold", "Cost on V100 over GTX 1080 Ti, 400 h a month") if f.case == CASES[2]]
    assert ranked[V100].cost_usd is not None
    assert ranked[ONE].cost_share_usd is not None
    assert cheaper.figure == ranked[V100].cost_usd / ranked[ONE].cost_share_usd
    assert ranked[THREE].offer.accelerators == 3


def test_the_page_says_what_would_decide_each_open_claim() -> None:
    text = " ".join(page().split())
    assert all(f"- {f.what}, {f.case.name}:" in text for f in report.findings() if f.principal and f.verdict == OPEN)
    assert "would become about" in text
