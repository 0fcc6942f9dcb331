"""The server as a process: where it listens, its token, and how it ends."""

from __future__ import annotations

import gc
import ipaddress
import re
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpuwise.errors import InvalidInput, Message
from gpuwise.web.app import LOCAL, Settings, create_app

PORT = 8765
TOKEN_BYTES = 24
FAREWELL_S = 3
"""So long may an answer that is being sent take when the server ends."""
ANYWHERE = ("0.0.0.0", "::")
WAITING = 256
"""Connections that wait to be taken."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """host: an address or a name to listen at. port: 0 for a free one. names: more names that the server goes by.
    token: None: made where the host is not this machine alone. workers: processes that answer."""

    host: str = "127.0.0.1"
    port: int = PORT
    names: tuple[str, ...] = ()
    token: str | None = None
    workers: int = 2


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def settings(place: Place) -> Settings:
    """Beyond the loopback interface a token is asked for. InvalidInput where the server has no name to go by, or for a
    token that no cookie can hold."""
    hosts = LOCAL | {_bracketed(place.host), *(name.lower() for name in place.names)}
    if place.host.strip("[]") in ANYWHERE and not place.names:
        raise InvalidInput(
            Message("--host {host} listens everywhere, and the server has no name to go by.", host=place.host),
            Message("Name it as browsers will: --name gpu.example.org"),
        )
    if place.token is not None and not _TOKEN.fullmatch(place.token):
        raise InvalidInput(
            Message("The token is too short, or has a sign that an address cannot hold."),
            Message("Use 16 letters, digits, - or _ at least, or leave it out: one is made."),
        )
    token = place.token or (None if is_loopback(place.host) else secrets.token_urlsafe(TOKEN_BYTES))
    return Settings(hosts=frozenset(hosts), token=token, workers=place.workers)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def address(place: Place, made: Settings) -> str:
    """What to open in a browser."""
    host = place.names[0] if place.names else _bracketed(place.host)
    return f"http://{host}:{place.port}/" + (f"?token={made.token}" if made.token else "")


def listen(place: Place) -> socket.socket:
    """A socket that listens there and nowhere else. InvalidInput where that cannot be."""
    host = place.host.strip("[]")
    try:
        family = socket.getaddrinfo(host, place.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, place.port), family=family, backlog=WAITING)
    except OSError as error:
        raise InvalidInput(
            Message("Nothing can listen at {host}, port {port}: {why}.", host=place.host, port=place.port,
                    why=error.strerror or str(error)),
            Message("Is it in use? --port 0 takes a port that is free."),
        ) from error  # fmt: skip


def serve(place: Place, say: Callable[[str], None]) -> None:
    """Until it is ended by Ctrl-C (KeyboardInterrupt) or a signal. say: takes the address, once somebody listens."""
    import uvicorn

    made = settings(place)
    with listen(place) as taken:
        config = uvicorn.Config(
            create_app(made), log_level="warning", server_header=False, timeout_graceful_shutdown=FAREWELL_S,
            lifespan="on", proxy_headers=False,
        )  # fmt: skip
        gc.enable()  # a short command does without
        say(address(replace(place, port=taken.getsockname()[1]), made))
        uvicorn.Server(config).run(sockets=[taken])
