"""Each claim held against the product's answers: ratios of two estimates, in which the errors they share cancel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, hypot

from benchmarks.founding import answers
from benchmarks.founding.answers import CASES, COLAB, HOURS, K80, LOADING_S, ONE, T4, THREE, V100, VDS, Case
from benchmarks.founding.claims import HELD_BACK, MORE, SLOWER, TENFOLD, Reading, Verdict
from benchmarks.founding.tables import origin
from gpuwise.estimate import Z80, Estimate
from gpuwise.predict.feed import VCPU
from gpuwise.units import HOURS_PER_MONTH

NAMES = {
    K80: "K80", T4: "T4", V100: "V100", COLAB: "Colab's paid T4", ONE: "GTX 1080 Ti", THREE: "three GTX 1080 Ti",
    VDS: "GTX 1080 Ti (VDS)",
}  # fmt: skip
LONG = (400, 730)
"""Busy hours a month that are long use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One ratio of two figures. what: the row it stands in. offers: whose figures they are. uncancelled: its log sd if
    the errors shared nothing. principal: it stands for its claim in the overview. limits: what hosts hold back."""

    claim: str
    what: str
    case: Case
    offers: tuple[str, ...]
    figure: Estimate
    reading: Reading
    uncancelled: float
    origins: tuple[str, ...]
    limits: tuple[str, ...] = ()
    principal: bool = False

    @property
    def verdict(self) -> Verdict:
        found = self.figure.interval()
        return self.reading.verdict(found.low, found.high)

    @property
    def firm(self) -> bool:
        """Does the verdict stand even if no error cancels?"""
        half = Z80 * self.uncancelled
        return self.reading.verdict(self.figure.value * exp(-half), self.figure.value * exp(half)) == self.verdict


@cache
def findings() -> tuple[Finding, ...]:
    """All of them, case by case."""
    return tuple(finding for case in CASES for part in _PARTS for finding in part(case))


def break_even_h(case: Case, cloud: str, server: str = ONE) -> Estimate:
    """Busy hours a month from which on the server is the cheaper one: its share falls as 1 / hours."""
    return answers.share(case, server, HOURS_PER_MONTH) / answers.bill(case, cloud) * HOURS_PER_MONTH


def _ratio(
    over: Estimate, under: Estimate, case: Case, offers: Sequence[str], claim: str, what: str, reading: Reading,
    principal: bool = False,
) -> Finding:  # fmt: skip
    if len(offers) > 1:
        over, under = (_own_cpus(e, case, offer) for e, offer in zip((over, under), offers, strict=True))
    figure = over / under
    return Finding(
        claim=claim,
        what=what,
        case=case,
        offers=tuple(offers),
        figure=figure,
        reading=reading,
        uncancelled=figure.log_sd if len(offers) == 1 else hypot(over.log_sd, under.log_sd),
        origins=tuple(dict.fromkeys(origin(case, offer) for offer in offers)),
        limits=tuple(f"{NAMES[offer]}: {text}" for offer in offers for text in answers.limits(case, offer)),
        principal=principal,
    )


def _own_cpus(estimate: Estimate, case: Case, offer: str) -> Estimate:
    """What a vCPU is worth differs from provider to provider: it is an error of each, and cancels within one only."""
    provider = answers.candidates(case)[offer].offer.provider
    spread = sorted((f"{name} {provider}" if name == VCPU else name, sd) for name, sd in estimate.spread)
    return replace(estimate, spread=tuple(spread))


def _faster(
    case: Case, one: str, other: str, claim: str, reading: Reading, principal: bool = False, word: str = "Speed"
) -> Finding:
    """How many times as fast one offer trains as another."""
    what = f"{word} of {NAMES[one]} over {NAMES[other]}{_loading(case)}"
    over, under = answers.rate(case, one), answers.rate(case, other)
    return _ratio(over, under, case, (one, other), claim, what, reading, principal)


def _cheaper(
    case: Case, server: str, cloud: str, hours: float, claim: str, reading: Reading, principal: bool = False
) -> Finding:
    """How many times what the job costs in the cloud is its share of the server."""
    what = f"Cost on {NAMES[cloud]} over {NAMES[server]}, {hours} h a month{_loading(case)}"
    over, under = answers.bill(case, cloud), answers.share(case, server, hours)
    return _ratio(over, under, case, (cloud, server), claim, what, reading, principal)


def _loading(case: Case) -> str:
    return "" if case.loading == "copies" else f", scans, {case.loading}"


def _loaded(case: Case) -> list[Case]:
    """The case with each way of loading."""
    return [Case(case.job, case.precision, loading) for loading in LOADING_S]


def _k80(case: Case) -> Iterator[Finding]:
    yield _faster(case, ONE, K80, "k80", MORE, principal=True)
    yield from (_cheaper(case, ONE, K80, hours, "k80", MORE, principal=hours == 400) for hours in HOURS)


def _t4(case: Case) -> Iterator[Finding]:
    yield _faster(case, T4, ONE, "t4", MORE, principal=True)
    yield _faster(case, V100, T4, "t4", MORE, principal=True)


def _tenfold(case: Case) -> Iterator[Finding]:
    for cloud in (V100, T4):
        at = (_cheaper(case, ONE, cloud, h, "tenfold", TENFOLD, principal=cloud == V100 and h in LONG) for h in HOURS)
        yield from at
    for loaded in _loaded(case):
        yield _faster(loaded, V100, ONE, "tenfold", SLOWER, principal=loaded == case)
    yield _faster(case, T4, ONE, "tenfold", SLOWER)


def _more(case: Case) -> Iterator[Finding]:
    for loaded in _loaded(case):
        yield _faster(loaded, THREE, V100, "more", MORE, principal=loaded == case)
    yield from (_cheaper(case, THREE, V100, hours, "more", MORE, principal=hours == 400) for hours in HOURS)
    yield _cheaper(Case(case.job, case.precision, "slow loader"), THREE, V100, 400, "more", MORE)


def _use(case: Case) -> Iterator[Finding]:
    for cloud in (K80, T4, V100, COLAB):
        what = f"Short: a month's rent over one training on {NAMES[cloud]}"
        rent, once = answers.bill(case, ONE), answers.bill(case, cloud)
        yield _ratio(rent, once, case, (ONE, cloud), "use", what, MORE, principal=cloud == T4)
    for cloud in (T4, COLAB):
        yield from (_cheaper(case, ONE, cloud, h, "use", MORE, principal=(cloud, h) in _MAIN) for h in HOURS)


_MAIN = ((T4, 400), (T4, 730), (COLAB, 400))
"""Clouds and busy hours that stand for long use."""


def _feed(case: Case) -> Iterator[Finding]:
    for loaded in _loaded(case)[1:]:
        for offer in (K80, T4, V100, COLAB, ONE, THREE, VDS):
            vcpus = answers.candidates(loaded)[offer].offer.vcpus
            what = f"{NAMES[offer]}, {vcpus} vCPUs{_loading(loaded)}"
            fed, free = answers.rate(loaded, offer), answers.rate(case, offer)
            main = offer in (ONE, THREE) and loaded.loading == "fast loader"
            yield _ratio(fed, free, loaded, (offer,), "feed", what, HELD_BACK, principal=main)


_PARTS = (_k80, _t4, _tenfold, _more, _use, _feed)
