"""Who may ask, what a request can reach, and what an answer may do in a browser."""

from __future__ import annotations

import ast
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.asking import ASKED, DAY, sent
from tests.web.conftest import in_a_thread

from gpuwise.errors import InvalidInput
from gpuwise.request import options
from gpuwise.web import asked as web
from gpuwise.web.answering import Task, reply
from gpuwise.web.app import Settings
from gpuwise.web.serving import Place, address, listen, settings
from gpuwise.web.uploaded import tame

TOKEN = "a-token-of-the-tests-0123"


# ---- where it listens, and who may ask ----


def test_it_listens_on_the_loopback_interface_and_asks_for_no_token_unless_told_otherwise():
    with listen(Place(port=0)) as taken:
        assert taken.getsockname()[0] == "127.0.0.1"
    assert settings(Place()).token is None
    assert address(Place(), settings(Place())) == "http://127.0.0.1:8765/"


@pytest.mark.parametrize("host", ["192.0.2.7", "0.0.0.0", "::", "gpu.example.org"])
def test_beyond_the_loopback_interface_a_new_token_is_demanded_each_time(host):
    place = Place(host=host, names=("gpu.example.org",))
    first, second = settings(place), settings(place)
    assert first.token != second.token
    assert len(first.token or "") >= 32
    assert f"?token={first.token}" in address(place, first)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_every_way_to_say_this_machine_alone_is_known(host):
    assert settings(Place(host=host)).token is None


def test_a_server_without_a_name_and_a_token_that_no_address_can_hold_are_refused():
    with pytest.raises(InvalidInput, match="--name"):
        settings(Place(host="0.0.0.0"))
    for token in ("short", "has a blank in it, which breaks", "semicolon;semicolon;"):
        with pytest.raises(InvalidInput, match="token"):
            settings(Place(token=token))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8765", "", "[::2]", "0.0.0.0"]
)
def test_a_rebound_name_is_refused(client, host):
    found = client.get("/rank.json", headers={"host": host})
    assert found.status_code == 421
    assert "name" in found.json()["error"]["message"]


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "127.0.0.1:9", "[::1]:8765"])
def test_the_names_of_this_machine_are_accepted(client, host):
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
    ],
)
def test_a_page_of_another_host_can_send_nothing(client, headers):
    assert client.put("/runs", json={"kind": "run"}, headers=headers).status_code == 403
    assert client.post("/bill.json", files={"files": b""}, headers=headers).status_code == 403


def test_a_page_of_the_server_and_a_program_can(client, places):
    own = str(client.base_url).rstrip("/")
    for headers in ({}, {"origin": own}, {"sec-fetch-site": "same-origin", "origin": own}):
        found = sent(client, "/bill.json", ASKED["bill"][0], places, headers=headers)
        assert found.status_code == 200


@pytest.fixture(scope="module")
def guarded(places) -> Iterator[httpx.Client]:
    with in_a_thread(Settings(token=TOKEN, today=lambda: DAY, workers=1, most_bytes=20_000)) as asking:
        yield asking


def test_without_the_token_nothing_is_answered_and_a_browser_is_told_in_a_page(guarded):
    for path in ("/", "/rank", "/rank.json?workloads=painter-heavy", "/static/site.css", "/openapi.json"):
        assert guarded.get(path).status_code == 401
        assert guarded.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
        assert guarded.get(path, headers={"cookie": "gpuwise_token=wrong"}).status_code == 401
    assert guarded.put("/runs", json={}, headers={"cookie": "gpuwise_token="}).status_code == 401
    page = guarded.get("/?token=wrong-token-of-the-tests", headers={"accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert guarded.get("/health").status_code == 200


def test_the_token_goes_from_the_address_into_a_cookie_that_no_script_can_read(guarded):
    first = guarded.get(f"/describe?target=painter-heavy&token={TOKEN}", follow_redirects=False)
    assert (first.status_code, first.headers["location"]) == (303, "/describe?target=painter-heavy")
    kept = first.headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=Strict" in kept
    cookie = kept.partition(";")[0]
    assert guarded.get("/describe?target=painter-heavy", headers={"cookie": cookie}).status_code == 200
    assert guarded.get("/describe.json?target=painter-heavy", headers={"authorization": f"Bearer {TOKEN}"}).is_success


def test_signing_in_leads_to_no_other_host(guarded):
    for path in ("//evil.example/", "/%2F/evil.example"):
        found = guarded.send(guarded.build_request("GET", f"{guarded.base_url}".rstrip("/") + f"{path}?token={TOKEN}"))
        assert found.headers.get("location", "/").startswith("/")
        assert not found.headers.get("location", "/").startswith("//")


# ---- what an answer may do ----


@pytest.mark.parametrize("path", ["/", "/rank", "/rank.json", "/data.csv", "/static/site.js", "/nothing", "/static/no"])
def test_every_answer_forbids_foreign_and_inline_scripts_frames_and_guessing(client, path):
    headers = client.get(path).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("verb", web.VERBS)
def test_no_page_has_code_or_style_of_its_own(client, places, verb):
    page = sent(client, f"/{verb}", ASKED[verb][0], places).text
    scripts = re.findall(r"<script([^>]*)>", page)
    assert [s for s in scripts if "src=" not in s and 'type="application/json"' not in s] == []
    assert re.findall(r"<[^>]+\son[a-z]+=|<style|\sstyle=|javascript:", page) == []


def test_a_hostile_value_is_shown_as_it_is(client):
    hostile = '"><script>alert(1)</script>'
    for query in (
        {"workloads": hostile},
        {"gpu": hostile},
        {hostile: "1"},
        {"workloads": "painter-heavy", "limit": hostile},
    ):
        page = client.get("/rank", params=query)
        assert page.status_code == 422
        assert "<script>alert" not in page.text


# ---- what a request can reach ----

CANARY = "gpuwise-canary"
SECRET = "SECRET-OF-THE-SERVER"
opened: list[str] = []
watching = False


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if watching and event in ("open", "os.listdir", "os.scandir"):
        opened.append(str(arguments[0]))


@pytest.fixture(scope="module")
def bait(places) -> Path:
    """Files that lie where a request might look for them."""
    sys.addaudithook(_watch)  # for good: there is no way to take it back
    for name in (CANARY, f"{CANARY}.toml", f"{CANARY}.csv", f"{CANARY}.json", "12"):
        (places / name).write_text(f"{SECRET} = 1\n", "utf-8")
    return places


@pytest.mark.parametrize("verb", web.VERBS)
def test_no_value_of_any_field_reaches_the_file_system(bait, monkeypatch, verb):
    """Every option, refused ones too, in every spelling of its name: with names of files that are there."""
    global watching
    monkeypatch.chdir(bait)
    usual = [(k, v) for k, vs in ASKED[verb][0].query.items() for v in ([vs] if isinstance(vs, str) else vs)]
    known = options(getattr(__import__("gpuwise.request").request, f"{verb.capitalize()}Request"))
    names = [f"{CANARY}.toml", str(bait / f"{CANARY}.csv"), f"../{bait.name}/{CANARY}", f"{CANARY}.json:x", "~/x"]
    for option in known.values():
        for name in (option.name, option.name.replace("-", "_"), option.field):
            for value in names if name == option.name else names[:1]:
                others = [(k, v) for k, v in usual if k != option.name] if value == names[0] else []
                task = Task(verb=verb, form="json", language="en", today=DAY, pairs=(*others, (name, value)))
                opened.clear()
                watching = True
                try:
                    found = reply(task, lambda _text: None)
                finally:
                    watching = False
                assert [path for path in opened if CANARY in path] == []
                assert SECRET.encode() not in found.body
                assert found.status in (200, 404, 422)
                if option.kind in web.FILES or option.field in web.REFUSED:
                    assert found.status == 422


@pytest.mark.parametrize(
    "pairs",
    [
        {"action": "diff", "names": [f"{CANARY}.csv", f"{CANARY}.csv"]},
        {"action": "DIFF", "names": f"2026-09-30 {CANARY}.csv"},
        {"action": " refresh "},
        {"action": "REFRESH"},
        {"live": "false"},
    ],
)
def test_data_reads_no_file_and_asks_no_other_host(client, bait, pairs):
    assert client.get("/data.json", params=pairs).status_code == 422


@pytest.mark.parametrize("names", [f"{CANARY}.json", f"1,{CANARY}", "12 ../12", "-1", "１"])
def test_runs_are_named_by_number_alone(client, bait, names):
    for action in ("show", "compare"):
        assert client.get("/runs.json", params={"action": action, "names": names}).status_code == 422


@pytest.mark.parametrize(
    ("verb", "line"),
    [
        ("own", 'record = "PATH"'),
        ("own", 'offers = ["PATH"]'),
        ("own", 'machine = "PATH"'),
        ("own", 'discounts = "PATH"'),
        ("own", 'job = "PATH"\nevery = "7d"'),
        ("own", "live = true"),
        ("exit", 'files = ["PATH"]'),
        ("exit", 'watch = "PATH"'),
        ("exit", 'scenario = "PATH"'),
    ],
)
def test_an_uploaded_scenario_names_no_file_either(client, bait, verb, line):
    path = bait / f"{CANARY}.csv"
    body = ('demand = "40 GPUs"\n' if verb == "own" and "record" not in line and "job" not in line else "") + line
    sent = {"scenario": ("s.toml", body.replace("PATH", str(path)).encode())}
    query = {"gpu": "H100-SXM"} if verb == "own" else {}
    found = client.post(f"/{verb}.json", params=query, files=sent)
    assert found.status_code == 422
    assert SECRET not in found.text
    assert path.read_text("utf-8") == f"{SECRET} = 1\n"


@pytest.mark.parametrize("name", ["../site.css", "..%2f..%2fapp.py", "%2e%2e/app.py", "/etc/passwd", "site.css%00"])
def test_static_files_are_a_closed_list(client, name):
    assert client.get(f"/static/{name}").status_code == 404


@given(
    st.text() | st.sampled_from(["../../etc/passwd", "/abs/name", "C:\\x\\y.csv", "..", ".", "", ".toml", "a/..", "\0"])
)
def test_the_name_of_an_upload_is_tamed(name):
    tamed = tame(name)
    assert PurePosixPath(tamed).name == tamed
    assert not set(tamed) & set("/\\\0:*?[]")
    assert tamed not in ("", ".", "..")
    assert not tamed.startswith(".")
    assert len(tamed.encode()) < 255
    assert tame(tamed) == tamed


class Evil:
    """What unpickling would run."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


UPLOADS = [(verb, name) for verb in web.VERBS for name in web.uploads(verb)]


@pytest.mark.parametrize(("verb", "option"), UPLOADS)
def test_an_upload_is_read_as_data_and_never_run(client, tmp_path, verb, option):
    trap = tmp_path / "trap"
    code = f"__import__('pathlib').Path({str(trap)!r}).touch()"
    bodies = {
        "a.json": pickle.dumps(Evil(str(trap))),
        "a.csv": code.encode(),
        "a.toml": f"x = {code}".encode(),
        "a.py": code.encode(),
        "a.parquet": pickle.dumps(Evil(str(trap))),
        "a.gz": b"\x1f\x8b" + bytes(40),
    }
    query = {k: v for k, v in ASKED[verb][0].query.items() if k != option}
    for name, body in bodies.items():
        found = client.post(f"/{verb}.json", params=query, files=[(option, (name, body))])
        if verb == "exit" and found.status_code == 200:
            continue  # the checklist alone reads no offers
        assert found.status_code == 422, found.text
        assert found.json()["error"]["hint"]
    assert not trap.exists()


def test_no_module_unpickles_or_evaluates():
    package = Path(web.__file__).parent.parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                said = ast.unparse(node.func)
                assert said not in ("eval", "exec", "pickle.loads", "pickle.load", "yaml.load", "marshal.loads"), path
                assert not any(k.arg == "allow_pickle" and ast.unparse(k.value) != "False" for k in node.keywords), path


@pytest.mark.parametrize("chunked", [False, True])
def test_an_upload_has_a_largest_size_also_where_it_does_not_say_its_length(guarded, chunked):
    headers = {"authorization": f"Bearer {TOKEN}"}
    body = b"x" * 30_000
    pieces = (body[i : i + 1000] for i in range(0, len(body), 1000)) if chunked else body
    assert guarded.put("/runs", content=pieces, headers=headers).status_code == 413
    form = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n' + body + b"\r\n--b--\r\n"
    pieces = iter([form]) if chunked else form
    multipart = {**headers, "content-type": "multipart/form-data; boundary=b"}
    assert guarded.post("/bill.json", content=pieces, headers=multipart).status_code == 413
    assert guarded.get("/health").status_code == 200


def test_too_many_files_and_a_form_that_is_none_are_errors_and_no_faults(client):
    many = [("files", (f"{i}.csv", b"x")) for i in range(80)]
    assert client.post("/bill.json", files=many).status_code == 400
    broken = {"content-type": "multipart/form-data; boundary=b"}
    assert client.post("/bill.json", content=b"--b\r\nnonsense", headers=broken).status_code in (400, 422)


def test_uploads_do_not_stay(client, places):
    """Neither in the folder of the server nor in what is kept for the next reader."""
    import tempfile

    found = sent(client, "/bill.json", ASKED["bill"][0], places)
    assert found.status_code == 200
    left = [p for p in Path(tempfile.gettempdir()).glob("gpuwise-web-*/*/*") if p.is_dir()]
    assert left == []
