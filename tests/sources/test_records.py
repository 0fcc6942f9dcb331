"""Records as people keep them: what is recognised, what is read, and what is refused with a word."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gpuwise.errors import DataError, InvalidInput, UnknownName
from gpuwise.sources.costs import Wish, read_costs
from gpuwise.sources.moments import moment, zone
from gpuwise.sources.records import read_events, read_shared, recognised

MACHINE = """
[[machine]]
name = "m"
price_per_hour = 2.0
events = [{time = 2026-11-30T08:00:00Z, state = "running"}, {time = 2026-11-30T10:00:00Z, state = "deleted"}]
"""
NODE = '[[node]]\nname = "n"\nprice_per_hour = 4.0\nvcpus = 32\naccelerators = 4\n'
ROWS = "machine,time,state,price_per_hour\nm,2026-11-30T08:00:00Z,running,2\nm,2026-11-30T10:00:00Z,deleted,2\n"
FOCUS = "BilledCost,EffectiveCost,ListCost,BillingCurrency,BillingPeriodStart,ChargePeriodStart\n"


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str | bytes, name: str = "records") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


# ---- which kind -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "form"),
    [
        (MACHINE, "events", "toml"),
        ("# a remark\n\nreport = 2026-11-30T10:00:00Z\n" + MACHINE, "events", "toml"),
        (ROWS, "events", "csv"),
        (ROWS.replace(",", ";"), "events", "csv"),
        ("\ufeff" + ROWS, "events", "csv"),
        ("cluster,timestamp,status,price\nm,2026-11-30T08:00:00Z,UP,2\n", "events", "csv"),
        ('{"machine": []}', "events", "json"),
        (' [\n {"machine": "m"}]', "events", "json"),
        (NODE, "pods", "toml"),
        ('{"node": []}', "pods", "json"),
        (FOCUS, "costs", "csv"),
        ("day,cost\n", "costs", "csv"),
    ],
)
def test_a_record_is_recognised_by_what_it_holds_whatever_its_name(write, text, kind, form):
    assert recognised(write(text, "odd.name")) == (kind, form)


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_refused(write, text):
    with pytest.raises(DataError, match="is empty"):
        recognised(write(text))


@pytest.mark.parametrize("head", [b"PAR1\x00", b"PK\x03\x04"])
def test_a_file_that_is_no_text_is_refused_with_the_way_out(write, head):
    with pytest.raises(DataError, match="Export it as CSV"):
        recognised(write(head))


# ---- times ------------------------------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "place", "hour"),
    [
        ("2026-11-30T08:00:00Z", None, 8),
        ("2026-11-30 08:00+02:00", None, 6),
        ("2026-11-30 08:00 UTC", None, 8),
        ("2026-11-30T08:00:00.5z", None, 8),
        ("2026-11-30 08:00", BERLIN, 7),
        ("2026-06-30 08:00", BERLIN, 6),
        ("2026-06-30 08:00Z", BERLIN, 8),
    ],
)
def test_a_moment_is_read_in_utc(text, place, hour):
    assert (moment(text, place).hour, moment(text, place).tzinfo) == (hour, UTC)


def test_a_night_in_which_clocks_go_back_is_an_hour_longer():
    first, last = moment("2026-10-25T00:00:00+02:00", None), moment("2026-10-25 06:00", BERLIN)
    assert (last - first).total_seconds() == 7 * 3600


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("2026-11-30 08:00", None, "names no time zone"),
        ("2026-10-25 02:30", BERLIN, "is twice"),
        ("2026-03-29 02:30", BERLIN, "is not there"),
        ("2026-11-30", BERLIN, "not a moment"),
        ("30.11.2026 08:00", BERLIN, "not a moment"),
        ("2026-11-31T08:00Z", None, "no moment"),
        ("1764489600", None, "not a moment"),
    ],
)
def test_a_text_that_is_no_one_moment_is_refused(text, place, says):
    with pytest.raises(InvalidInput, match=says):
        moment(text, place)


def test_an_unknown_zone_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean Europe/Berlin"):
        zone("europe/berlin")
    assert zone(None) is None


# ---- events -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        MACHINE,
        ROWS,
        "\ufeff" + ROWS.replace(",", ";").replace(";2\n", ";2,0\n"),
        ROWS.replace("deleted,2", "deleted,").replace("\n", "\r\n"),
        json.dumps([
            {"machine": "m", "time": "2026-11-30T08:00:00Z", "state": "running", "price_per_hour": 2},
            {"machine": "m", "time": "2026-11-30T10:00:00Z", "state": "deleted"},
        ]),
        json.dumps({"machine": [{"name": "m", "price_per_hour": 2, "events": [
            {"time": "2026-11-30T08:00:00Z", "state": "running"}, {"time": "2026-11-30T10:00:00Z", "state": "deleted"},
        ]}]}),
    ],
    ids=["toml", "csv", "semicolons, bom", "price once, crlf", "json list", "json tables"],
)  # fmt: skip
def test_the_same_events_are_the_same_machine_in_every_form(write, text):
    (meter,) = read_events([write(text)], None).meters
    assert (meter.name, meter.price_per_hour, meter.currency, meter.nodes) == ("m", 2.0, "USD", 1)
    assert [(e.when.hour, e.state) for e in meter.events] == [(8, "running"), (10, "deleted")]


def test_a_machine_in_two_files_has_the_events_of_both(write):
    later = ROWS.replace("-30T", "-31T").replace("11-31", "12-01")
    (meter,) = read_events([write(ROWS, "a.csv"), write(later, "b.csv")], None).meters
    assert len(meter.events) == 4


def test_a_machine_with_other_prices_in_another_file_is_refused(write):
    with pytest.raises(DataError, match=r"other prices in b\.csv than in a\.csv"):
        read_events([write(ROWS, "a.csv"), write(ROWS.replace(",2\n", ",3\n"), "b.csv")], None)


def test_the_report_is_the_latest_that_a_file_names(write):
    text = "report = 2026-11-30T22:58:00Z\n" + MACHINE
    assert read_events([write(text)], None).report == datetime(2026, 11, 30, 22, 58, tzinfo=UTC)


HEAD = "machine,time,state,price_per_hour\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD, "no rows below the header"),
        ("machine,state\nm,up\n", "column time is missing"),
        (HEAD + "m,2026-11-30T08:00Z,up,-3\n", 'line 2: price_per_hour: "-3"'),
        (HEAD + "m,2026-11-30T08:00Z,up,nan\n", "no row says the price_per_hour of m"),
        (HEAD + "m,2026-11-30T08:00Z,up,\n", "no row says the price_per_hour of m"),
        (HEAD + "m,2026-11-30T08:00Z,up,2\nm,2026-11-30T09:00Z,down,3\n", "line 3: price_per_hour of m is 3"),
        (HEAD + "m,2026-11-30 08:00,up,2\n", "line 2: .* names no time zone"),
        (HEAD + "m,2026-11-30T08:00Z,,2\n", "line 2: state is missing"),
        (HEAD + ",2026-11-30T08:00Z,up,2\n", "line 2: machine is missing"),
        (HEAD + "m,2026-11-30T08:00Z,up\n", "line 2: 3 fields"),
        (HEAD.strip() + ",colour\nm,2026-11-30T08:00Z,up,2,red\n", "column colour is not known"),
        (HEAD.strip() + ",nodes\nm,2026-11-30T08:00Z,up,2,0\n", "nodes of m is 0"),
        (HEAD.strip() + ",currency\nm,2026-11-30T08:00Z,up,2,dollars\n", 'currency is "dollars"'),
        ("[]", "no event"),
        ("{}", "none of the tables"),
        (
            '[{"machine": "m", "time": "2026-11-30T08:00Z", "state": "up", "price_per_hour": -1}]',
            "price_per_hour is -1",
        ),
        ('[{"machine": "m", "time": "2026-11-30T08:00Z", "state": "up", "price_per_hour": NaN}]', "NaN is no number"),
        ('[{"machine": "m", "when": "2026-11-30T08:00Z"}]', "an event has the keys"),
        ('[{"machine": "m"}, 1]', "an event has the keys"),
        (MACHINE.replace("2.0", "-2.0"), "line 4: .*price_per_hour is -2"),
        (MACHINE.replace("2.0", "nan"), "price_per_hour is nan"),
        (MACHINE.replace("2.0", '"2"'), "price_per_hour is not a number"),
        (MACHINE.replace("price_per_hour", "price_an_hour"), "Did you mean price_per_hour"),
        (MACHINE + MACHINE, 'is "m", which is there twice'),
        (MACHINE.replace("08:00:00Z", "08:00:00"), "names no time zone"),
        (MACHINE.replace("state =", "status ="), "status is not a key"),
        ('[[machine]]\nname = "m"\nprice_per_hour = 2.0\n', "events is missing"),
        ("report = 2026-11-30T08:00:00Z\n", "holds no machine"),
        (MACHINE + "[[commitment]]\nper_hour = 1.0\nstart = 2026-11-30T08:00:00Z\noff_fraction = 1.0\n", "is 1"),
        (MACHINE + '[[commitment]]\nper_hour = 1.0\nstart = 2026-11-30T08:00:00Z\nmachines = ["n"]\n', "not there"),
        (MACHINE + 2 * "[[commitment]]\nper_hour = 1.0\nstart = 2026-11-30T08:00:00Z\n", "by 2 commitments"),
    ],
)
def test_events_that_would_make_a_wrong_bill_are_refused(write, text, says):
    with pytest.raises(InvalidInput, match=says):
        read_events([write(text)], None)


# ---- pods -------------------------------------------------------------------------------------------------------


def test_pods_are_read_with_their_machine(write):
    text = NODE + '[[pod]]\nname = "A"\naccelerators = 1\n[[pod]]\nname = "B"\nnode = "n"\nvcpus = 16\n'
    ((node, pods),) = read_shared([write(text)], None).nodes
    assert (node.vcpus, [pod.name for pod in pods]) == (32, ["A", "B"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[pod]]\nname = "A"\nvcpus = 1\n', "holds no node"),
        (NODE + NODE, "there twice"),
        (NODE + 2 * '[[pod]]\nname = "A"\nvcpus = 1\n', "there twice"),
        (NODE + '[[pod]]\nname = "A"\n', "requests nothing"),
        (NODE + '[[pod]]\nname = "A"\nvcpus = -1\n', "above 0"),
        (NODE + '[[pod]]\nname = "A"\nvcpus = 1\nnode = "m"\n', "not there"),
        (NODE + '[[pod]]\nname = "A"\nvcpus = 1\nstart = 2026-11-30T08:00:00Z\n', "only one of start and end"),
        (NODE.replace("4.0", "0.0"), "price_per_hour is 0"),
        (NODE.replace("32", "0"), "vcpus is 0"),
    ],
)
def test_pods_that_cannot_be_billed_are_refused(write, text, says):
    with pytest.raises(InvalidInput, match=says):
        read_shared([write(text)], None)


# ---- cost exports -----------------------------------------------------------------------------------------------


def months(costs):
    return [(m.month, m.currency, m.amount) for m in costs.ledger.months(costs.kind)]


ROW = "12000,1000,1600,USD,2026-01-01T00:00:00Z,2026-01-15T00:00:00Z\n"


@pytest.mark.parametrize(
    "content",
    [
        (FOCUS + ROW).encode(),
        ("\ufeff" + FOCUS + ROW).encode(),
        (FOCUS + ROW).encode("utf-16"),
        (FOCUS + ROW).replace(",", ";").replace("12000", "12000,00").replace(";1000;", ";1000,00;").encode(),
        ("sep=,\n\n" + FOCUS + ROW).encode(),
        gzip.compress((FOCUS + ROW).encode()),
        (FOCUS.lower() + ROW).encode(),
        (FOCUS + ROW.replace("2026-01-15T00:00:00Z", "2026-01-15 00:00:00")).encode(),
    ],
    ids=["plain", "bom", "utf-16", "semicolons", "sep=", "gzip", "lower case", "without a zone"],
)
def test_an_export_is_read_as_it_comes(write, content):
    assert months(read_costs([write(content)], Wish())) == [("2026-01", "USD", 1000)]


def test_what_was_billed_counts_in_the_month_of_the_invoice_and_use_in_its_own(write):
    path = write(FOCUS + "5,3,4,USD,2026-02-01T00:00:00Z,2026-01-31T23:00:00Z\n")
    assert [months(read_costs([path], Wish(kind=kind)))[0][0] for kind in ("billed", "effective")] == [
        "2026-02", "2026-01",
    ]  # fmt: skip


def test_a_moment_with_an_offset_counts_in_its_month_in_utc(write):
    path = write(FOCUS + "5,3,4,USD,2026-02-01T00:00:00Z,2026-02-01T00:30:00+02:00\n")
    assert months(read_costs([path], Wish()))[0][0] == "2026-01"


def test_rows_that_cannot_be_read_are_counted_with_the_first_reasons(write):
    rows = ROW + ROW.replace("1000", "x") + ROW.replace("USD", "dollars") + "1,2\n" + ROW.replace("1000", "NULL")
    costs = read_costs([write(FOCUS + rows)], Wish())
    assert (costs.rows, costs.rejected, costs.missing) == (5, 3, {"effective": 1})
    assert [str(reject).partition(":")[0] for reject in costs.rejects] == [f"records, line {n}" for n in (3, 4, 5)]


@pytest.mark.parametrize(
    ("text", "wish", "says"),
    [
        (FOCUS, Wish(), "no row has a figure of EffectiveCost"),
        (FOCUS + ROW.replace("1000", "NaN"), Wish(), "no row has a figure"),
        (FOCUS + ROW, Wish(kind="contracted"), "no ContractedCost; it has EffectiveCost, BilledCost, ListCost"),
        (FOCUS + ROW, Wish(currency="EUR"), "names its currency"),
        ("day,cost\n2026-01-01,3\n", Wish(), "--column cost --kind billed"),
        ("day,cost\n2026-01-01,3\n", Wish(column="cost"), "what does this cost mean"),
        ("day,cost\n2026-01-01,3\n", Wish(column="cost", kind="billed"), "names no currency"),
        ("x,cost\n2026-01-01,3\n", Wish(column="cost", kind="list", currency="USD"), "--date-column x"),
        ("day,cost\n2026-01-01,3\n", Wish(column="csot", kind="list", currency="USD"), "Did you mean cost"),
        ("day,cost\n01/02/2026,3\n", Wish(column="cost", kind="list", currency="USD"), "not a moment"),
        ("day,cost\n2026-01-01,inf\n", Wish(column="cost", kind="list", currency="USD"), "not a number"),
        ("day;cost\n2026-01-01;1,234\n", Wish(column="cost", kind="list", currency="USD"), "may be"),
        ("a,b\n1,2\n", Wish(), "no record of a known kind"),
        ("lineItem/UnblendedCost,x\n1,2\n", Wish(), "--column lineItem/UnblendedCost --kind billed"),
    ],
)
def test_an_export_that_does_not_say_what_it_means_is_asked(write, text, wish, says):
    with pytest.raises(InvalidInput, match=says):
        read_costs([write(text)], wish)


def test_an_export_of_any_size_is_read_row_by_row(write, monkeypatch):
    """Nothing reads it whole: the rows arrive from a file that is never asked for all of itself."""
    path = write(FOCUS + ROW * 50_000)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("the whole was read"))
    monkeypatch.setattr(Path, "read_text", lambda self, *a, **k: pytest.fail("the whole was read"))
    assert months(read_costs([path], Wish())) == [("2026-01", "USD", 50_000_000)]
