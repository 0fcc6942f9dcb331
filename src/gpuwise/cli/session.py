"""What a command may ask of the world, handed in: the verbs and today's date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from gpuwise.view.page import Page, Table


class Answer(Protocol):
    """What a verb gives back; see `gpuwise.faces.Answer`."""

    @property
    def exit_code(self) -> int: ...
    def page(self) -> Page: ...
    def json(self) -> Mapping[str, Any]: ...
    def table(self) -> Table: ...
    def toml(self) -> str: ...


def _today() -> date:
    return datetime.now().astimezone().date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """world: None for `gpuwise.faces`, which is imported when it is needed. today: when the questions are asked."""

    world: Any = None
    today: date = field(default_factory=_today)

    def answer(self, verb: str, request: object) -> Answer:
        """Ask one question."""
        answer: Answer = getattr(self._faces, verb)(request, today=self.today)
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
