"""Today's offers: every provider on its own, with proxies that misbehave and caches that are old, gone or damaged."""

from __future__ import annotations

import io
import shutil
import socket
import ssl
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpuwise.catalogue import as_date
from gpuwise.errors import InvalidInput
from gpuwise.sources import gpuhunt
from gpuwise.sources.gpuhunt import Answer, GpuhuntSource
from gpuwise.store import package
from gpuwise.store.cache import Loaded
from gpuwise.store.facts import Facts

TODAY = date(2026, 11, 30)
HEADER = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,market,host,availability\n"


def says(provider: str, price: float) -> Answer:
    return Answer(provider=provider, csv=f"{HEADER}x1,eu-1,{price},8,64,1,T4,16,spot,peer,available\n")


def load(answers: Iterable[Answer], facts: Facts, day: date = TODAY) -> Loaded:
    return GpuhuntSource(lambda: answers).load(facts, day)


def prices(loaded: Loaded) -> dict[str | None, float]:
    catalogue = loaded.catalogue
    return {catalogue.provider[i]: float(catalogue.price_usd_per_hour[i]) for i in range(len(catalogue))}


def newest_bundled() -> date | None:
    return as_date(int(package.offers().observed.max()))


# ---- fresh, kept, bundled: the answers are handed in ----


def test_fresh_offers_carry_todays_date_and_our_name_of_the_provider(facts: Facts) -> None:
    loaded = load([says("vastai", 0.2)], facts)
    offer = loaded.catalogue.offer(0)
    assert (offer.provider, offer.observed, offer.price_usd_per_hour) == ("vast", TODAY, 0.2)
    assert (offer.market, offer.host, offer.availability, offer.source.ref) == ("spot", "peer", "available", "gpuhunt")
    assert loaded.notes == ()


def test_one_provider_that_fails_costs_only_its_own_offers(facts: Facts) -> None:
    loaded = load([says("gcp", 0.3), Answer(provider="aws", failure="network", detail="refused")], facts)
    assert prices(loaded) == {"gcp": 0.3}
    assert [str(n) for n in loaded.notes] == [
        "aws: the host cannot be reached (refused). Check the network, and HTTPS_PROXY if it needs a proxy.",
        f"aws: the bundled prices are used, the newest of {newest_bundled()}",
    ]


def test_uc_123_without_a_network_the_offers_kept_are_used_and_their_age_is_told(facts: Facts) -> None:
    load([says("aws", 0.4), says("gcp", 0.3)], facts, TODAY - timedelta(days=12))
    loaded = load([Answer(provider=None, failure="network")], facts)
    assert prices(loaded) == {"aws": 0.4, "gcp": 0.3}
    assert {loaded.catalogue.offer(i).observed for i in range(2)} == {date(2026, 11, 18)}
    assert "aws: the prices of 2026-11-18 are used, 12 days old" in map(str, loaded.notes)


def test_uc_123_without_network_and_cache_the_bundled_offers_stand_with_their_date(facts: Facts) -> None:
    loaded = load([Answer(provider=None, failure="network")], facts)
    assert len(loaded.catalogue) == 0
    assert str(loaded.notes[-1]) == f"the bundled prices are used, the newest of {newest_bundled()}"


def test_uc_123_a_cache_cut_in_the_middle_is_put_aside_for_the_bundled_offers(facts: Facts, cache_folder: Path) -> None:
    load([says("aws", 0.4)], facts, TODAY - timedelta(days=12))
    (kept,) = (cache_folder / "live").glob("*.csv")
    kept.write_bytes(kept.read_bytes()[:40])
    loaded = load([Answer(provider="aws", failure="timeout")], facts)
    assert len(loaded.catalogue) == 0
    assert any("aws.csv is damaged: it was put aside" in str(note) for note in loaded.notes)
    assert f"the bundled prices are used, the newest of {newest_bundled()}" in str(loaded.notes[-1])
    assert [p.name for p in (cache_folder / "live").iterdir()] == ["aws.damaged"]


def test_a_fresh_answer_replaces_the_one_kept(facts: Facts) -> None:
    load([says("aws", 0.4)], facts, TODAY - timedelta(days=12))
    load([says("aws", 0.5)], facts)
    assert prices(load([], facts)) == {"aws": 0.5}


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    monkeypatch.setattr(gpuhunt, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'gpuwise\[live\]'"):
        GpuhuntSource().load(facts, TODAY)


# ---- gpuhunt itself, against real sockets of this machine ----

needs_gpuhunt = pytest.mark.skipif(find_spec("gpuhunt") is None, reason="the extra [live] is not installed")
CATALOGUE = """instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags
x1,eu-1,0.35,8,64.0,1,T4,16.0,False,,nvidia,
x1,eu-1,0.11,8,64.0,1,T4,16.0,True,,nvidia,
plain,eu-1,0.02,2,4.0,0,,,False,,,
"""


class Catalogues(BaseHTTPRequestHandler):
    """Serves what gpuhunt publishes, for aws only; other providers are not found."""

    def do_GET(self) -> None:
        parts = self.path.split("/")
        if "aws" not in parts:
            self.send_error(404)
            return
        body = b"20261130-1\n" if self.path.endswith("/version") else zipped("aws.csv", CATALOGUE)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class LoginProxy(Catalogues):
    """Wants user and password before anything else."""

    def do_GET(self) -> None:
        self.send_response(407, "Proxy Authentication Required")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_CONNECT = do_POST = do_GET  # noqa: N815 - the names that http.server looks for


class SlowServer(Catalogues):
    """Sends one byte after the other, and never the last."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"2")
                time.sleep(0.2)
        except OSError:
            self.close_connection = True


def zipped(name: str, text: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, text)
    return stream.getvalue()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def silent() -> Iterator[str]:
    """A proxy that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """network(NAME=value, …): what the environment says of proxies. No other host is ever asked: https goes nowhere."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")

    def says(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return says


def asked(facts: Facts, request_s: float = 5.0, deadline_s: float = 60.0) -> Loaded:
    return GpuhuntSource(partial(gpuhunt.ask, request_s, deadline_s)).load(facts, TODAY)


def why(loaded: Loaded, provider: str) -> str:
    return next(str(note) for note in loaded.notes if str(note).startswith(f"{provider}: "))


@needs_gpuhunt
def test_gpuhunts_offers_become_our_dated_ones_and_a_missing_provider_ends_nothing(
    network: Callable[..., None], facts: Facts
) -> None:
    with serving(Catalogues) as host:
        network(GPUHUNT_CATALOG_URL=f"http://{host}/v3")
        loaded = asked(facts)
    found = [loaded.catalogue.offer(i) for i in range(len(loaded.catalogue))]
    assert sorted((o.provider, o.instance, o.market, o.price_usd_per_hour) for o in found) == [
        ("aws", "x1", "on-demand", 0.35),
        ("aws", "x1", "spot", 0.11),
    ]
    assert {(o.accelerator, o.observed) for o in found} == {("t4", TODAY)}
    assert "gpuhunt failed (HTTPError: HTTP Error 404: Not Found)" in why(loaded, "gcp")


@needs_gpuhunt
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_uc_122_a_proxy_that_wants_a_login_is_named_with_its_setting_and_the_cache_is_used(
    scheme: str, network: Callable[..., None], facts: Facts
) -> None:
    load([says("aws", 0.4)], facts, TODAY - timedelta(days=3))
    with serving(LoginProxy) as proxy:
        network(
            **{f"{scheme.upper()}_PROXY": f"http://{proxy}", "GPUHUNT_CATALOG_URL": f"{scheme}://catalogue.invalid/v3"}
        )
        loaded = asked(facts)
    assert "the proxy asks for a login (status 407)" in why(loaded, "gpuhunt")
    assert "user and password into HTTPS_PROXY" in why(loaded, "gpuhunt")
    assert "aws: the prices of 2026-11-27 are used, 3 days old" in map(str, loaded.notes)
    assert prices(loaded) == {"aws": 0.4}


@needs_gpuhunt
def test_uc_122_a_proxy_that_never_answers_ends_in_a_time_out(network: Callable[..., None], facts: Facts) -> None:
    with silent() as proxy:
        network(HTTP_PROXY=f"http://{proxy}", GPUHUNT_CATALOG_URL="http://catalogue.invalid/v3")
        loaded = asked(facts, request_s=0.5)
    assert "there was no answer in time" in why(loaded, "gpuhunt")
    assert "Check HTTPS_PROXY, and NO_PROXY" in why(loaded, "gpuhunt")


@needs_gpuhunt
def test_uc_122_a_host_that_trickles_for_ever_is_stopped_at_the_deadline(
    network: Callable[..., None], facts: Facts
) -> None:
    with serving(SlowServer) as host:
        network(GPUHUNT_CATALOG_URL=f"http://{host}/v3")
        loaded = asked(facts, deadline_s=3.0)
    assert "there was no answer in time (stopped after 3 s)" in why(loaded, "gpuhunt")


@needs_gpuhunt
def test_uc_122_no_proxy_lets_an_internal_catalogue_be_asked_directly(
    network: Callable[..., None], facts: Facts
) -> None:
    with serving(Catalogues) as host:
        network(HTTP_PROXY="http://127.0.0.1:9", GPUHUNT_CATALOG_URL=f"http://{host}/v3")
        assert "the host cannot be reached" in why(asked(facts), "gpuhunt")
        network(NO_PROXY="127.0.0.1")
        assert len(asked(facts).catalogue) == 2


@pytest.fixture
def authority(tmp_path: Path) -> tuple[str, str]:
    """Certificate and key that only their owner trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    certificate, key = str(tmp_path / "ca.pem"), str(tmp_path / "key.pem")
    subject = ("-subj", "/CN=catalogue.invalid", "-addext", "subjectAltName=DNS:catalogue.invalid")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


@needs_gpuhunt
def test_uc_122_a_proxy_with_its_own_certificate_works_once_its_authority_is_named(
    network: Callable[..., None], facts: Facts, authority: tuple[str, str]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority)

    class InspectingProxy(Catalogues):
        def do_CONNECT(self) -> None:
            self.send_response(200, "Connection established")
            self.end_headers()
            try:
                self.connection = context.wrap_socket(self.connection, server_side=True)
            except OSError:  # the other side does not trust the certificate
                self.close_connection = True
                return
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
            self.close_connection = False

        def finish(self) -> None:
            super().finish()
            self.connection.close()

    with serving(InspectingProxy) as proxy:
        network(HTTPS_PROXY=f"http://{proxy}", GPUHUNT_CATALOG_URL="https://catalogue.invalid/v3")
        refused = asked(facts)
        assert "the certificate is not trusted" in why(refused, "gpuhunt")
        assert "SSL_CERT_FILE" in why(refused, "gpuhunt")
        network(SSL_CERT_FILE=authority[0])
        assert set(prices(asked(facts))) == {"aws"}
