"""Ask gpuhunt, in a process of its own: `python -m gpuwise.sources.hunt SECONDS` prints one JSON line an answer.

gpuhunt downloads catalogues without a time-out, waits for all its threads at exit, and lets no transport be handed in.
A process can be stopped; a thread that waits for a dead proxy cannot. Proxy variables (HTTPS_PROXY, NO_PROXY) and CA
files (SSL_CERT_FILE, REQUESTS_CA_BUNDLE) are honoured by what gpuhunt stands on: urllib and requests.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import socket
import ssl
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from gpuwise.plugins import attempt

MARKETPLACES = frozenset(("vastai", "lium"))
"""Providers that resell machines of private hosts."""
HEADER = (
    "instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "market", "host",
    "availability",
)  # fmt: skip


def main(timeout_s: float) -> None:
    """Print the providers that will be asked, then an answer of each: its offers as CSV, or why there are none."""
    out, sys.stdout = sys.stdout, sys.stderr  # whatever gpuhunt prints is no answer

    def say(**answer: object) -> None:
        print(json.dumps(answer), file=out, flush=True)

    socket.setdefaulttimeout(timeout_s)
    import gpuhunt  # type: ignore[import-not-found, import-untyped, unused-ignore]

    failed = _Failures()
    logging.getLogger("gpuhunt").addHandler(failed)
    catalog = attempt(gpuhunt.default_catalog)
    if isinstance(catalog, Exception):
        say(provider=None, **describe(catalog))
        return
    online = sorted({p.NAME for p in catalog.providers})
    names = [*catalog.catalog, *online]
    say(asked=[*names, *failed.causes])
    for name, cause in failed.causes.items():
        say(provider=name, **describe(cause))
    with ThreadPoolExecutor(8) as pool:
        asked = {pool.submit(attempt, _query(catalog, name)): name for name in names}
        for future in as_completed(asked):
            name, found = asked[future], future.result()
            answer = describe(found) if isinstance(found, Exception) else _csv(found, name, name in online)
            say(provider=name, **answer)


def _query(catalog: Any, name: str) -> Any:
    return lambda: catalog.query(provider=name, min_gpu_count=1)


class _Failures(logging.Handler):
    """gpuhunt says in its log, and only there, which provider's catalogue could not be loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.causes: dict[str, BaseException] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] and isinstance(record.args, tuple) and record.args:
            self.causes[str(record.args[0])] = record.exc_info[1]


def _csv(items: Iterable[Any], provider: str, online: bool) -> dict[str, str]:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEADER)
    peer = provider in MARKETPLACES
    for item in items:
        market = "spot" if item.spot else "community" if peer else "on-demand"
        writer.writerow([
            item.instance_name, item.location, item.price, item.cpu, item.memory, item.gpu_count, item.gpu_name,
            item.gpu_memory, market, "peer" if peer else "datacentre", "available" if online else "unknown",
        ])  # fmt: skip
    return {"csv": stream.getvalue()}


def describe(error: BaseException) -> dict[str, str]:
    """The kind of a failure (login, certificate, timeout, network or other) and its own words."""
    chain = list(_chain(error))
    words = " / ".join(str(e) for e in chain)
    answered = any(hasattr(e, "code") or getattr(e, "response", None) is not None for e in chain)
    if re.search(r"\b407\b", words):
        kind = "login"
    elif any(isinstance(e, ssl.SSLError) for e in chain) or "CERTIFICATE_VERIFY_FAILED" in words:
        kind = "certificate"
    elif any(isinstance(e, TimeoutError) for e in chain) or "timed out" in words:
        kind = "timeout"
    elif any(isinstance(e, OSError) for e in chain) and not answered:
        kind = "network"
    else:
        kind = "other"
    return {"failure": kind, "detail": f"{type(chain[-1]).__name__}: {chain[-1]}"}


def _chain(error: BaseException) -> Iterable[BaseException]:
    """The error and what it came from, the root last."""
    seen: list[BaseException] = []
    following: object = error
    while isinstance(following, BaseException) and following not in seen:
        seen.append(following)
        following = getattr(following, "reason", None)
        if not isinstance(following, BaseException):
            following = seen[-1].__cause__ or seen[-1].__context__
    return seen


if __name__ == "__main__":
    main(float(sys.argv[1]))
