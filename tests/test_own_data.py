"""A person's own files and words through the verbs: what is read, what is refused and said, what a day hides."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from gpuwise import api, faces
from gpuwise.api.world import rate_notes, rate_on
from gpuwise.errors import DataError, InvalidInput, UnknownName
from gpuwise.model import Fx
from gpuwise.request import DataRequest, RankRequest
from gpuwise.store import package
from gpuwise.view.page import Text

DAY = date(2026, 11, 30)
OWN = "provider,instance,gpu,gpus,price,currency,country,observed\n"
SOUND = "here,big,T4,1,0.5,USD,DE,2026-11-01\n"

Write = Callable[[str, str], str]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, "utf-8")
        return str(tmp_path / name)

    return written


def rank(**said: object) -> RankRequest:
    return RankRequest(workloads=("painter-heavy",), **said)  # type: ignore[arg-type]


def data(action: str, *names: str, **said: object) -> DataRequest:
    return DataRequest(action=action, names=names, **said)  # type: ignore[arg-type]


# ---- refused rows ----


@pytest.mark.parametrize("faulty", [1, 10, 13])
def test_refused_rows_say_why_and_the_json_has_them_all(faulty: int, write: Write) -> None:
    rows = "".join(f"here,{i},T4,1,0.5,USD,Germany,2026-11-01\n" for i in range(faulty))
    mine = {"offers": (write("mine.csv", OWN + SOUND + rows),), "only_offers": True}
    for answer in (faces.rank(rank(**mine), today=DAY), faces.data(data("list", **mine), today=DAY)):
        document = answer.json()
        refused = [text for text in document["warnings"] if text.startswith("mine.csv, line ")]
        assert len(refused) == min(faulty, 10)
        assert refused[0].startswith('mine.csv, line 3: country: "Germany" is not a country code')
        rest = [text for text in document["warnings"] if "more rows were refused: see --json" in text]
        assert [text.split()[2] for text in rest] == (["3"] if faulty == 13 else [])
        assert len(document["result"]["rejects"]) == faulty
        assert document["result"]["rejects"][:1] == refused[:1]


def test_data_check_judges_the_rows_of_a_person_by_the_rules_of_live_offers(write: Write) -> None:
    rows = (
        "here,a,T4,1,0.5,USD,Germany,2026-11-01\nhere,b,FOO,1,0.5,USD,DE,2026-11-01\nhere,c,T4,1,900,USD,DE,2026-11-01\n"
        "here,d,T4,1,0.5,USD,DE,2027-01-01\nhere,e,T4,,0.5,USD,DE,2026-11-01\n"
    )
    path = write("mine.csv", OWN + SOUND + rows)
    answer = faces.data(data("check", offers=(path,), only_offers=True), today=DAY)
    found = [(f["table"], f["row"], f["rule"]) for f in answer.json()["result"]["findings"]]
    assert found == [
        ("mine.csv", "line 3", "refused_row"),
        ("mine.csv", "line 4", "accelerator_known"),
        ("mine.csv", "line 5", "price_in_band"),
        ("mine.csv", "line 6", "not_in_future"),
        ("mine.csv", "line 7", "accelerator_known"),
    ]
    assert answer.json()["result"]["rows"] == {"mine.csv": 5}
    assert answer.exit_code == 3


def test_data_check_of_sound_rows_beside_the_bundle_passes(write: Write) -> None:
    answer = faces.data(data("check", offers=(write("mine.csv", OWN + SOUND),)), today=DAY)
    assert (answer.exit_code, answer.result.rows["mine.csv"]) == (0, 1)
    assert len(answer.result.left_out) == len(package.left_out())


# ---- names ----


@pytest.mark.parametrize("spelled", ["AWS", "Aws", "aws"])
def test_a_provider_is_found_in_any_case(spelled: str) -> None:
    found = api.data(data("list", provider=(spelled,), limit=None), today=DAY).offers  # type: ignore[union-attr]
    assert {offer.provider for offer in found} == {"aws"}
    ranked = api.rank(rank(provider=(spelled,), limit=1), today=DAY).ranking
    assert ranked.total_candidates == api.rank(rank(provider=("aws",), limit=1), today=DAY).ranking.total_candidates > 0


@pytest.mark.parametrize(("written", "near"), [("amazon", ("aws",)), ("gpc", ("gcp",)), ("xyzzy", ())])
def test_an_unknown_provider_is_refused_with_the_nearest_and_how_many_there_are(
    written: str, near: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownName) as caught:
        api.rank(rank(provider=(written,)), today=DAY)
    known = {*package.offers().provider.values, "owned"}
    assert caught.value.nearest == near
    assert str(caught.value.hint).endswith(f"There are {len(known)}: gpuwise data list --by provider")


def test_a_short_list_of_names_is_said_whole() -> None:
    with pytest.raises(UnknownName, match="Did you mean painter-heavy") as caught:
        api.rank(RankRequest(workloads=("painter-hevy",)), today=DAY)
    assert all(name in str(caught.value.hint) for name in package.workloads())


def test_quotas_and_agreements_hold_whatever_the_case_of_the_provider(write: Write) -> None:
    quota = write("q.toml", '[[quota]]\nprovider = "AWS"\naccelerators = 0\n')
    ranking = api.rank(rank(quota=quota, provider=("aws",)), today=DAY).ranking
    assert ranking.total_candidates == 0
    assert ranking.counts["quota"] > 0
    agreed = write("d.toml", '[[rate]]\nprovider = "Lambda"\nprice_usd_per_hour = 0.01\n')
    cheapest = api.rank(rank(discounts=agreed, limit=1), today=DAY).ranking.candidates[0]
    assert cheapest.offer.provider == "lambda"


def test_a_lapsed_agreement_is_said_on_its_day_and_not_before(write: Write) -> None:
    agreed = write("d.toml", '[[credit]]\nprovider = "aws"\nleft_usd = 5\nuntil = 2026-06-01\n')
    said = [
        any("credit[1] ended on 2026-06-01" in str(w) for w in api.rank(request, today=DAY).ranking.warnings)
        for request in (rank(discounts=agreed, limit=1), rank(discounts=agreed, limit=1, as_of=date(2026, 6, 1)))
    ]
    assert said == [True, False]


def test_agreements_may_name_bundled_providers_where_only_own_offers_are_ranked(write: Write) -> None:
    mine = {"offers": (write("mine.csv", OWN + SOUND),), "only_offers": True}
    agreed = write("d.toml", '[[rate]]\nprovider = "aws"\noff_fraction = 0.5\n')
    assert api.rank(rank(discounts=agreed, **mine), today=DAY).ranking.total_candidates == 1
    wrong = write("w.toml", '[[rate]]\nprovider = "awss"\noff_fraction = 0.5\n')
    with pytest.raises(DataError, match="Did you mean aws"):
        api.rank(rank(discounts=wrong, **mine), today=DAY)


def test_a_workload_of_ones_own_is_ranked_by_a_run_of_it(write: Write) -> None:
    text = 'family = "cnn"\ngmacs = 4\nactivations_m = 11\nparameters_m = 25\nbatch_per_accelerator = 64\n'
    text += 'precision = "amp"\nsamples = 1000\nepochs = 3\nmeasured_as = ["ours"]\n'
    run = write("run.json", """{"schema": 1, "kind": "measurement", "created_utc": "2026-11-20T09:30:00Z",
        "workload": "ours", "device": "gpu", "accelerator": "RTX 4090", "accelerators": 1, "precision": "amp",
        "batch_per_accelerator": 64, "samples_per_s": {"value": 800.0, "low": 790.0, "high": 810.0}}""")  # fmt: skip
    methods = []
    for measured in ((), (run,)):
        job = RankRequest(workloads=(write("w.toml", text),), measured=measured, limit=1)
        methods.append(api.rank(job, today=DAY).ranking.candidates[0].prediction.method)
    assert methods == ["roofline", "ratio"]


# ---- days ----


def fx(day: str, rate: float) -> Fx:
    return Fx(code="EUR", usd_per_unit=rate, observed=date.fromisoformat(day), source="test")


@pytest.mark.parametrize(
    ("as_of", "rate", "notes"),
    [("2019-12-31", 1.1, 1), ("2020-01-01", 1.1, 0), ("2022-05-05", 1.1, 0), ("2024-01-01", 1.2, 0), (None, 1.2, 0)],
)
def test_the_rate_of_a_day_is_the_newest_that_was_known(as_of: str | None, rate: float, notes: int) -> None:
    day = date.fromisoformat(as_of) if as_of else None
    found = rate_on((fx("2020-01-01", 1.1), fx("2023-01-01", 1.2)), day)
    assert found.usd_per_unit == rate
    assert len(rate_notes(found, day or DAY)) == notes


def test_a_rate_from_after_the_day_is_said_with_its_day() -> None:
    answer = faces.rank(rank(currency="EUR", as_of=date(2020, 6, 1), limit=1), today=DAY).json()
    assert "no rate of EUR up to 2020-06-01 is known: the one of 2026-08-14 is used" in answer["warnings"]
    assert answer["fx"]["date"] == "2026-08-14"
    today = faces.rank(rank(currency="EUR", limit=1), today=DAY).json()
    assert [text for text in today["warnings"] if "no rate" in text] == []


def test_data_show_knows_on_a_day_what_was_known_then() -> None:
    then = api.data(data("show", "p4d.24xlarge", as_of=date(2022, 7, 1), limit=None), today=DAY)
    now = api.data(data("show", "p4d.24xlarge", limit=None), today=DAY)
    days = [offer.observed for offer in then.offers]  # type: ignore[union-attr]
    assert days
    assert max(day for day in days if day) <= date(2022, 7, 1)
    assert len(now.offers) > len(days)  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "first"), [("p4d.24xlarge", "2021-06-15"), ("A100", "2020-05-14")])
def test_data_show_says_since_when_a_name_is_known(name: str, first: str) -> None:
    with pytest.raises(InvalidInput, match=f"was not known on 2018-01-01, but from {first} on"):
        api.data(data("show", name, as_of=date(2018, 1, 1)), today=DAY)


def test_an_offer_of_an_unknown_number_of_gpus_is_named_and_not_shown(write: Write) -> None:
    path = write("mine.csv", OWN + SOUND + "here,big,T4,,0.5,USD,DE,2026-11-01\n")
    shown = api.data(data("show", "big", offers=(path,), only_offers=True), today=DAY)
    assert len(shown.offers) == 1  # type: ignore[union-attr]
    assert "1 offers of that name do not say how many GPUs they have" in map(str, shown.warnings)


@pytest.mark.parametrize("by", [(), ("provider",)])
def test_data_list_says_how_many_offers_it_hides_and_why(by: tuple[str, ...]) -> None:
    answer = faces.data(data("list", by=by), today=DAY)
    result = answer.json()["result"]
    assert result["hidden"]["stale_price"] > 0
    assert result["total"] + sum(result["hidden"].values()) == len(package.offers()) + len(package.machines())
    notes = [block.text for block in answer.page().blocks if isinstance(block, Text) and block.role == "note"]
    assert any("more offers are hidden: price too old" in text for text in notes)
