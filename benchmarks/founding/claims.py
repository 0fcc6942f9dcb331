"""What the article of 2021 claimed, each claim read as a range of a ratio, and why it is read so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf

from gpuwise.estimate import Estimate


class Verdict(StrEnum):
    """What an interval says of a range."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDABLE = "undecidable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The range of a ratio that a claim allows. below, above: what it means to lie on that side of it."""

    low: float
    high: float
    words: str
    below: str = ""
    above: str = ""

    def verdict(self, low: float, high: float) -> Verdict:
        """Of an interval: inside the range, outside of it, or over its border."""
        if self.low <= low and high <= self.high:
            return Verdict.SUPPORTED
        if high < self.low or low > self.high:
            return Verdict.CONTRADICTED
        return Verdict.UNDECIDABLE

    def missed(self, figure: Estimate) -> str:
        """On which side of the range an interval lies that misses it."""
        found = figure.interval()
        return self.above if found.low > self.high else self.below if found.high < self.low else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """key: name of its section. said: what was claimed, in our words. why: how it is read, and to what it applies."""

    key: str
    title: str
    said: str
    why: str


MORE = Reading(low=1.0, high=inf, words="more than 1", below="the other way round")
TENFOLD = Reading(low=6.0, high=12.0, words="6 to 12", below="less cheap", above="cheaper still")
SLOWER = Reading(low=2.0, high=3.0, words="2 to 3", below="less slow", above="slower still")
HELD_BACK = Reading(low=0.0, high=0.9, words="under 0.9", above="the host keeps up")

CLAIMS = (
    Claim(
        key="k80",
        title="The GTX 1080 Ti against the K80",
        said="A consumer card beats the K80 of the cloud: it is faster, and the same training costs less.",
        why="No figure is claimed, so only the side of 1 counts. The cloud sells one of the two chips of a K80 "
        "board.",
    ),
    Claim(
        key="t4",
        title="The T4 between the GTX 1080 Ti and the V100",
        said="The T4 is faster than the GTX 1080 Ti and slower than the V100, in fp32 and in mixed precision.",
        why="An order has no figure: each step of it is a ratio that has to lie above 1.",
    ),
    Claim(
        key="tenfold",
        title="Almost an order of magnitude cheaper, two to three times slower",
        said="The consumer card is almost ten times cheaper than the best card, and two to three times slower.",
        why="Cheaper: what the same job costs there over its share of the month's rent here, 6 to 12 (below 6 one "
        "would say five times, above 12 more than ten). Slower: the time of the training itself, 2 to 3. The "
        "best is the V100, the fastest card compared; the T4 stands beside it as the best that the article "
        "itself is known to have used. A share needs the busy hours of a month, which the claim leaves open: "
        "three of them are shown.",
    ),
    Claim(
        key="more",
        title="More cheap cards make up for it",
        said="Several cheap cards together are as fast as the best one, and still cheaper.",
        why="One training over three cards has to be at least as fast as on one V100, and cost less. The one host of "
        "4 cores loads the images of all three.",
    ),
    Claim(
        key="use",
        title="Long use favours the dedicated server, short use the cloud",
        said="Who trains all month pays less for a dedicated server; who trains for hours pays less by the minute.",
        why="Short: one training, for which the whole month is owed, must cost more than in the cloud. Long: at 400"
        " and 730 busy hours a month its share must cost less. 200 hours stand beside them as something in "
        "between.",
    ),
    Claim(
        key="feed",
        title="The CPU often cannot feed the GPU",
        said="The processor of the host is often too slow to load what the card could train on.",
        why="Held back is what reaches less than 0.9 of the rate of its cards. Copies of the size that is trained "
        "on hold no host back; the rows are of scans of 2,000 × 1,600 pixels that are decoded each time, by a "
        "fast and by a slow loader.",
    ),
)  # fmt: skip
