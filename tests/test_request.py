"""Texts become requests: every kind is read, every mistake is named with the option, the value and the rule."""

from __future__ import annotations

from datetime import date
from typing import Any, get_args

import pytest
from babel import Locale
from hypothesis import given
from hypothesis import strategies as st

from gpuwise import model, request
from gpuwise.cli.help import GROUPS as CLI_GROUPS
from gpuwise.cli.help import QUESTIONS
from gpuwise.errors import InvalidInput, UnknownName
from gpuwise.measure.count import STATE_BYTES
from gpuwise.rank.settled import SORT_KEYS
from gpuwise.request import (
    CHOICES,
    GROUPS,
    KINDS,
    VERBS,
    DataRequest,
    DescribeRequest,
    ExplainRequest,
    Option,
    OwnRequest,
    RankRequest,
    options,
    parse,
)
from gpuwise.request.places import countries, country
from gpuwise.request.wishes import USED_BY

TYPES = {verb: getattr(request, f"{verb.capitalize()}Request") for verb in VERBS}
EVERY_OPTION = [(verb, option) for verb, kind in TYPES.items() for option in options(kind).values()]
VALUED = [(v, o) for v, o in EVERY_OPTION if o.kind != "flag"]
EUR = 1.08


def named(pair: tuple[str, Option] | Any) -> str:
    return f"{pair[0]} {pair[1].name}" if isinstance(pair, tuple) else str(pair)


def rank(**said: object) -> RankRequest:
    """A request to rank one workload, with these words beside it."""
    return parse(RankRequest, {"workloads": ["painter-heavy"], **said}, usd_per={"EUR": EUR}.__getitem__)


def refusal(kind: type[Any], **said: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parse(kind, said)
    return caught.value


# ---- what the faces are made of ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", EVERY_OPTION, ids=named)
def test_every_option_says_what_it_is_for_and_has_a_parser_and_a_group(pair: tuple[str, Option]) -> None:
    option = pair[1]
    assert option.help.endswith(".")
    assert option.kind in KINDS
    assert option.group in GROUPS


@pytest.mark.parametrize("pair", VALUED, ids=named)
def test_every_option_with_a_value_names_the_value_and_gives_an_example_that_parses(pair: tuple[str, Option]) -> None:
    option = pair[1]
    assert option.metavar
    for text in option.example.split(",") if KINDS[option.kind].split else [option.example]:
        assert KINDS[option.kind].parse(text) is not None or option.kind == "limit"


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_is_named_once_in_a_request(verb: str) -> None:
    assert len(options(TYPES[verb])) == len({o.field for o in options(TYPES[verb]).values()})


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("market", get_args(model.Market)),
        ("precision", get_args(model.Precision)),
        ("sort", SORT_KEYS),
        ("optimizer", tuple(STATE_BYTES)),
    ],
)
def test_a_closed_list_is_the_list_of_the_module_that_uses_it(kind: str, known: tuple[str, ...]) -> None:
    assert CHOICES[kind] == known


def test_the_questions_of_the_program_are_those_of_the_request_types() -> None:
    assert {verb: kind.__doc__ for verb, kind in TYPES.items()} == QUESTIONS
    assert CLI_GROUPS == GROUPS


# ---- what is read -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({"deadline": "1 h 30 min"}, "deadline_s", 5400.0),
        ({"budget": "50 USD"}, "budget_usd", 50.0),
        ({"budget": "50 EUR"}, "budget_usd", 50 * EUR),
        ({"budget": "50", "currency": "EUR"}, "budget_usd", 50 * EUR),
        ({"budget": "50 USD", "currency": "EUR"}, "budget_usd", 50.0),
        ({"max-price": "2.50"}, "max_price_usd_per_hour", 2.5),
        ({"max-price": "730 USD/month"}, "max_price_usd_per_hour", 1.0),
        ({"max-price": "48 USD a day"}, "max_price_usd_per_hour", 2.0),
        ({"max-price": "0"}, "max_price_usd_per_hour", 0.0),
        ({"max_price": "2,50 €"}, "max_price_usd_per_hour", 2.5 * EUR),
        ({"as-of": "2026-02-28"}, "as_of", date(2026, 2, 28)),
        ({"as-of": date(2026, 2, 28)}, "as_of", date(2026, 2, 28)),
        ({"max-age": "90"}, "max_age_days", 90),
        ({"epochs": 2.5}, "epochs", 2.5),
        ({"batch": 64}, "batch", 64),
        ({"tax": "gross", "vat": "19 %"}, "vat_fraction", 0.19),
        ({"tax": "gross", "vat": "0.19"}, "vat_fraction", 0.19),
        ({"tax": "gross", "vat": "100%"}, "vat_fraction", 1.0),
        ({"hours-per-month": "730 h"}, "hours_per_month", 730.0),
        ({"hours-per-month": "400"}, "hours_per_month", 400.0),
        ({"gpu": "H100-SXM, A100-80GB:8"}, "gpu", ("H100-SXM", "A100-80GB:8")),
        ({"gpu": ["H100-SXM,T4", "80GB.."]}, "gpu", ("H100-SXM", "T4", "80GB..")),
        ({"gpu": ("H100-SXM",)}, "gpu", ("H100-SXM",)),
        ({"offers": "mine, and yours.csv"}, "offers", ("mine, and yours.csv",)),
        ({"market": "SPOT,on-demand"}, "market", ("spot", "on-demand")),
        ({"data-must-stay": "de"}, "data_must_stay", "DE"),
        ({"data-must-stay": "On-Premises"}, "data_must_stay", "on-premises"),
        ({"currency": "eur"}, "currency", "EUR"),
        ({"precision": "AMP"}, "precision", "amp"),
        ({"limit": "all"}, "limit", None),
        ({"limit": "5"}, "limit", 5),
        ({"startable": True}, "startable", True),
        ({"startable": "true"}, "startable", True),
        ({"startable": "off"}, "startable", False),
    ],
)
def test_what_a_person_says_becomes_a_value_in_our_units(said: dict[str, object], field: str, value: object) -> None:
    assert getattr(rank(**said), field) == (pytest.approx(value) if isinstance(value, float) else value)


def test_what_is_not_said_keeps_its_default() -> None:
    assert rank() == RankRequest(workloads=("painter-heavy",))


@given(
    count=st.integers(1, 10**6),
    budget=st.decimals(min_value=0, max_value=10**6, places=2),
    hours=st.integers(1, 10**4),
    day=st.dates(),
)
def test_numbers_of_toml_and_texts_of_a_command_line_are_read_alike(
    count: int, budget: Any, hours: int, day: date
) -> None:
    typed = rank(batch=str(count), budget=f"{budget} USD", deadline=f"{hours} h", **{"as-of": day.isoformat()})
    written = rank(batch=count, budget=float(budget), deadline=f"{hours * 60}min", as_of=day)
    assert typed.batch == written.batch == count
    assert (typed.budget_usd, typed.deadline_s, typed.as_of) == (
        pytest.approx(float(budget)), pytest.approx(written.deadline_s), written.as_of,
    )  # fmt: skip


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"deadline": "3"}, ["--deadline", '"3"', "no unit"]),
        ({"deadline": "soon"}, ["--deadline", "soon", "not a duration"]),
        ({"budget": "-5"}, ["--budget", "-5"]),
        ({"budget": "lots"}, ["--budget", "lots"]),
        ({"budget": "50 USD/month"}, ["--budget", "a sum", "month"]),
        ({"max-price": "2 USD/kWh"}, ["--max-price", "kwh"]),
        ({"as-of": "30.11.2026"}, ["--as-of", "30.11.2026", "YYYY-MM-DD"]),
        ({"as-of": "2026-02-30"}, ["--as-of", "2026-02-30", "calendar"]),
        ({"batch": "many"}, ["--batch", "many"]),
        ({"batch": "0"}, ["--batch", "0", "above 0"]),
        ({"batch": "1.5"}, ["--batch", "1.5", "whole"]),
        ({"batch": True}, ["--batch", "True"]),
        ({"batch": {"a": 1}}, ["--batch"]),
        ({"epochs": "nan"}, ["--epochs", "nan"]),
        ({"epochs": "inf"}, ["--epochs", "inf"]),
        ({"epochs": ["1", "2"]}, ["--epochs", "only once"]),
        ({"vat": "19", "tax": "gross"}, ["--vat", "19", "per cent"]),
        ({"market": "spott"}, ["--market", "spott", "on-demand"]),
        ({"precision": "fp99"}, ["--precision", "fp99", "amp"]),
        ({"data-must-stay": "Germany"}, ["--data-must-stay", "Germany", "country code"]),
        ({"data-must-stay": "on premise"}, ["--data-must-stay", "on premise", "country code"]),
        ({"currency": "€"}, ["--currency", "€"]),
        ({"startable": "perhaps"}, ["--startable", "perhaps"]),
        ({"gpu": ""}, ["--gpu", "empty"]),
        ({"gpu": "48GB..24GB"}, ["--gpu", "48GB..24GB", "empty"]),
        ({"gpu": "some..GB"}, ["--gpu", "some"]),
        ({"gpu": "T4,,V100"}, ["--gpu", "empty"]),
        ({"budget": "50 EUR"}, ["--budget", "EUR", "rate"]),
    ],
)
def test_a_bad_value_is_refused_with_option_value_rule_and_what_to_do(
    said: dict[str, object], words: list[str]
) -> None:
    error = refusal(RankRequest, workloads="painter-heavy", **said)
    assert [w for w in words if w not in str(error.message)] == []
    assert str(error.hint)


@pytest.mark.parametrize(
    ("said", "problem", "hint"),
    [
        ({"limit": "0"}, "above 0", "1 or more, or all"),
        ({"jobs": "0"}, "above 0", "whole number from 1 up"),
        ({"jobs": "1.5"}, "whole", "whole number from 1 up"),
        ({"samples": "79,433"}, '"79,433" may be 79433 or 79.433.', "without a sign between thousands"),
        ({"budget": "1,000USD"}, '"1,000" may be 1000 or 1.', "without a sign between thousands"),
        ({"hours-per-month": "nan"}, "not a number of hours", "400"),
        ({"hours-per-month": "800"}, "730 hours of a month", "up to 730"),
        ({"hours-per-month": "40 d"}, "730 hours of a month", "up to 730"),
        ({"vat": "19", "tax": "gross"}, "no per cent sign", '"19 %"'),
        ({"vat": "1", "tax": "gross"}, "no per cent sign", '"1 %"'),
        ({"vat": "0.51", "tax": "gross"}, "may be 0.51 % or 51 %", '"0.51 %"'),
    ],
)
def test_a_hint_fits_the_option(said: dict[str, object], problem: str, hint: str) -> None:
    error = refusal(RankRequest, workloads="painter-heavy", **said)
    assert problem in str(error.message)
    assert hint in str(error.hint)
    assert "column" not in str(error)


@pytest.mark.parametrize(
    ("said", "problem", "hint"),
    [
        ({"server-price": "0USD"}, "no price", "240000 EUR"),
        ({"cloud-price": "0"}, "no price", "2.99 USD"),
        ({"server-gpus": "0"}, "above 0", "from 1 up"),
        ({"server-power": "0kW"}, "above 0", "10.2 kW"),
        ({"room-power": "0 W"}, "above 0", "10.2 kW"),
        ({"data-size": "0GB"}, "above 0", "150 GB"),
        ({"link": "0Gbit/s"}, "above 0", "1 Gbit/s"),
        ({"every": "0d"}, "no time between", "7 d"),
        ({"every": "never"}, "not a duration", "1 h 30 min"),
        ({"interest": "8"}, "may be 8 % or 800 %", '"8 %", or as a fraction 0.08'),
        ({"data-change": "8"}, "no per cent sign", '"8 %", or as a fraction 0.08'),
        ({"seed": "-1"}, "from 0 up", "0, 1, 2"),
        ({"seed": "1.5"}, "whole number", "0, 1, 2"),
        ({"horizon": "0"}, "no unit", "from 6 months to 15 years"),
        ({"horizon": "5"}, "no unit", '"5y"'),
        ({"horizon": "100y"}, "too long", "from 6 months to 15 years"),
        ({"horizon": "0 months"}, "too short", "from 6 months to 15 years"),
        ({"horizon": "18.5 months"}, "whole", "from 6 months to 15 years"),
        ({"demand": "0 GPUs"}, '"0 GPUs" is no work', "8 GPUs"),
        ({"demand": "-5 GPUs"}, '"-5 GPUs" is no work', "8 GPUs"),
        ({"demand": "1e6"}, "how much work", "GPU-h/month"),
        ({"demand": "40..80 GPUs"}, "a range", '--demand "60 GPUs" --set demand_gpu_h_per_month=29200..58400'),
        ({"demand": "40 GPUs to 80 GPUs"}, "a range", "29200..58400"),
        ({"demand": "1000-3000 GPU-h/month"}, "a range", '"2000 GPU-h/month" --set demand_gpu_h_per_month=1000..3000'),
    ],
)  # fmt: skip
def test_a_figure_of_owning_that_means_nothing_is_refused_with_what_is_possible(
    said: dict[str, object], problem: str, hint: str
) -> None:
    error = refusal(OwnRequest, **{"demand": "8 GPUs", **said})
    assert f"--{next(iter(said))}: " in str(error.message)
    assert problem in str(error.message)
    assert hint in str(error.hint)
    assert "VAT" not in str(error)


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({"demand": "1e6 GPU-h/month"}, "demand_gpu_h_per_month", 1e6),
        ({"demand": "1.5E3 GPUs"}, "demand_gpu_h_per_month", 1500 * 730),
        ({"electricity": "0 EUR/kWh", "currency": "USD"}, "electricity_usd_per_kwh", 0.0),
        ({"interest": "0"}, "interest_fraction", 0.0),
        ({"data-change": "0"}, "data_change_fraction_per_day", 0.0),
        ({"seed": "0"}, "seed", 0),
        ({"horizon": "6 months"}, "horizon_months", 6),
        ({"horizon": "1.5y"}, "horizon_months", 18),
    ],
)
def test_a_figure_of_owning_that_means_something_is_read(said: dict[str, object], field: str, value: object) -> None:
    asked = parse(OwnRequest, {"demand": "8 GPUs", **said}, usd_per={"EUR": EUR}.__getitem__)
    assert getattr(asked, field) == pytest.approx(value)


def test_an_error_says_where_it_was_said() -> None:
    with pytest.raises(InvalidInput, match=r"deadline in job\.toml: "):
        parse(RankRequest, {"workloads": "a", "deadline": "3"}, spelled={"deadline": "deadline in job.toml"})


@pytest.mark.parametrize(("typo", "meant"), [("deadlin", "deadline"), ("max_pric", "max-price"), ("GPU", "gpu")])
def test_an_unknown_option_is_refused_with_the_nearest(typo: str, meant: str) -> None:
    error = refusal(RankRequest, workloads="painter-heavy", **{typo: "1"})
    assert isinstance(error, UnknownName)
    assert error.nearest[0] == meant
    assert str(error) == f"There is no option {typo}. Did you mean {meant}?"


def test_an_option_that_is_like_none_is_refused_with_where_they_stand() -> None:
    error = refusal(OwnRequest, zzyx="1")
    assert str(error) == "There is no option zzyx. See what there is: gpuwise own --help"


def test_a_mistyped_choice_names_the_nearest() -> None:
    error = refusal(RankRequest, workloads="painter-heavy", market="on-demnd")
    assert isinstance(error, UnknownName)
    assert error.nearest[0] == "on-demand"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("Germany", "DE"), ("UK", "GB"), ("uk", "GB"), ("D", "DE"), ("Untied States", "US"), ("Europe", "EU")],
)
def test_a_country_by_name_is_refused_with_the_code_that_is_meant(written: str, meant: str) -> None:
    error = refusal(RankRequest, workloads="painter-heavy", **{"data-must-stay": written})
    assert isinstance(error, UnknownName)
    assert error.nearest == (meant,)
    assert f"Did you mean {meant} (" in str(error.hint)


def test_the_countries_are_those_of_iso_3166() -> None:
    others = {"AC", "CP", "CQ", "DG", "EA", "EZ", "IC", "QO", "TA", "UN", "XA", "XB", "XK", "ZZ"}  # CLDR's own
    known = {code for code in Locale("en").territories if len(code) == 2 and code.isalpha()}
    assert set(countries()) == known - others


@pytest.mark.parametrize("code", ["de", " DE ", "eu", "na"])
def test_a_country_code_is_read_in_any_case(code: str) -> None:
    assert country(code) == code.strip().upper()


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("ceilings", "check", "accuracy")])
def test_what_must_be_said_is_asked_for_with_an_example(verb: str) -> None:
    error = refusal(TYPES[verb])
    assert "is missing" in str(error.message)
    assert str(error.hint)


@pytest.mark.parametrize(
    "said",
    [
        {"gpu": ["80GB..", "..24GB"]},
        {"gpu": "1..2,4.."},
        {"gpu": "H100-SXM:8,1..4"},
        {"gpu": "24GB,80GB"},
        {"gpu": "2,4"},
        {"only-offers": True},
        {"data-must-stay": "on-premises", "market": "spot,on-demand"},
        {"tax": "gross"},
        {"vat": "19 %"},
    ],
)
def test_wishes_that_exclude_each_other_are_refused(said: dict[str, object]) -> None:
    error = refusal(RankRequest, workloads="painter-heavy", **said)
    assert all(f"--{name}" in str(error) for name in said)


@pytest.mark.parametrize(
    "said",
    [
        {"gpu": "24GB..,..80GB"},
        {"gpu": "H100-SXM:8,A100-80GB,1..4"},
        {"gpu": "4090,8"},
        {"gpu": "H100-SXM:4..8,1..4"},
        {"only-offers": True, "machine": "mine.toml"},
        {"only-offers": True, "live": True},
        {"data-must-stay": "on-premises", "market": "owned"},
        {"max-price": "0"},
        {"deadline": "1 min", "prepare": "1 h"},
    ],
)
def test_wishes_that_something_might_meet_are_left_to_the_ranking(said: dict[str, object]) -> None:
    assert rank(**said)


def test_offer_and_gpu_exclude_each_other_in_explain() -> None:
    refusal(ExplainRequest, workload="painter-heavy", offer="a", on="T4")
    assert parse(ExplainRequest, {"workload": "painter-heavy"}).on is None


def test_a_sequence_and_an_image_exclude_each_other_in_describe() -> None:
    refusal(DescribeRequest, target="gpt", tokens="512", **{"input-size": "299"})
    assert parse(DescribeRequest, {"target": "gpt", "tokens": "512"}).tokens == 512


@pytest.mark.parametrize(
    ("action", "names"),
    [("show", []), ("show", ["a", "b"]), ("diff", ["a"]), ("list", ["a"]), ("check", ["a"]), ("refresh", ["a"])],
)
def test_data_asks_for_as_many_names_as_the_action_needs(action: str, names: list[str]) -> None:
    assert f"data {action}" in str(refusal(DataRequest, action=action, names=names).message)


@pytest.mark.parametrize(
    ("action", "names", "said"),
    [
        ("check", [], {"gpu": "T4"}),
        ("refresh", [], {"max-age": "90"}),
        ("show", ["verda"], {"provider": "verda"}),
        ("show", ["verda"], {"by": "gpu"}),
        ("diff", ["a", "b"], {"offers": "a.csv"}),
        ("check", [], {"currency": "EUR"}),
    ],
)
def test_data_refuses_an_option_that_its_action_does_not_look_at(
    action: str, names: list[str], said: dict[str, object]
) -> None:
    error = refusal(DataRequest, action=action, names=names, **said)
    assert f"has no meaning with data {action}" in str(error.message)
    assert "data list" in str(error.hint)


def test_every_option_of_data_is_used_by_some_action() -> None:
    fields = {o.field for o in options(DataRequest).values() if not o.positional}
    assert frozenset().union(*USED_BY.values()) == fields
    assert set(USED_BY) == set(CHOICES["action"])


@pytest.mark.parametrize(("action", "example"), [("show", "data show p2.xlarge"), ("diff", "data diff 2026-01-01")])
def test_the_example_of_an_action_is_its_own(action: str, example: str) -> None:
    assert example in str(refusal(DataRequest, action=action).hint)


def test_data_counts_only_in_a_list() -> None:
    refusal(DataRequest, action="check", by="provider")
    assert parse(DataRequest, {"action": "list", "by": "provider,gpu"}).by == ("provider", "gpu")
