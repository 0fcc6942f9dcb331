"""The application: addresses, uploads, answers that are kept for a while, and what is still being computed."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.datastructures import UploadFile

from gpuwise.locale import negotiate
from gpuwise.web import description
from gpuwise.web.answering import Reply, Task
from gpuwise.web.asked import VERBS, uploads
from gpuwise.web.guard import Guard, TooLarge
from gpuwise.web.static import static
from gpuwise.web.workers import Pool

FORMS = ("json", "csv", "md", "html", "svg", "png")
KEPT_BYTES, KEPT_S = 64 * 2**20, 300.0
"""Answers that are kept, so that a shared address is not computed for each reader."""
UPLOADS = {".csv", ".json", ".toml", ".gz", ".parquet", ".log"}
MOST_FILES = 64
LOCAL = frozenset(("localhost", "127.0.0.1", "[::1]"))


def _today() -> date:
    return datetime.now().astimezone().date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """hosts: names that the server goes by. token: asked of everybody, None for a server of this machine alone."""

    hosts: frozenset[str] = LOCAL
    token: str | None = None
    workers: int = 2
    most_bytes: int = 64 * 2**20
    today: Callable[[], date] = field(default=_today)


def create_app(settings: Settings | None = None) -> Guard:
    """The application behind its guard."""
    asked = settings or Settings()
    server = _Server(asked)
    app = FastAPI(title="gpuwise", docs_url=None, redoc_url=None, openapi_url=None, lifespan=server.lifespan)
    app.add_api_route("/", server.question("", "page"), include_in_schema=False)
    for verb in VERBS:
        app.add_api_route(f"/{verb}", server.question(verb, "page"), methods=["GET", "POST"], include_in_schema=False)
        for form in FORMS:
            app.add_api_route(f"/{verb}.{form}", server.question(verb, form), methods=["GET", "POST"])
    app.add_api_route("/runs", server.keep, methods=["PUT"])
    app.add_api_route("/progress/{job}", server.progress, methods=["GET"])
    app.add_api_route("/static/{name}", static, methods=["GET"])
    app.add_api_route("/openapi.json", _described, methods=["GET"])
    app.add_api_route("/health", _healthy, methods=["GET"])
    return Guard(app=app, hosts=asked.hosts, token=asked.token, most_bytes=asked.most_bytes)


async def _described() -> JSONResponse:
    return JSONResponse(description.document())


async def _healthy() -> JSONResponse:
    return JSONResponse({"status": "ok"})


class _Server:
    """What lives as long as the server does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kept: OrderedDict[Task, tuple[float, Reply]] = OrderedDict()
        self._running: dict[Task, _Shared] = {}
        self._told: dict[str, str] = {}

    @asynccontextmanager
    async def lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        self._folder = tempfile.mkdtemp(prefix="gpuwise-web-")
        nowhere = Path(self._folder, "nowhere")
        nowhere.mkdir()
        self._pool = Pool(self._settings.workers, str(nowhere))
        await self._pool.start()
        yield
        await self._pool.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- addresses ----

    def question(self, verb: str, form: str) -> Callable[[Request], Awaitable[Response]]:
        async def asked(request: Request) -> Response:
            pairs = request.query_params.multi_items()
            if request.method == "GET" and form == "page" and any(not value.strip() for _name, value in pairs):
                kept = [(name, value) for name, value in pairs if value.strip()]
                return RedirectResponse(str(request.url.replace(query="").include_query_params())
                                        + ("?" + _encoded(kept) if kept else ""), 303)  # fmt: skip
            chart = next((value for name, value in pairs if name == "chart"), "1")
            task = Task(
                verb=verb, form=form, language=_language(request), today=self._settings.today(),
                pairs=tuple((name, value) for name, value in pairs if name not in ("chart", "lang")),
                chart=int(chart) if chart.isascii() and chart.isdigit() else 0,
            )  # fmt: skip
            try:
                return await self._with_uploads(request, task) if request.method == "POST" else await self._get(
                    request, task)  # fmt: skip
            except TooLarge:
                return _problem(413, "The upload is too large.", "Use the command line for it.")

        return asked

    async def keep(self, request: Request) -> Response:
        """PUT /runs: a record of a run. 201 once it is in the store for good."""
        try:
            body = await request.body()
        except TooLarge:
            return _problem(413, "The record is too large.", "Use the command line for it.")
        reply = await self._pool.ask(body, _silent)
        return _gone() if reply is None else _response(reply)

    async def progress(self, job: str) -> JSONResponse:
        return JSONResponse({"text": self._told.get(job, "")})

    # ---- answers ----

    async def _get(self, request: Request, task: Task) -> Response:
        kept = self._kept.get(task)
        if kept is not None and time.monotonic() - kept[0] < KEPT_S:
            return _response(kept[1])
        reply = await self._waited(request, task)
        if reply is None:
            return _gone()
        if reply.status == 200 and task.verb != "runs":
            self._keep(task, reply)
        return _response(reply)

    async def _waited(self, request: Request, task: Task) -> Reply | None:
        """The reply, for as long as the person waits for it; who asks the same meanwhile gets the same."""
        shared = self._running.get(task)
        if shared is None:
            job = request.headers.get("x-gpuwise-job", "")
            work = asyncio.ensure_future(self._pool.ask(task, self._teller(job)))
            shared = self._running[task] = _Shared(work)
            work.add_done_callback(lambda _done: (self._running.pop(task, None), self._told.pop(job, None)))
        shared.waiting += 1
        gone = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait([shared.work, gone], return_when=asyncio.FIRST_COMPLETED)  # type: ignore[type-var]
        finally:
            gone.cancel()
            shared.waiting -= 1
            if not shared.work.done() and shared.waiting == 0:
                shared.work.cancel()
        return shared.work.result() if shared.work.done() and not shared.work.cancelled() else None

    def _teller(self, job: str) -> Callable[[str], None]:
        if not job:
            return _silent

        def tell(text: str) -> None:
            self._told[job] = text

        return tell

    def _keep(self, task: Task, reply: Reply) -> None:
        self._kept[task] = (time.monotonic(), reply)
        while sum(len(one.body) for _when, one in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)

    # ---- uploads ----

    async def _with_uploads(self, request: Request, task: Task) -> Response:
        """Files are written under names of ours into a folder of this question, which goes when it is answered."""
        folder = tempfile.mkdtemp(dir=self._folder)
        try:
            form = await request.form(max_files=MOST_FILES, max_fields=1000)
            pairs, files, known = list(task.pairs), list[tuple[str, str]](), uploads(task.verb)
            for name, value in form.multi_items():
                if isinstance(value, str):
                    pairs.append((name, value))
                elif name in known and value.filename:
                    files.append((name, await _saved(value, folder, len(files))))
            await form.close()
            asked = Task(verb=task.verb, form=task.form, language=task.language, today=task.today, chart=task.chart,
                         pairs=tuple(pairs), files=tuple(files), folder=folder)  # fmt: skip
            reply = await self._pool.ask(asked, _silent)
            return _gone() if reply is None else _response(reply)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True, eq=False)
class _Shared:
    """One computation, and how many wait for it."""

    work: asyncio.Future[Reply | None]
    waiting: int = 0


def _silent(_text: str) -> None:
    """Nobody asks how far it is."""


async def _left(request: Request) -> None:
    """Comes back when the other side has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _saved(given: UploadFile, folder: str, number: int) -> str:
    """The upload as a file: of its name only letters, digits and a known ending are kept."""
    name = Path(given.filename or "").name
    ending = Path(name).suffix.lower()
    stem = "".join(sign for sign in Path(name).stem if sign.isalnum() or sign in "-_")[:60] or "upload"
    place = Path(folder, str(number))
    place.mkdir()
    path = place / f"{stem}{ending if ending in UPLOADS else '.txt'}"
    with path.open("wb") as file:
        while part := await given.read(2**20):
            file.write(part)
    return str(path)


def _language(request: Request) -> str:
    said = request.query_params.get("lang", "")
    accepted = [part.partition(";")[0].strip() for part in request.headers.get("accept-language", "").split(",")]
    return negotiate([said, *accepted] if said else accepted)


def _encoded(pairs: list[tuple[str, str]]) -> str:
    from urllib.parse import urlencode

    return urlencode(pairs)


def _response(reply: Reply) -> Response:
    headers = {"content-disposition": f'attachment; filename="{reply.name}"'} if reply.name else {}
    return Response(reply.body, reply.status, headers, reply.media)


def _problem(status: int, message: str, hint: str) -> JSONResponse:
    return JSONResponse({"schema": 1, "error": {"kind": "Refused", "message": message, "hint": hint}}, status)


def _gone() -> JSONResponse:
    return _problem(503, "The question was given up.", "Ask again; a smaller question is answered sooner.")
