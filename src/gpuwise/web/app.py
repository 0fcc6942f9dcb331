"""The application: addresses, uploads, answers that are kept for a while, and what is still being computed."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from gpuwise.errors import Message
from gpuwise.web import description
from gpuwise.web.answering import LONG, Reply, Task
from gpuwise.web.asked import TO_SIGN, VERBS, uploads
from gpuwise.web.guard import Guard, TooLarge, too_large
from gpuwise.web.kept import Kept
from gpuwise.web.refusing import LANGUAGE, Refusal, language, told
from gpuwise.web.static import static
from gpuwise.web.uploaded import MOST_FIELDS, MOST_FILES, saved
from gpuwise.web.workers import NoReply, Pool

FORMS = ("json", "csv", "md", "html", "svg", "png")
SIGNED = "summary"
"""The page to sign, of what is decided."""
LOCAL = frozenset(("localhost", "127.0.0.1", "[::1]"))
JOB, LONGEST_JOB = "x-gpuwise-job", 64
"""The header by which a page names its question, to be told how far it is."""
FAULT, GIVEN_UP = 500, 503


def _today() -> date:
    return datetime.now().astimezone().date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """hosts: names that the server goes by. token: asked of everybody, None for a server of this machine alone.
    longest_s: after which a question is given up. today: the day that questions are asked on."""

    hosts: frozenset[str] = LOCAL
    token: str | None = None
    workers: int = 2
    most_bytes: int = 64 * 2**20
    longest_s: float = 600.0
    today: Callable[[], date] = field(default=_today)


def create_app(settings: Settings | None = None) -> Guard:
    """The application behind its guard."""
    asked = settings or Settings()
    server = _Server(asked)
    app = FastAPI(title="gpuwise", docs_url=None, redoc_url=None, openapi_url=None, lifespan=server.lifespan)
    app.add_api_route("/", server.question("", "page"))
    for verb in VERBS:
        methods = ["GET", "POST"] if uploads(verb) else ["GET"]
        if verb == "runs":
            app.add_api_route("/runs", server.runs, methods=["GET", "PUT"])
        else:
            app.add_api_route(f"/{verb}", server.question(verb, "page"), methods=methods)
        for form in (*FORMS, *((SIGNED,) if verb in TO_SIGN else ())):
            app.add_api_route(f"/{verb}.{form}", server.question(verb, form), methods=methods)
    app.add_api_route("/progress/{job}", server.progress, methods=["GET"])
    app.add_api_route("/static/{name}", static, methods=["GET"])
    app.add_api_route("/openapi.json", _described, methods=["GET"])
    app.add_api_route("/health", _healthy, methods=["GET"])
    for status in (400, 404, 405):
        app.add_exception_handler(status, _not_there)
    return Guard(app=app, hosts=asked.hosts, token=asked.token, most_bytes=asked.most_bytes)


async def _described() -> JSONResponse:
    return JSONResponse(description.document())


async def _healthy() -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def _not_there(request: Request, error: Any) -> Response:
    what = Message("{method} {path}: {why}.", method=request.method, path=request.url.path, why=error.detail)
    answer = _refused(request, Refusal(error.status_code, what, Message("See what there is: /")))
    answer.headers.update(error.headers or {})
    return answer


class _Server:
    """What lives as long as the server does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kept = Kept()
        self._running: dict[Task, _Shared] = {}
        self._jobs: dict[str, _Shared] = {}
        self._long = asyncio.Semaphore(max(1, settings.workers - 1))  # so that a short question need not wait for them

    @asynccontextmanager
    async def lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        self._folder = tempfile.mkdtemp(prefix="gpuwise-web-")
        nowhere = Path(self._folder, "nowhere")
        nowhere.mkdir()
        self._pool = Pool(self._settings.workers, str(nowhere), self._settings.longest_s)
        await self._pool.start()
        try:
            yield
        finally:
            await self._pool.stop()
            shutil.rmtree(self._folder, ignore_errors=True)

    # ---- addresses ----

    def question(self, verb: str, form: str) -> Callable[[Request], Awaitable[Response]]:
        async def asked(request: Request) -> Response:
            pairs = request.query_params.multi_items()
            if request.method == "GET" and form == "page" and any(not value.strip() for _name, value in pairs):
                kept = [(name, value) for name, value in pairs if value.strip()]
                return RedirectResponse(f"/{verb}" + (f"?{urlencode(kept)}" if kept else ""), 303)
            try:
                return await self._answered(request, self._task(verb, form, request))
            except TooLarge:
                return _refused(request, too_large(self._settings.most_bytes))
            except NoReply as ended:
                return _refused(request, _ended(ended))

        return asked

    def _task(self, verb: str, form: str, request: Request) -> Task:
        pairs = request.query_params.multi_items()
        chart = next((value for name, value in pairs if name == "chart"), "1")
        return Task(
            verb=verb, form=form, today=self._settings.today(),
            language=language(request.headers, request.query_params.get("lang", "")),
            pairs=tuple((name, value) for name, value in pairs if name not in ("chart", "lang")),
            chart=int(chart) if chart.isascii() and chart.isdigit() and len(chart) < 4 else 0,
        )  # fmt: skip

    async def runs(self, request: Request) -> Response:
        """GET: the page. PUT: the record of a run; 201 once it is in the store for good."""
        if request.method == "GET":
            return await self.question("runs", "page")(request)
        try:
            return _response(await self._pool.ask(await request.body(), _silent))
        except TooLarge:
            return _refused(request, too_large(self._settings.most_bytes))
        except NoReply as ended:
            return _refused(request, _ended(ended))

    async def progress(self, job: str) -> JSONResponse:
        shared = self._jobs.get(job)
        return JSONResponse({"text": shared.text if shared else ""})

    # ---- answers ----

    async def _answered(self, request: Request, task: Task) -> Response:
        if request.method == "POST":
            return await self._with_uploads(request, task)
        reply = self._kept.get(task)
        if reply is None:
            reply = await self._waited(request, task)
            if reply.status == 200 and not _of_store(task):
                self._kept.put(task, reply)
        answer = _response(reply)
        if task.form == "page" and "lang" in request.query_params:
            answer.set_cookie(LANGUAGE, task.language, max_age=31_536_000, samesite="lax", httponly=True)
        return answer

    async def _waited(self, request: Request, task: Task) -> Reply:
        """The reply, for as long as the person waits for it; who asks the same meanwhile gets the same."""
        shared = self._running.get(task)
        if shared is None:
            shared = self._running[task] = _Shared()
            shared.work = asyncio.ensure_future(self._asked(task, shared))
            shared.work.add_done_callback(lambda _done: self._forget(task, shared))
        job = request.headers.get(JOB, "")[:LONGEST_JOB]
        if job:
            self._jobs[job] = shared
        gone = asyncio.ensure_future(_left(request))
        shared.waiting += 1
        try:
            both: tuple[asyncio.Future[Any], ...] = (shared.work, gone)
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            shared.waiting -= 1
            if not shared.work.done() and shared.waiting == 0:
                self._forget(task, shared)  # who asks now does not share what is being ended
                shared.work.cancel()
        return shared.work.result() if shared.work.done() else NOBODY

    async def _asked(self, task: Task, shared: _Shared) -> Reply:
        async with self._long if task.verb in LONG else nullcontext():
            return await self._pool.ask(task, shared.tell)

    def _forget(self, task: Task, shared: _Shared) -> None:
        if self._running.get(task) is shared:
            del self._running[task]
        for job in [name for name, one in self._jobs.items() if one is shared]:
            del self._jobs[job]

    async def _with_uploads(self, request: Request, task: Task) -> Response:
        """Files are written under names of ours into a folder of this question, which goes when it is answered."""
        folder = tempfile.mkdtemp(dir=self._folder)
        try:
            form = await request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS)
            pairs, files, known = list(task.pairs), list[tuple[str, str]](), uploads(task.verb)
            for name, value in form.multi_items():
                if isinstance(value, str):
                    pairs.append((name, value))
                elif name in known and value.filename:
                    files.append((name, await saved(value, folder, len(files))))
            await form.close()
            return _response(await self._waited(request, replace(task, pairs=tuple(pairs), files=tuple(files))))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


NOBODY = Reply(status=GIVEN_UP, media="application/json", body=b"{}")
"""What is said to somebody who has gone."""


class _Shared:
    """One computation, how many wait for it, and how far it is."""

    def __init__(self) -> None:
        self.work: asyncio.Future[Reply]
        self.waiting, self.text = 0, ""

    def tell(self, text: str) -> None:
        self.text = text


def _of_store(task: Task) -> bool:
    """Does the answer depend on runs that are kept? They come and change."""
    return task.verb == "runs" or any(name == "measured" for name, _value in task.pairs)


def _silent(_text: str) -> None:
    """Nobody asks how far it is."""


async def _left(request: Request) -> None:
    """Comes back when the other side has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _response(reply: Reply) -> Response:
    headers = {"content-disposition": f'attachment; filename="{reply.name}"'} if reply.name else {}
    return Response(reply.body, reply.status, headers, reply.media)


def _refused(request: Request, refusal: Refusal) -> Response:
    media, body = told(refusal, request.headers, request.url.path)
    return Response(body, refusal.status, media_type=media)


def _ended(error: NoReply) -> Refusal:
    """A process that was ended is a fault; one that took too long is not."""
    if error.signal is None:
        return Refusal(GIVEN_UP, Message("The answer took too long and was given up."),
                       Message("Ask a smaller question, or use the command line."))  # fmt: skip
    why = Message("signal {number}", number=error.signal) if error.signal else Message("it ended itself")
    return Refusal(
        FAULT,
        Message("The process that computed the answer is gone ({why}).", why=why),
        Message("Ask again. If it happens again, the machine may be short of memory: ask a smaller question."),
    )
