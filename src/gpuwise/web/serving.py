"""The server as a process: where it listens, its token, and how it ends."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from gpuwise.errors import InvalidInput, Message
from gpuwise.web.app import LOCAL, Settings, create_app

PORT = 8765
TOKEN_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """host: an address or a name to listen at. names: more names that the server goes by. token: None: made where the
    host is not this machine alone."""

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
    """Beyond the loopback interface a token is asked for. InvalidInput where the server has no name to go by."""
    hosts = LOCAL | {_bracketed(place.host), *(name.lower() for name in place.names)}
    if place.host in ("0.0.0.0", "::") and not place.names:
        raise InvalidInput(
            Message("--host {host} listens everywhere, and the server has no name to go by.", host=place.host),
            Message("Name it as browsers will: --name gpu.example.org"),
        )
    token = place.token or (None if is_loopback(place.host) else secrets.token_urlsafe(TOKEN_BYTES))
    return Settings(hosts=frozenset(hosts), token=token, workers=place.workers)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def address(place: Place, made: Settings) -> str:
    """What to open in a browser."""
    host = place.names[0] if place.names else _bracketed(place.host)
    return f"http://{host}:{place.port}/" + (f"?token={made.token}" if made.token else "")


def serve(place: Place, say: Callable[[str], None]) -> None:
    """Until it is ended. say: takes the address."""
    import uvicorn

    made = settings(place)
    config = uvicorn.Config(
        create_app(made), host=place.host.strip("[]"), port=place.port, log_level="warning", server_header=False,
        timeout_graceful_shutdown=3, lifespan="on",
    )  # fmt: skip
    say(address(place, made))
    uvicorn.Server(config).run()
