"""Command line, Python and HTTP give the same answer; what HTTP says of itself is true."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from tests.measure.records import gpu_record
from tests.web.asking import ASKED, DAY, EVERY, sent

from gpuwise import faces, request
from gpuwise.cli import Session, program
from gpuwise.measure import kept
from gpuwise.render.data import csv_text, json_text, markdown
from gpuwise.web import asked as web

ON_THE_MACHINE_ITSELF = {"measure", "ceilings", "check"}
"""Verbs that measure the machine they run on: asked over HTTP they would measure the server."""


@pytest.fixture(scope="module", autouse=True)
def _runs(places) -> Iterator[None]:
    """Two runs in the store, and the person's folder as the current one."""
    for status in ("finished", "interrupted"):
        faces.keep(json.loads(json.dumps(kept.payload(gpu_record(status=status)))))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(places)
        yield


def test_every_verb_is_served_and_has_a_case_here_or_needs_the_machine_itself():
    assert set(ASKED) == set(web.VERBS)
    assert set(web.VERBS) | ON_THE_MACHINE_ITSELF == set(request.VERBS)


@pytest.mark.parametrize(("verb", "number"), EVERY)
def test_the_command_line_python_and_http_give_equal_json(client, places, verb, number):
    asked = ASKED[verb][number]
    said = CliRunner().invoke(program, (verb, *asked.words, "--json"), obj=Session(today=DAY))
    assert said.exit_code == 0, said.output
    python = json.loads(json_text(getattr(faces, verb)(asked.request, today=DAY).json()))
    answer = sent(client, f"/{verb}.json", asked, places)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == python == json.loads(said.stdout)


@pytest.mark.parametrize(("verb", "number"), EVERY)
def test_csv_and_markdown_are_those_of_the_command_line(client, places, verb, number):
    asked = ASKED[verb][number]
    table = getattr(faces, verb)(asked.request, today=DAY).table()
    found = sent(client, f"/{verb}.csv", asked, places)
    assert (found.status_code, found.text) == (200, csv_text(table))
    assert found.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in found.headers["content-disposition"]
    found = sent(client, f"/{verb}.md", asked, places)
    assert (found.status_code, found.text) == (200, markdown(table))


@pytest.mark.parametrize(("verb", "number"), EVERY)
def test_every_page_and_every_report_is_there_and_names_no_place_of_the_server(client, places, verb, number):
    asked = ASKED[verb][number]
    for address in (f"/{verb}", f"/{verb}.html"):
        found = sent(client, address, asked, places)
        assert (found.status_code, found.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "gpuwise-web-" not in found.text
        assert str(places) not in found.text or verb == "runs"  # which says where the store is


@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_chart_is_to_be_had_as_a_file_and_one_that_is_not_there_is_an_error(client, form):
    asked = ASKED["rank"][0].query
    found = client.get(f"/rank.{form}", params=asked)
    assert found.status_code == 200
    assert found.content.startswith(b"<svg" if form == "svg" else b"\x89PNG")
    for chart in ("2", "0", "x", "9" * 5000):
        missing = client.get(f"/rank.{form}", params={**asked, "chart": chart})
        assert missing.status_code == 422
        assert missing.json()["error"]["kind"] == "UnknownName"


def test_formulas_of_a_spreadsheet_are_defused_in_csv(client, places):
    found = sent(client, "/rank.csv", ASKED["rank"][2], places)
    rows = list(csv.reader(io.StringIO(found.text)))
    texts = [cell for row in rows for cell in row if cell]
    assert [t for t in texts if t[0] in "=@" or (t[0] in "+-" and not t[1:2].isdigit())] == []
    assert {'\'=HYPERLINK("x")', "'+small", "'@mine", "'-big"} <= set(texts)


def test_the_lists_are_what_data_and_runs_show_where_nothing_is_said(client):
    for verb in ("data", "runs"):
        assert client.get(f"/{verb}.json").json()["request"]["action"] == "list"
        assert client.get(f"/{verb}").status_code == 200


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("/rank.json?workloads=nothing", 422, "nothing"),
        ("/rank.json", 422, "WORKLOAD"),
        ("/rank.json?workloads=painter-heavy&deadlin=3h", 422, "deadlin"),
        ("/rank.json?workloads=painter-heavy&deadline=soon", 422, "--deadline"),
        ("/explain.json?workload=painter-heavy&max-price=0.0001", 404, "No offer"),
        ("/exit.json?services=S3&lang=en&limit=3", 422, "limit"),
        ("/runs.json?action=show&names=999999", 422, "999999"),
        ("/nothing", 404, "/nothing"),
        ("/rank.xml", 404, "/rank.xml"),
    ],
)
def test_an_error_is_a_document_with_what_to_do(client, address, status, says):
    found = client.get(address)
    assert found.status_code == status
    error = found.json()["error"]
    assert says in error["message"]
    assert error["hint"]


@pytest.mark.parametrize("address", ["rank.summary?workloads=painter-heavy", "own.summary?demand=40 GPUs&gpu=H100-SXM"])
def test_a_decision_has_a_page_to_sign_which_the_page_of_the_answer_names(client, address):
    found = client.get(f"/{address}")
    assert (found.status_code, found.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "Signature" in found.text
    path, query = address.split("?")
    shown = client.get(f"/{path.removesuffix('.summary')}?{query}", headers={"accept": "text/html"})
    assert f'href="/{path}?' in shown.text


def test_what_is_no_decision_is_not_signed(client):
    assert client.get("/data.summary").status_code == 404
    assert client.get("/exit.summary?services=S3").status_code == 422


def test_an_error_on_a_page_keeps_what_was_filled_in(client):
    found = client.get("/rank?workloads=painter-heavy&deadline=soon", headers={"accept": "text/html"})
    assert found.status_code == 422
    assert 'value="soon"' in found.text
    assert 'value="painter-heavy"' in found.text


def test_a_field_that_is_left_empty_is_not_in_the_address(client):
    found = client.get("/rank?workloads=painter-heavy&deadline=&gpu=", follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (303, "/rank?workloads=painter-heavy")


def test_a_workload_of_ones_own_can_be_uploaded(client, tmp_path):
    path = tmp_path / "mine.toml"
    made = CliRunner().invoke(program, ("describe", "painter-heavy", "--toml", str(path)), obj=Session(today=DAY))
    assert made.exit_code == 0, made.output
    body = path.read_bytes().replace(b"painter-heavy", b"painter-mine")
    found = client.post("/rank.json", params={"limit": "3"}, files=[("workloads", ("mine.toml", body))])
    assert found.status_code == 200, found.text
    assert found.json()["result"]["candidates"][0]["workload"] == "painter-mine"
    described = client.post("/describe.json", params={"target": "painter-light"}, files=[("target", ("m.toml", body))])
    assert described.status_code == 200, described.text


def test_a_run_that_is_sent_is_kept_and_shown(client):
    record = kept.payload(gpu_record())
    kept_as = client.put("/runs", json=record)
    assert kept_as.status_code == 201
    number = kept_as.json()["run"]
    shown = client.get("/runs.json", params={"action": "show", "names": number}).json()["result"]
    assert shown["run"] == number
    assert shown["record"]["wall_s"] == record["wall_s"]
    assert client.get("/rank.json", params={"measured": number, "limit": 3}).status_code == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"kind": "run"}', b"\xff\xfe", b'{"kind": "answer"}'])
def test_what_is_no_run_is_refused(client, body):
    found = client.put("/runs", content=body)
    assert found.status_code == 422
    assert found.json()["error"]["hint"]
