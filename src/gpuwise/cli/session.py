"""What a command may ask of the world, handed in: the verbs and today's date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol

from gpuwise.cli import streams
from gpuwise.errors import Message
from gpuwise.locale import words

if TYPE_CHECKING:
    from gpuwise.view.page import Page, Table


class Answer(Protocol):
    """What a verb gives back; see `gpuwise.faces.Answer`."""

    @property
    def exit_code(self) -> int: ...
    def page(self) -> Page: ...
    def summary(self) -> Page: ...
    def json(self) -> Mapping[str, Any]: ...
    def table(self) -> Table: ...
    def toml(self) -> str: ...
    def record(self) -> str: ...


LONG = ("measure", "ceilings", "check", "accuracy")
"""Verbs that take more than a moment."""


def _told(progress: Message) -> None:
    streams.note(words(progress))


def _today() -> date:
    return datetime.now().astimezone().date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """world: None for `gpuwise.faces`, which is imported when it is needed. today: when the questions are asked.
    tell: takes a line of progress."""

    world: Any = None
    today: date = field(default_factory=_today)
    tell: Callable[[Message], None] = _told

    def answer(self, verb: str, request: object) -> Answer:
        """Ask one question. What takes its time tells how far it is."""
        more = {"tell": self.tell} if verb in LONG else {}
        answer: Answer = getattr(self._faces, verb)(request, today=self.today, **more)
        return answer

    def data_version(self) -> str:
        return str(self._faces.data_version())

    def usd_per(self, code: str) -> float:
        """USD for one unit of a currency."""
        return float(self._faces.usd_per(code))

    @property
    def _faces(self) -> Any:
        if self.world is not None:
            return self.world
        from gpuwise import faces

        return faces
