"""Writes docs/article.md: the claims, what is found, the prices, and what would decide the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from textwrap import fill

from benchmarks.founding import answers
from benchmarks.founding.answers import (
    CASES,
    COLAB,
    COLAB_FREE,
    DAY,
    HOURS,
    K80,
    LOADING_S,
    ONE,
    T4,
    THREE,
    V100,
    Case,
)  # fmt: skip
from benchmarks.founding.claims import CLAIMS, Claim, Verdict
from benchmarks.founding.report import NAMES, Finding, break_even_h, findings
from benchmarks.founding.tables import CARDS, NETWORKS, PAIRS, direct_pairs, hints, origin
from gpuwise.estimate import Estimate
from gpuwise.model import Prediction
from gpuwise.store import package
from gpuwise.units import SECONDS_PER_HOUR

HEAD = """\
# The article, recomputed

In 2021 an article trained a light network (ResNet-34) and a heavy one (ResNet-101) to name the painter of a
painting. It did so on a K80 at AWS, a T4 at Google, on Colab, and on rented servers with one to three GTX 1080 Ti,
and set time against cost. gpuwise was started by it. This page holds its claims against what gpuwise computes
today.

`python -m benchmarks.founding` makes this page; a test says that it is up to date. Every figure is a ratio of two
answers of `gpuwise rank`, with its 80 % interval; errors that both answers share cancel. A claim is read as a
range:

- **supported**: the interval lies inside the range,
- **contradicted**: it lies outside,
- **undecidable**: it lies across the border.

A ° marks a verdict that holds only because shared errors cancel. What is particular to a network counts as shared
by all cards; in mixed precision that is somewhat too kind, and the true intervals are wider."""

ASSUMED = """\
## What is assumed

- **The jobs** are the built-in ones, painter-light and painter-heavy: 79,433 paintings, 30 epochs, batch 64 for
  each GPU. Nobody stated the article's own sizes. Ratios hardly depend on them; what a single training costs does.
- **The number of cards.** The price row of the GTX 1080 Ti, 70 EUR a month, names no number of cards. That it is
  one is an assumption; that three cost three times as much is another; that a VDS costs the same as a physical
  server is a third.
- **The hosts** are as the article has them: 4 cores, taken as 4 vCPUs, for one card and for three alike. A VDS is one
  card of a host of eight, of the same size: others use that host too, which leaves it less of its CPUs.
- **Preparation** is as `gpuwise rank` assumes it: shorter where frameworks are installed already, and billed.
- **Each price holds at its own date** and is not aged to one common day. None of them is of 2021, the year of the
  article; the rent is five years younger. So the verdicts on cost are about these prices; those on speed do not
  depend on them.
- **Loading.** Unless a row says otherwise, the images were copied to the size that is trained on, and no host is
  the limit. "Scans" are decoded from 2,000 × 1,600 pixels each time: 8 ms with a fast loader, 35 ms with a slow
  one. What a vCPU is worth is an error of each provider's own."""


WIDTH, NBSP = 118, "\N{NO-BREAK SPACE}"


def page() -> str:
    """The whole page."""
    found = findings()
    blocks = (
        [HEAD, "", "## At a glance", "", *_overview(found), ""],
        [ASSUMED, "", "## The prices", "", *_prices(), ""],
        *(_section(claim, [f for f in found if f.claim == claim.key]) for claim in CLAIMS),
        ["## At what bill", "", *_bills()],
        ["## From how many hours on", "", *_break_even(), ""],
        ["## Colab stands apart", "", *_colab(), ""],
        ["## What the speeds stand on", "", *_evidence(), ""],
        ["## What the measured tables say alone", "", *_measured(), ""],
        ["## What would decide it", "", *_undecided(found)],
    )
    return "\n".join(line for block in blocks for line in block) + "\n"


def _prose(text: str, start: str = "") -> str:
    text = text.replace(" %", NBSP + "%")
    return fill(start + text, WIDTH, subsequent_indent="  " if start else "", break_on_hyphens=False)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 10 else f"{value:.2f}"


def _figure(estimate: Estimate) -> str:
    found = estimate.interval()
    return f"{_number(found.value)} ({_number(found.low)} to {_number(found.high)})"


def _cell(finding: Finding) -> str:
    return f"{_figure(finding.figure)} {_word(finding)}"


def _rows(found: Sequence[Finding]) -> Iterator[list[str]]:
    """One row a ratio, with a cell for each job and precision."""
    for what in dict.fromkeys(f.what for f in found):
        cells = [f for f in found if f.what == what]
        yield [what, cells[0].reading.words, *map(_cell, cells)]


def _heads() -> list[str]:
    return ["ratio", "claimed", *(case.name for case in CASES)]


def _overview(found: Sequence[Finding]) -> Iterator[str]:
    """The verdicts alone: a row for each ratio that stands for its claim."""
    rows: list[list[str]] = []
    for claim in CLAIMS:
        main = [f for f in found if f.claim == claim.key and f.principal]
        whats = dict.fromkeys(f.what for f in main)
        new = [["", what, *(_word(f) for f in main if f.what == what)] for what in whats]
        new[0][0] = _link(claim)
        rows += new
    yield from _table(("claim", "ratio", *(case.name for case in CASES)), rows)


def _link(claim: Claim) -> str:
    return f"[{claim.title}](#{claim.title.lower().replace(',', '').replace(' ', '-')})"


def _word(finding: Finding) -> str:
    side = finding.reading.missed(finding.figure)
    return f"**{finding.verdict}**{'' if finding.firm else '°'}{f': {side}' if side else ''}"


def _section(claim: Claim, found: Sequence[Finding]) -> list[str]:
    limits = dict.fromkeys(f"{f.case.name}, {f.case.loading}: {text}" for f in found for text in f.limits)
    said = ["", "Hosts that cap the feed here:", "", *(f"- {text}" for text in limits)] if limits else []
    return [
        f"## {claim.title}", "", _prose(f"Claimed: {claim.said}"), "", _prose(f"How it is read: {claim.why}"), "",
        *_table(_heads(), _rows(found)), *said, "",
    ]  # fmt: skip


def _prices() -> Iterator[str]:
    replaced = {e.offer_id: str(e.reason) for e in answers.exclusions()}
    offers, a_unit = answers.all_offers(), {"hour": "an hour", "month": "a month"}
    yield from _table(
        ("offer", "GPUs", "price", "seen", "source", "remark"),
        (
            (
                f"{o.provider}, {o.instance}",
                f"{o.accelerators} × {CARDS[o.accelerator]}",
                f"{o.price_native:g} {o.currency} {a_unit[o.price_unit]}",
                f"{o.observed} ({o.observed_precision})",
                o.source.ref,
                "; ".join(filter(None, (o.note, replaced.get(o.id)))),
            )
            for o in offers
        ),
    )
    yield ""
    known = package.sources()
    yield from (f"- {key}: {known[key]['title']}" for key in sorted({o.source.ref for o in offers}))


def _bills() -> Iterator[str]:
    yield "Time in hours with preparation; USD for this training alone; USD as a share of a month with 400 busy hours."
    yield ""
    offers = (K80, T4, V100, COLAB, ONE, THREE)
    for case in CASES:
        yield from _table(
            (f"{case.name}: offer", "time, h", "billed alone, USD", "share at 400 h, USD"),
            (_bill_row(case, offer) for offer in offers),
        )
        yield ""


def _bill_row(case: Case, offer: str) -> list[str]:
    candidate = answers.candidates(case, 400)[offer]
    assert candidate.time_s is not None
    assert candidate.cost_usd is not None
    share = "billed by use" if candidate.cost_share_usd is None else _figure(candidate.cost_share_usd)
    return [NAMES[offer], _figure(candidate.time_s / SECONDS_PER_HOUR), _figure(candidate.cost_usd), share]


def _break_even() -> Iterator[str]:
    yield "Busy hours a month from which on the server costs less than the cloud for the same work. A month has 730."
    yield ""
    pairs = [(ONE, cloud) for cloud in (K80, T4, V100, COLAB)] + [(THREE, V100)]
    yield from _table(
        ("server against cloud", *(case.name for case in CASES)),
        (
            (f"{NAMES[server]} against {NAMES[cloud]}", *(_figure(break_even_h(c, cloud, server)) for c in CASES))
            for server, cloud in pairs
        ),
    )


def _colab() -> Iterator[str]:
    free = answers.candidates(CASES[0])[COLAB_FREE]
    yield _prose(
        f"The free T4 is in the market `{free.offer.market}`: {free.marks[0]}. It costs nothing and promises nothing, "
        "so that it is in none of the ratios above. It has neither SSH nor containers, and a session dies every 6 to "
        "10 hours. A training that takes longer is started again from a checkpoint, which the times hold for sessions "
        "of 6 hours:"
    )
    yield ""
    rows = ((c.name, *(_figure(_hours(c, offer)) for offer in (COLAB_FREE, COLAB))) for c in CASES)
    yield from _table(("job", "free, h", "paid, h"), rows)
    yield ""
    yield _prose(
        "The paid T4 is billed by use and is in the ratios. Its units are sold by the hundred for 9.99 USD, and users "
        "report how many an hour takes: a single training costs less than what has to be bought. That units are used "
        "up by the second is an assumption."
    )


def _hours(case: Case, offer: str) -> Estimate:
    time_s = answers.candidates(case)[offer].time_s
    assert time_s is not None
    return time_s / SECONDS_PER_HOUR


def _evidence() -> Iterator[str]:
    yield "No figure was measured for exactly these jobs with today's software. What each speed is scaled from:"
    yield ""
    rows = ((case.name, origin(case, offer)) for case in CASES for offer in (ONE, K80, T4, V100))
    yield from _table(("job", "evidence"), rows)
    yield ""
    yield "What else the predictions with a GTX 1080 Ti say of themselves:"
    yield ""
    said = dict.fromkeys(
        f"{case.name}: {text}" for case in CASES for text in map(str, answers.prediction(case, THREE).evidence)
        if "tensor cores" in text or "measured on several" in text
    )  # fmt: skip
    yield from (_prose(text, "- ") for text in said)


def _measured() -> Iterator[str]:
    yield _prose(
        "PROFET has the same network, batch and framework (TensorFlow 2.5, fp32, 224 × 224 pixels) on K80, T4 and "
        "V100. Its ratios need no model. Under them stand the predicted ones for the jobs of this page, in PyTorch."
    )
    yield ""
    yield from _table(("network", "batch", *(_over(*pair) for pair in PAIRS)), (*_direct_rows(), *_predicted_rows()))
    yield ""
    yield _prose(
        "The GTX 1080 Ti was measured at batch 12 in PyTorch, the others at batch 16 and more in TensorFlow: no "
        "fair pair exists. Where they stand nearest:"
    )
    yield ""
    yield from _table(
        ("network", "cards", "measured, other batch and framework"),
        ((p.network, _over(p.faster.accelerator, p.slower.accelerator), _number(p.ratio)) for p in hints()),
    )


def _over(one: str, other: str) -> str:
    return f"{CARDS[one]} over {CARDS[other]}"


def _direct_rows() -> Iterator[list[str]]:
    pairs = list(direct_pairs())
    for network, batch in sorted({(p.network, p.faster.batch_per_accelerator) for p in pairs}):
        same = [p for p in pairs if (p.network, p.faster.batch_per_accelerator) == (network, batch)]
        yield [network, str(batch), *(_number(p.ratio) for p in same)]


def _predicted_rows() -> Iterator[list[str]]:
    offers = {"k80-half": K80, "t4": T4, "v100-sxm2-16gb": V100}
    for case in CASES[:2]:
        ratios = (answers.rate(case, offers[one]) / answers.rate(case, offers[other]) for one, other in PAIRS)
        yield [f"predicted, {case.name} ({NETWORKS[case.job]})", "64", *map(_figure, ratios)]


def _undecided(found: Sequence[Finding]) -> Iterator[str]:
    """What is undecidable at a glance: the largest part of its doubt, and the product's advice."""
    for finding in (f for f in found if f.principal and f.verdict == Verdict.UNDECIDABLE):
        spread = finding.figure.spread
        name, sd = max(spread, key=lambda part: abs(part[1]))
        share = sd**2 / sum(s**2 for _, s in spread)
        advice = LOADING if finding.claim == "feed" else max(map(_asked(finding), finding.offers), key=_doubt).advice
        yield _prose(
            f"{finding.what}, {finding.case.name}: {_figure(finding.figure)} against {finding.reading.words}. "
            f"Largest doubt: {name} ({share * 100:.0f} % of the variance). {advice}", "- ",
        )  # fmt: skip
    yield "- Every verdict on cost: the list of prices of 2021, with the number of cards in each server."
    yield ""
    loads = " or ".join(f"{s * 1000:.0f} ms" for s in LOADING_S.values() if s)
    hours = ", ".join(map(str, HOURS))
    yield f"Data {package.version()}, answered for {DAY}. Loading: {loads} a scan. Busy hours: {hours} a month."


LOADING = "Measure there what an image takes to load: gpuwise measure."


def _asked(finding: Finding) -> Callable[[str], Prediction]:
    return partial(answers.prediction, finding.case)


def _doubt(prediction: Prediction) -> float:
    return prediction.throughput_per_s.log_sd
