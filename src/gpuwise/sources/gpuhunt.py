"""Today's offers through gpuhunt (extra [live]); without an answer the last ones kept, with their age.

One provider that fails costs only its own offers: fresh, else cached, else the bundled ones, and a note says which.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import numpy as np

from gpuwise.catalogue import Catalogue, as_date, from_rows, join
from gpuwise.errors import InvalidInput, Message
from gpuwise.sources import Facts, Loaded
from gpuwise.sources.gate import objections
from gpuwise.store import cache, package
from gpuwise.store.tables import parse_offers
from gpuwise.units import Seconds

REQUEST_S: Seconds = 15.0
DEADLINE_S: Seconds = 75.0
OUR_NAMES = {"vastai": "vast", "lambdalabs": "lambda"}
"""gpuhunt's name of a provider -> the one that the bundled offers use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one provider said. csv: its offers in gpuhunt's columns, None with a failure.

    provider: None if the whole query failed. failure: login, certificate, timeout, network, package or other.
    """

    provider: str | None
    csv: str | None = None
    failure: str = "other"
    detail: str = ""


Hunt = Callable[[], Iterable[Answer]]

_CAUSES = {
    "login": (
        Message("the proxy asks for a login (status 407)"),
        Message("Put the user and password into HTTPS_PROXY: http://user:password@host:port."),
    ),
    "certificate": (
        Message("the certificate is not trusted; a proxy that inspects the traffic may have put its own there"),
        Message("Name your network's CA file in SSL_CERT_FILE and REQUESTS_CA_BUNDLE."),
    ),
    "timeout": (
        Message("there was no answer in time"),
        Message("Check HTTPS_PROXY, and NO_PROXY for hosts that need no proxy."),
    ),
    "network": (
        Message("the host cannot be reached"),
        Message("Check the network, and HTTPS_PROXY if it needs a proxy."),
    ),
}
_OTHER = (Message("gpuhunt failed"), Message("Ask again later."))


@dataclass(frozen=True, slots=True)
class GpuhuntSource:
    """hunt: what asks the providers; None asks them for real."""

    hunt: Hunt | None = None

    def load(self, facts: Facts, as_of: date) -> Loaded:
        """The offers of every provider that has any, fresh or kept; notes name cause, setting and age of the rest.

        InvalidInput if the extra is not installed.
        """
        fresh, failed = dict[str, Loaded](), dict[str | None, Answer]()
        for answer in (self.hunt or ask)():
            if answer.csv is None or answer.provider is None:
                failed[answer.provider] = answer
            else:
                fresh[answer.provider] = _offers(answer.provider, answer.csv, as_of, facts)
                cache.save_bytes(_place(answer.provider), f"{as_of}\n{answer.csv}".encode())
        kept = {name: _kept(name, facts, as_of) for name in sorted(_names_kept() - set(fresh))}
        missing = [name for name in failed if name is not None and name not in kept]
        loaded = [*fresh.values(), *kept.values()]
        notes = [*map(_why, failed.values()), *(note for one in loaded for note in one.notes)]
        if missing or not any(len(one.catalogue) for one in loaded):
            notes.append(_bundled(missing))
        catalogues = [one.catalogue for one in loaded if len(one.catalogue)]
        sound = _gated(join(catalogues or [from_rows("gpuhunt", "none", [])]), as_of)
        return Loaded(catalogue=sound, notes=tuple(notes))


def ask(request_s: Seconds = REQUEST_S, deadline_s: Seconds = DEADLINE_S) -> Iterator[Answer]:
    """Every provider's answer through gpuhunt, in a process that is stopped after `deadline_s`.

    request_s: how long one connection may stay silent.
    """
    if find_spec("gpuhunt") is None:
        raise InvalidInput(
            Message("Live prices need gpuhunt, which is not installed."), Message("Run: pip install 'gpuwise[live]'.")
        )
    command = [sys.executable, "-m", "gpuwise.sources.hunt", str(request_s)]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=deadline_s, check=False)
        printed, silent = run.stdout, Answer(provider=None, detail=_last_line(run.stderr))
    except subprocess.TimeoutExpired as late:
        waited = f"stopped after {deadline_s:g} s"
        printed, silent = late.stdout or b"", Answer(provider=None, failure="timeout", detail=waited)
    answered, asked = set[str | None](), []
    for line in printed.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        said = json.loads(line)
        if "asked" in said:
            asked = said["asked"]
        else:
            answered.add(said["provider"])
            yield Answer(**said)
    if not asked and not answered:
        yield silent
    for name in asked:
        if name not in answered:
            yield Answer(provider=name, failure=silent.failure, detail=silent.detail)


def _offers(provider: str, csv: str, seen: date, facts: Facts) -> Loaded:
    given = {"provider": OUR_NAMES.get(provider, provider), "observed": str(seen), "source": "gpuhunt"}
    loaded = parse_offers(csv.encode(), f"gpuhunt-{provider}.csv", facts, version=str(seen), given=given)
    return Loaded(catalogue=loaded.catalogue)


def _gated(offers: Catalogue, today: date) -> Catalogue:
    """The offers that pass the rules of `gpuwise.integrity`; the others are rejects, each with its reason."""
    against = objections(offers, today)
    if not against:
        return offers
    kept = np.array([row not in against for row in range(len(offers))])
    reasons = (Message("{id}: {why}", id=offers.offer_id(row), why=f.message) for row, f in against.items())
    return replace(offers.take(kept), rejects=(*offers.rejects, *reasons))


def _folder() -> Path:
    return cache.folder() / "live"


def _place(provider: str) -> Path:
    return _folder() / f"{quote(provider, safe='')}.csv"


def _names_kept() -> set[str]:
    return {path.stem for path in _folder().glob("*.csv")}


def _kept(provider: str, facts: Facts, as_of: date) -> Loaded:
    """The provider's last answer, with its age; no offers and a note if the file is damaged."""
    body, notes = cache.load_bytes(_place(provider))
    if body is None:
        return Loaded(catalogue=from_rows(provider, "none", []), notes=notes)
    day, _, csv = body.decode().partition("\n")
    seen = date.fromisoformat(day)
    age = {"provider": provider, "day": seen, "days": (as_of - seen).days}
    note = Message("{provider}: the prices of {day} are used, {days} days old", **age)
    return Loaded(catalogue=_offers(provider, csv, seen, facts).catalogue, notes=(note,))


def _why(answer: Answer) -> Message:
    cause, setting = _CAUSES.get(answer.failure, _OTHER)
    return Message(
        "{provider}: {cause} ({detail}). {setting}",
        provider=answer.provider or "gpuhunt",
        cause=cause,
        detail=answer.detail,
        setting=setting,
    )


def _bundled(providers: list[str]) -> Message:
    newest = as_date(int(package.offers().observed.max()))
    if not providers:
        return Message("the bundled prices are used, the newest of {day}", day=newest)
    names = ", ".join(providers)
    return Message("{providers}: the bundled prices are used, the newest of {day}", providers=names, day=newest)


def _last_line(text: bytes) -> str:
    return text.decode(errors="replace").strip().rpartition("\n")[2]
