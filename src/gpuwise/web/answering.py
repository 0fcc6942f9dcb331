"""One question to one reply, in any form. Runs in a worker process: everything in and out can be pickled."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from gpuwise import faces, request
from gpuwise.errors import GpuwiseError, InvalidInput, Message, UnknownName
from gpuwise.faces.failing import document
from gpuwise.locale import activate, words
from gpuwise.render import data as forms
from gpuwise.render import html as pages
from gpuwise.request import Option
from gpuwise.store import package
from gpuwise.view.page import Chart, Page, Text
from gpuwise.web import site
from gpuwise.web.asked import SCENARIO, Said, asked, refuse_scenario, said

LONG = ("accuracy",)
"""Verbs that tell how far they are."""
NOT_FOUND, UNUSABLE, FAULT = 404, 422, 500
NOTHING_KNOWN = 3
"""The exit code of an error that says that nothing supports an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """verb: empty for the entry page. pairs: the query. form: page, html, json, csv, md, svg, png.

    files: option, and place on the server, of each upload. chart: which one of the page, from 1.
    """

    verb: str
    pairs: tuple[tuple[str, str], ...]
    form: str
    language: str
    today: date
    files: tuple[tuple[str, str], ...] = ()
    chart: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """media: content type. name: of the file that a browser saves, empty for what it shows."""

    status: int
    media: str
    body: bytes
    name: str = ""


Tell = Callable[[Message], None]


def reply(task: Task, tell: Tell) -> Reply:
    """Never raises: an error is a reply too, in the form that was asked for."""
    found: Said = {}
    try:
        activate(task.language)
        found = _as_it_stands(task)  # what an error shows again in the form
        found = said(task.verb, task.pairs, jobs()) if task.verb else {}
        made = _made(task, found, tell)
    except GpuwiseError as error:
        made = _failed(task, found, error)
    except Exception as error:  # noqa: BLE001 - the last border: a fault of ours is a reply, and stands in the log
        traceback.print_exc(file=sys.stderr)
        made = _failed(task, found, fault(error))
    return Reply(status=made.status, media=made.media, name=made.name, body=_named(task, made.body))


def _as_it_stands(task: Task) -> Said:
    found = Said()
    for name, value in task.pairs:
        found.setdefault(name, []).append(value)
    return found


def _named(task: Task, body: bytes) -> bytes:
    """Uploads are named as the person named them: where they lie is ours."""
    for _option, path in task.files:
        body = body.replace(f"{Path(path).parent}/".encode(), b"")
    return body


def warm() -> None:
    """What every question needs, before the first one comes."""
    package.offers()
    package.accelerators()
    jobs()


@cache
def jobs() -> tuple[str, ...]:
    return tuple(sorted(package.workloads()))


def _made(task: Task, found: Said, tell: Tell) -> Reply:
    if task.form == "page" and not task.verb:
        return _page(200, site.entry(task.language))
    if task.form == "page" and not found and not task.files and _needs_words(task.verb):
        return _page(200, site.page(task.verb, {}, None, task.language))
    answer = _answer(task, found, tell)
    return FORMS[task.form](task, found, answer)


def _needs_words(verb: str) -> bool:
    return verb in ("rank", "explain", "describe", "own", "exit", "bill")


def _answer(task: Task, found: Said, tell: Tell) -> faces.Answer:
    kind = getattr(request, f"{task.verb.capitalize()}Request")
    known = asked(task.verb)
    whole = _with_uploads(task, known, found)
    flags: dict[str, object] = {
        name: texts[-1] for name, texts in whole.items() if name in known and known[name].kind == "flag"
    }
    question = request.parse(kind, {**whole, **flags}, usd_per=faces.usd_per)
    more = {"tell": tell} if task.verb in LONG else {}
    answer: faces.Answer = getattr(faces, task.verb)(question, today=task.today, **more)
    return answer


def _with_uploads(task: Task, known: Mapping[str, Option], found: Said) -> Said:
    """An upload stands where the name of a file would; where only one may be said, it wins."""
    raw = dict(found)
    for option, path in task.files:
        if option == SCENARIO:
            from gpuwise.sources.document import read_toml

            refuse_scenario(task.verb, read_toml(Path(path)).data, jobs())
        raw[option] = [*raw.get(option, []), path] if known[option].repeats else [path]
    return raw


# ---- forms ----


def _page(status: int, text: str) -> Reply:
    return Reply(status=status, media="text/html; charset=utf-8", body=text.encode())


def _as_page(task: Task, found: Said, answer: faces.Answer) -> Reply:
    return _page(200, site.page(task.verb, found, answer.page(), task.language, with_files=bool(task.files)))


def _as_report(task: Task, _found: Said, answer: faces.Answer) -> Reply:
    return Reply(status=200, media="text/html; charset=utf-8", body=pages.html(answer.page()).encode(),
                 name=f"gpuwise-{task.verb}.html")  # fmt: skip


def _as_summary(task: Task, _found: Said, answer: faces.Answer) -> Reply:
    return Reply(status=200, media="text/html; charset=utf-8", body=pages.html(answer.summary()).encode(),
                 name=f"gpuwise-{task.verb}-to-sign.html")  # fmt: skip


def _as_json(_task: Task, _found: Said, answer: faces.Answer) -> Reply:
    return Reply(status=200, media="application/json", body=forms.json_text(answer.json()).encode())


def _as_csv(task: Task, _found: Said, answer: faces.Answer) -> Reply:
    return Reply(status=200, media="text/csv; charset=utf-8", body=forms.csv_text(answer.table()).encode(),
                 name=f"gpuwise-{task.verb}.csv")  # fmt: skip


def _as_markdown(_task: Task, _found: Said, answer: faces.Answer) -> Reply:
    return Reply(status=200, media="text/markdown; charset=utf-8", body=forms.markdown(answer.table()).encode())


def _as_picture(task: Task, _found: Said, answer: faces.Answer) -> Reply:
    from gpuwise.render.vega import picture

    charts = [block for block in answer.page().blocks if isinstance(block, Chart)]
    if not 1 <= task.chart <= len(charts):
        raise UnknownName(
            Message("The page has no chart {n}.", n=task.chart),
            Message("It has {n} charts, counted from 1.", n=len(charts)),
        )
    media, body = picture(charts[task.chart - 1], task.form)
    return Reply(status=200, media=media, body=body, name=f"gpuwise-{task.verb}-{task.chart}.{task.form}")


FORMS: Mapping[str, Callable[[Task, Said, faces.Answer], Reply]] = {
    "page": _as_page, "html": _as_report, "summary": _as_summary, "json": _as_json, "csv": _as_csv,
    "md": _as_markdown, "svg": _as_picture, "png": _as_picture,
}  # fmt: skip


# ---- errors ----


def fault(error: Exception) -> GpuwiseError:
    """An error that nobody foresaw."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return GpuwiseError(
        Message("This is a fault of gpuwise itself: {what}", what=what),
        Message("Report it with the address of this page."),
    )


def status_of(error: GpuwiseError) -> int:
    if type(error) is GpuwiseError:
        return FAULT
    return NOT_FOUND if error.exit_code == NOTHING_KNOWN else UNUSABLE


def _failed(task: Task, found: Said, error: GpuwiseError) -> Reply:
    if task.form == "page":
        shown = Page(
            title=words(Message("No answer")),
            blocks=(Text(text=words(error.message), role="answer"), Text(text=words(error.hint))),
        )
        return _page(status_of(error), site.page(task.verb, found, shown, task.language))
    return Reply(status=status_of(error), media="application/json", body=json.dumps(document(error)).encode())


def keep(text: bytes) -> Reply:
    """A record that `measure --out` wrote, into the store of runs; the reply comes once it is there for good."""
    try:
        number = faces.keep(_json(text))
    except GpuwiseError as error:
        return Reply(status=status_of(error), media="application/json", body=json.dumps(document(error)).encode())
    return Reply(status=201, media="application/json", body=json.dumps({"schema": 1, "run": number}).encode())


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            Message("The upload is no JSON: {why}.", why=str(error)), Message("Send what gpuwise measure --out wrote.")
        ) from None
