"""What stands between the network and the application: who may ask, from where, how much, and what a page may do.

    Host          only names that the server goes by: a rebound DNS name is refused
    token         where the server listens beyond this machine: Authorization: Bearer, or the cookie set by ?token=
    POST          only from the server's own pages, or from a program (Sec-Fetch-Site, Origin)
    body          bounded, counted while it comes in
    answers       no script but the server's own files, no frame, no other host (Content-Security-Policy)

Source: OWASP Cheat Sheet Series (CSRF prevention: fetch metadata, origin; content security policy); DNS rebinding:
Jackson et al., ACM CCS 2007.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from secrets import compare_digest
from typing import Any
from urllib.parse import parse_qsl, urlencode

from gpuwise.errors import Message
from gpuwise.web.refusing import Refusal, cookie, told

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "gpuwise_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
FORBIDDEN, MISDIRECTED, UNKNOWN, TOO_LARGE, WITH_COOKIE = 403, 421, 401, 413, 303
STRANGE_NAME = Refusal(
    MISDIRECTED, Message("The server does not go by this name."),
    Message("Open the address that gpuwise serve printed."),
)  # fmt: skip
STRANGE_PAGE = Refusal(
    FORBIDDEN, Message("The request comes from a page of another host."), Message("Send it from a page of this server.")
)
NO_TOKEN = Refusal(
    UNKNOWN, Message("This server asks for its token."),
    Message("Open the address with ?token=… that gpuwise serve printed, or send it as Authorization: Bearer."),
)  # fmt: skip


def too_large(most_bytes: int) -> Refusal:
    return Refusal(
        TOO_LARGE,
        Message("The upload is larger than {size:.0f} MiB.", size=most_bytes / 2**20),
        Message("Use the command line for it."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """app: what is guarded. hosts: names, without a port, that the server goes by. token: None where none is asked for.
    most_bytes: of a body."""

    app: App
    hosts: frozenset[str]
    token: str | None
    most_bytes: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, refusal, headers, scope["path"])
        elif (place := self._signs_in(scope)) is not None:
            await self._sign_in(send, place)
        else:
            await self.app(scope, self._counted(receive), _headed(send))

    # ---- who may ask ----

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> Refusal | None:
        if _name(headers.get("host", "")) not in self.hosts:
            return STRANGE_NAME
        if scope["method"] not in ("GET", "HEAD") and not _same_origin(headers):
            return STRANGE_PAGE
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > self.most_bytes:
            return too_large(self.most_bytes)
        if self.token is None or scope["path"] == "/health" or self._signs_in(scope) is not None:
            return None
        given = headers.get("authorization", "").removeprefix("Bearer ").strip() or cookie(headers, COOKIE)
        if given and compare_digest(given.encode(), self.token.encode()):
            return None
        return NO_TOKEN

    def _signs_in(self, scope: Scope) -> str | None:
        """Where a visit with the right ?token= goes on; None for any other."""
        if self.token is None or scope["method"] != "GET":
            return None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"))
        given = dict(pairs).get("token", "")
        if not given or not compare_digest(given.encode(), self.token.encode()):
            return None
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        return f"{scope['path']}?{rest}" if rest else str(scope["path"])

    async def _sign_in(self, send: Send, place: str) -> None:
        """The token goes from the address into a cookie that scripts cannot read and other sites cannot send."""
        where = place if place.startswith("/") and not place.startswith("//") else "/"
        cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        headers = [(b"location", where.encode()), (b"set-cookie", cookie.encode()), *HEADERS]
        await send({"type": "http.response.start", "status": WITH_COOKIE, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    # ---- how much ----

    def _counted(self, receive: Receive) -> Receive:
        taken = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.most_bytes:
                raise TooLarge
            return message

        return counted


class TooLarge(Exception):
    """A body without a length that is larger than it may be."""


def _name(host: str) -> str:
    """Without its port: [::1]:8765 is [::1]."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def _same_origin(headers: dict[str, str]) -> bool:
    """A browser says where a request comes from; a program says nothing."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")


def _headed(send: Send) -> Send:
    """The headers of every answer. A report that is saved brings its own policy with it, and keeps it."""

    async def headed(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _value in message["headers"]}
            message["headers"] = [*message["headers"], *_missing(given)]
        await send(message)

    return headed


def _missing(given: set[bytes]) -> Iterable[tuple[bytes, bytes]]:
    return (header for header in HEADERS if header[0] not in given)


async def _refuse(send: Send, refusal: Refusal, headers: dict[str, str], path: str) -> None:
    media, body = told(refusal, headers, path)
    given = [(b"content-type", media.encode()), (b"connection", b"close"), *HEADERS]
    await send({"type": "http.response.start", "status": refusal.status, "headers": given})
    await send({"type": "http.response.body", "body": body})
