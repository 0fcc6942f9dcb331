"""What the events of a machine say of the time between them: billed, not billed, or not known.

Only what lies between two events is known. What a machine did after its last event, under a state that nobody knows or
between two events that do not follow from each other is a stretch of unknown time: it is named, never billed silently.

Source: the life cycles of instances as the clouds document them (billed while running; a stopped machine keeps its
disks, which are billed). Test value: running at 08:00, stopped at 10:00, asked at 22:58: 2 h of compute, and 12 h
58 min of disks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

from gpuwise.errors import Message
from gpuwise.units import Seconds

Meaning = Literal["waiting", "running", "stopped", "gone", "failed", "unclear"]
_WORDS: dict[Meaning, str] = {
    "waiting": "requested request pending queued scheduled provisioning staging starting creating launching allocating"
    " init initializing preparing booting",
    "running": "running run started start resumed up active ready online in-use restarted",
    "stopped": "stopped stop autostopped auto-stopped autostop deallocated suspended hibernated paused off",
    "gone": "deleted delete terminated destroyed removed released returned down autodown preempted interrupted evicted",
    "failed": "failed failure error launch-failed start-failed unavailable rejected cancelled canceled",
    "unclear": "stopping autostopping deallocating suspending pausing deleting terminating shutting-down unknown",
}
STATES: dict[str, Meaning] = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
"""What records write -> what it means for the bill. `unclear`: the clouds differ in whether it is billed."""

DIFFERENT_DISKS = frozenset(("terminated", "preempted", "interrupted"))
"""Words that end a machine with its disks on one cloud, and only stop it on another."""


def meaning(state: str) -> Meaning | None:
    """What a state means, however it is written; None for one that nobody knows."""
    return STATES.get("-".join(state.casefold().replace("_", " ").replace("-", " ").split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A machine was seen in a state. when: in UTC, so that no change of clocks comes between two events."""

    when: datetime
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time that is billed as compute or as disk. why: what is not known of it, None where all is known."""

    start: datetime
    end: datetime
    kind: Literal["compute", "disk"]
    why: Message | None = None

    @property
    def length_s(self) -> Seconds:
        return (self.end - self.start).total_seconds()


_Judged = tuple[Literal["compute", "disk"], Message | None] | None
"""How a stretch is billed, and what is not known of it; None: nothing is billed."""


def in_order(events: Sequence[Event]) -> bool:
    return all(one.when <= other.when for one, other in pairwise(events))


def spans(events: Sequence[Event], until: datetime) -> tuple[Span, ...]:
    """What is billed or may be billed up to a moment. Events of one time hold in the order in which they stand, unless
    the whole is out of order: then nobody can say which was the last, and the time after them is unknown."""
    return tuple(_spans(events, until))


def _spans(events: Sequence[Event], until: datetime) -> Iterator[Span]:
    ordered, trusted = sorted(events, key=lambda e: e.when), in_order(events)
    standing: Meaning | None = None
    for place, event in enumerate(ordered):
        now, later = meaning(event.state), ordered[place + 1] if place + 1 < len(ordered) else None
        end = until if later is None else min(later.when, until)
        if end > event.when:
            tied = not trusted and any(e.when == event.when and meaning(e.state) != now for e in ordered)
            judged = ("compute", _TIED) if tied else _judged(event, later, standing)
            if judged:
                yield Span(start=event.when, end=end, kind=judged[0], why=judged[1])
        standing = "running" if now in ("unclear", None) else standing if now in ("waiting", "failed") else now


def _judged(event: Event, later: Event | None, standing: Meaning | None) -> _Judged:
    """standing: running, stopped or gone, as the machine was before this event."""
    now, then = meaning(event.state), None if later is None else meaning(later.state)
    unclear = Message('clouds differ in whether "{state}" is billed', state=event.state)
    unheard = Message('nobody knows the state "{state}"', state=event.state)
    judged: dict[Meaning | None, _Judged] = {
        "running": ("compute", _LAST_RUNNING if later is None else _NOT_STOPPED if then == "waiting" else None),
        "stopped": ("disk", _LAST_STOPPED if later is None else None),
        "gone": ("compute", _BACK_AGAIN) if then in ("running", "stopped") else None,
        "waiting": _waited(later is None, then, standing),
        "failed": _failed(standing),
        "unclear": ("compute", unclear),
        None: ("compute", unheard),
    }
    return judged[now]


def _failed(standing: Meaning | None) -> _Judged:
    """A launch that failed costs nothing; of a machine that was there nobody knows whether it still is."""
    if standing == "running":
        return "compute", _FAILED
    return ("disk", _FAILED) if standing == "stopped" else None


def _waited(last: bool, then: Meaning | None, standing: Meaning | None) -> _Judged:
    if last:
        return "compute", _LAST_REQUESTED
    if standing == "running":
        return "compute", _NOT_STOPPED
    if then in ("stopped", "gone") and standing != "stopped":
        return "compute", _NEVER_RAN
    return ("disk", None) if standing == "stopped" else None


_LAST_RUNNING = Message("it was last seen running, and no later event says whether it still was")
_LAST_STOPPED = Message("it was last seen stopped, and no later event says whether its disks were kept")
_LAST_REQUESTED = Message("it was requested, and no later event says what became of it")
_NOT_STOPPED = Message("it ran and was requested again, and no event says when it stopped")
_NEVER_RAN = Message("it was requested and later ended, and no event says whether it ran")
_BACK_AGAIN = Message("it was deleted, and a later event sees it again")
_FAILED = Message("it failed, and no event says whether the machine was still there")
_TIED = Message("the events are not in order, and two states have this very time")
