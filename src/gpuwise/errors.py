"""What can go wrong, as one tree.

    GpuwiseError                exit code 1 (never raised itself)
     ├─ InvalidInput            2   a value the person gave cannot be used
     │   ├─ UnknownName         2   a name nobody knows; carries the nearest ones
     │   └─ DataError           2   a file, row or column that cannot be read
     ├─ MissingEvidence         3   a prediction was asked for and nothing supports one
     ├─ MeasurementFailed       4
     └─ LauncherFailed          4

Every error says what happened, with the value and the rule, and what to do about it. Texts are `Message` values, so
that the pure core can speak without knowing the language of the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import Formatter
from typing import Any, ClassVar


class _Shares(Formatter):
    """Shares with a space before the sign, as the SI brochure (9th edition, 5.4.7) has it: {x:.0%} is 65 %."""

    def format_field(self, value: Any, spec: str) -> str:
        return f"{100 * value:{spec[:-1]}f} %" if spec.endswith("%") else str(super().format_field(value, spec))


_SHARES = _Shares()


class Message:
    """A sentence with named values, translated only where it is shown.

    The template is the English text and the gettext key: `Message("{count} rows", count=3)`. Values may be messages;
    a message can be a key where its values can.
    """

    __slots__ = ("template", "values")

    def __init__(self, template: str, /, **values: object) -> None:
        self.template = template
        self.values = values

    def text(self, translate: Callable[[str], str] = str) -> str:
        """The sentence in the language of `translate` (English without one)."""
        values = {k: v.text(translate) if isinstance(v, Message) else v for k, v in self.values.items()}
        template = translate(self.template)
        if type(template) is str and "%}" in template:  # another language writes what is put into its texts itself
            return _SHARES.vformat(template, (), values)
        return template.format_map(values)

    __str__ = text

    def __repr__(self) -> str:
        return f"Message({self.text()!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.template, self.values) == (other.template, other.values)

    def __hash__(self) -> int:
        return hash((self.template, frozenset(self.values.items())))


class GpuwiseError(Exception):
    """The root: `message` says what happened, `hint` what to do, `exit_code` what the shell sees."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: Message | str, hint: Message | str) -> None:
        self.message = message if isinstance(message, Message) else Message("{text}", text=message)
        self.hint = hint if isinstance(hint, Message) else Message("{text}", text=hint)
        super().__init__(f"{self.message} {self.hint}")


class InvalidInput(GpuwiseError):
    """A value that the person gave (option, file, unit, date) cannot be used."""

    exit_code = 2


class UnknownName(InvalidInput):
    """A name that is not known. `nearest` lists what may have been meant; nothing is chosen silently."""

    def __init__(self, message: Message | str, hint: Message | str, nearest: Sequence[str] = ()) -> None:
        super().__init__(message, hint)
        self.nearest = tuple(nearest)


class DataError(InvalidInput):
    """A table or document that cannot be read: `file`, `row` (line number, header = 1) and `column` say where."""

    def __init__(
        self,
        message: Message | str,
        hint: Message | str,
        *,
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.file, self.row, self.column = file, row, column


class MissingEvidence(GpuwiseError):
    """A prediction was asked for by name and nothing supports one."""

    exit_code = 3


class MeasurementFailed(GpuwiseError):
    exit_code = 4


class LauncherFailed(GpuwiseError):
    exit_code = 4
