"""A result in all its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuwise.errors import InvalidInput, Message
from gpuwise.locale import in_english
from gpuwise.store import package
from gpuwise.view.page import Page, Table, facts_table, stated

NOTHING = 3
"""Exit code where nothing is feasible, a prediction is refused, or the facts do not pass."""
FAILED, INTERRUPTED = 4, 130
"""Exit codes of a measurement that failed, and of one that a signal ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A result as a page, as the document of schema 1, and as the table that CSV and Markdown hold.

    exit_code: 0; 3 where nothing is feasible or the facts do not pass; 4 or 130 where a measurement failed or was
    interrupted. records: what is kept of a measurement, to be read again. summaries: one page to sign. The forms are
    made when they are asked for.
    """

    result: Any
    exit_code: int
    pages: Callable[[Any], Page]
    documents: Callable[[Any], Mapping[str, Any]]
    tables: Callable[[Any], Table] | None = None
    records: Callable[[Any], Mapping[str, Any]] | None = None
    summaries: Callable[[Any], Page] | None = None

    def page(self) -> Page:
        """The page, with what reading the person's files had to say, and what it stands on."""
        return self._stated(self.pages(self.result))

    def summary(self) -> Page:
        """One page to sign."""
        if self.summaries is None:
            raise InvalidInput(Message("There is no decision to sign here."), Message("Leave --summary out."))
        return self._stated(self.summaries(self.result))

    def _stated(self, page: Page) -> Page:
        result = self.result
        if not hasattr(result, "as_of"):  # a ranking's page says so itself
            return page
        warnings = getattr(result, "warnings", ())
        return stated(page, warnings=warnings, data_version=package.version(), as_of=result.as_of)

    def json(self) -> Mapping[str, Any]:
        """The document, in English whatever the language: what reads it is a program."""
        with in_english():
            return self.documents(self.result)

    def table(self) -> Table:
        """What CSV and Markdown hold: the table of the verb, else the first of the page, else its facts as rows."""
        if self.tables is not None:
            return self.tables(self.result)
        blocks = self.page().blocks
        tables = [block for block in blocks if isinstance(block, Table)]
        return tables[0] if tables else facts_table(blocks)

    def toml(self) -> str:
        """The workload of `describe`, to be changed and used."""
        from gpuwise.render.toml import workload_toml

        return workload_toml(self.result.workload)

    def record(self) -> str:
        """What was measured, as the file that `rank` reads."""
        from gpuwise.render.data import json_text

        if self.records is None:
            raise InvalidInput(Message("There is no single record to write."), Message("Use --out with runs show."))
        with in_english():
            return json_text(self.records(self.result))


def document(r: Any, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The envelope of schema 1 around a result; r: a result of `gpuwise.api`, with its request and day."""
    from gpuwise.render import data as forms

    return forms.document(
        result,
        request=r.request,
        data_version=package.version(),
        as_of=r.as_of,
        warnings=getattr(r, "warnings", ()),
        fx=getattr(r, "fx", None),
    )
