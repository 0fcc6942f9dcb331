"""A person's price list ↔ a catalogue."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.catalogue import DATES, NUMBERS, TEXT, Catalogue, Coded, from_rows
from gpuwise.errors import DataError
from gpuwise.model import Fx, Offer
from gpuwise.render.data import csv_text
from gpuwise.store import package
from gpuwise.store.cache import Loaded
from gpuwise.store.facts import Facts
from gpuwise.store.sheet import neutralise, restore
from gpuwise.store.tables import parse_offers, read_offers
from gpuwise.view.offers import offer_columns
from gpuwise.view.page import tabulate


@pytest.fixture
def at_108(facts: Facts) -> Facts:
    """The euro at 1.08 USD."""
    rate = Fx(code="EUR", usd_per_unit=1.08, observed=date(2026, 11, 2), source="test")
    return Facts(accelerators=facts.accelerators, fx={"EUR": rate}, countries={("cloudy", "eu-1"): "NL"})


def load(text: str, facts: Facts, name: str = "mine.csv") -> Loaded:
    return parse_offers(text.encode(), name, facts)


def offers(text: str, facts: Facts) -> list[Offer]:
    catalogue = load(text, facts).catalogue
    assert catalogue.rejects == ()
    return [catalogue.offer(i) for i in range(len(catalogue))]


def prices(cells: list[str], facts: Facts, header: str = "price") -> list[float | None]:
    quoted = "".join(f'H100 SXM,"{cell}",USD\n' for cell in cells)
    return [o.price_usd_per_hour for o in offers(f'gpu,"{header}",currency\n{quoted}', facts)]


def write_catalogue(catalogue: Catalogue) -> bytes:
    """What `data list --csv` prints for these offers."""
    found = [catalogue.offer(i) for i in range(len(catalogue))]
    return csv_text(tabulate("", offer_columns(None), found)).encode()


def same(a: Catalogue, b: Catalogue) -> bool:
    def column(catalogue: Catalogue, name: str) -> list[object]:
        values = getattr(catalogue, name)
        return [values[i] for i in range(len(values))] if isinstance(values, Coded) else values.tolist()

    texts = all(column(a, c) == column(b, c) for c in (*TEXT, *DATES))
    return texts and all(np.allclose(getattr(a, c), getattr(b, c), rtol=1e-12, equal_nan=True) for c in NUMBERS)


# ---- prices ----


@pytest.mark.parametrize("cell", ["", "NaN", "0", "-1", "n/a"])
def test_uc_065_a_price_that_is_none_is_unknown_and_never_filled_in(cell: str, facts: Facts) -> None:
    known, unknown = offers(f"gpu,gpu_count,price,currency\nH100 SXM,8,20,USD\nH100 SXM,8,{cell},USD\n", facts)
    assert known.price_usd_per_hour == 20
    assert unknown.price_usd_per_hour is None
    assert unknown.price_native is None
    assert str(unknown.reasons["price_usd_per_hour"]) == "the source gives no usable price"


def test_uc_065_zero_is_a_price_only_where_the_row_is_marked_as_free(facts: Facts) -> None:
    text = "gpu,price,currency,price_state\nT4,0,USD,free\nT4,,USD,free\nT4,0,USD,listed\nT4,0,USD,\n"
    assert [o.price_usd_per_hour for o in offers(text, facts)] == [0.0, 0.0, None, None]


@pytest.mark.parametrize("state", ["minimum bid", "incomplete", "suspect", "unknown"])
def test_a_price_that_is_no_price_is_kept_as_published_and_not_ranked_on(state: str, facts: Facts) -> None:
    (offer,) = offers(f"gpu,price,currency,price_state\nB200,0.01,USD,{state}\n", facts)
    assert (offer.price_native, offer.price_usd_per_hour) == (0.01, None)


def test_uc_085_the_full_price_is_kept(facts: Facts) -> None:
    (offer,) = offers("gpu,price,currency,price_unit\nT4,6.132,USD,month\n", facts)
    assert offer.price_usd_per_hour == 6.132 / 730
    assert offer.price_usd_per_hour * 730 == pytest.approx(6.132, abs=1e-12)
    (offer,) = offers("gpu,price,currency\nT4,0.0084,USD\n", facts)
    assert offer.price_usd_per_hour == 0.0084


def test_uc_088_euros_become_dollars_at_a_dated_rate_and_the_original_stays(at_108: Facts) -> None:
    loaded = load("gpu,price,currency\nT4,0.94,EUR\n", at_108)
    offer = loaded.catalogue.offer(0)
    assert offer.price_usd_per_hour == pytest.approx(1.015, abs=5e-4)
    assert (offer.price_native, offer.currency) == (0.94, "EUR")
    assert "mine.csv: 1 EUR = 1.08 USD on 2026-11-02" in map(str, loaded.notes)


def test_uc_088_an_amount_without_currency_is_refused_and_not_assumed(facts: Facts) -> None:
    catalogue = load("gpu,price,currency\nT4,0.94,\nT4,0.95,USD\n", facts).catalogue
    assert [str(r) for r in catalogue.rejects] == ["mine.csv, line 2: currency: an amount without currency is not read"]
    assert len(catalogue) == 1
    with pytest.raises(DataError, match="currency is missing") as caught:
        load("gpu,price\nT4,0.94\n", facts)
    assert (caught.value.column, caught.value.row) == ("currency", 1)


def test_uc_088_a_sign_that_is_not_the_currency_of_the_row_is_refused(facts: Facts) -> None:
    (reject,) = load("gpu,price,currency\nT4,$0.94,EUR\n", facts).catalogue.rejects
    assert str(reject) == "mine.csv, line 2: price: the sign in the cell is not the currency of the row"


def test_a_currency_without_rate_needs_the_persons_own(facts: Facts) -> None:
    catalogue = load("gpu,price,currency,usd_per_unit\nT4,1,GBP,\nT4,1,GBP,1.27\n", facts).catalogue
    assert [str(r) for r in catalogue.rejects] == [
        "mine.csv, line 2: currency: no rate for GBP is known: give yours in usd_per_unit"
    ]
    assert catalogue.offer(0).price_usd_per_hour == 1.27


@pytest.mark.parametrize(
    ("cell", "hourly"),
    [("2,50 €", 2.7), ("€2.50", 2.7), ("2.50 EUR/h", 2.7), ("$1.20", 1.2), ("730 EUR/month", 1.08)],
)
def test_uc_117_the_currency_may_stand_in_the_price_cells(cell: str, hourly: float, at_108: Facts) -> None:
    (offer,) = offers(f"gpu;price\nT4;{cell}\n", at_108)
    assert offer.price_usd_per_hour == pytest.approx(hourly)


def test_uc_117_three_encodings_of_one_price_list_are_one_catalogue(at_108: Facts) -> None:
    text = "gpu;price\nH100 SXM;2,50 €\nT4;0,35 €\n"
    encodings = (b"\xef\xbb\xbf" + text.encode(), b"\xff\xfe" + text.encode("utf-16-le"), text.encode("cp1252"))
    first, *others = (parse_offers(content, "mine.csv", at_108).catalogue for content in encodings)
    assert first.price_usd_per_hour.tolist() == pytest.approx([2.7, 0.378])
    assert all(same(first, other) for other in others)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_uc_118_any_separator_gives_the_same_catalogue(separator: str, facts: Facts) -> None:
    text = "gpu,gpu_count,price,currency,note\nH100 SXM,8,20.5,USD,x\nT4,1,0.35,EUR,\n"
    other = text.replace(",", separator)
    assert same(load(text, facts).catalogue, load(other, facts).catalogue)


def test_uc_118_the_rows_read_and_skipped_are_stated(facts: Facts) -> None:
    loaded = load("gpu,price,currency\nT4,1,USD\n\nT4,1,\nT4,x,USD\n\n", facts)
    assert str(loaded.notes[0]) == "mine.csv: 1 rows read, 2 refused, 2 empty"


def test_uc_089_the_tax_state_of_a_price_is_read_and_unknown_where_it_is_not_stated(facts: Facts) -> None:
    text = "gpu,price,currency,tax,vat_fraction\nT4,1.00,EUR,net,\nT4,1.10,EUR,gross,19 %\nT4,1,EUR,,\n"
    catalogue = load(text, facts).catalogue
    assert [catalogue.tax[i] for i in range(3)] == ["net", "gross", None]
    assert catalogue.vat_fraction[1] == 0.19


def test_uc_090_commitments_are_rows_of_their_own_with_term_and_obligation(facts: Facts) -> None:
    text = """gpu,price,currency,price_unit,market,term_h,upfront
H100 SXM,3.00,USD,hour,on-demand,,
H100 SXM,15768,USD,term,reserved,8760,
H100 SXM,0,USD,hour,reserved,8760,15768
H100 SXM,1.35,USD,hour,reserved,26280,
H100 SXM,0.90,USD,hour,reserved,8760,7884
"""
    found = offers(text, facts)
    assert [o.price_usd_per_hour for o in found] == pytest.approx([3.0, 1.8, 1.8, 1.35, 1.8])
    assert [o.upfront_usd for o in found] == [None, 15768, 15768, None, 7884]
    assert [o.term_h for o in found] == [None, 8760, 8760, 26280, 8760]


@pytest.mark.parametrize(
    ("price", "unit", "term_h", "market", "hourly"),
    [
        ("650", "month", "", "dedicated", 650 / 730),
        ("650 USD/month", "", "", "dedicated", 650 / 730),
        ("15768", "term", "8760", "reserved", 1.8),
        ("2.06", "hour", "", "on-demand", 2.06),
    ],
)
def test_what_is_owed_for_a_month_or_a_term_is_not_billed_by_the_hour(
    price: str, unit: str, term_h: str, market: str, hourly: float, facts: Facts
) -> None:
    loaded = load(f"gpu,price,currency,price_unit,term_h\nT4,{price},USD,{unit},{term_h}\n", facts)
    offer = loaded.catalogue.offer(0)
    assert (offer.market, offer.price_usd_per_hour) == (market, pytest.approx(hourly))
    assert any(f"no market: {market} is taken" in str(note) for note in loaded.notes) == (market != "on-demand")


@pytest.mark.parametrize("market", ["on-demand", "spot", "community"])
def test_a_price_a_month_that_is_called_paid_by_use_is_refused_with_the_reason(market: str, facts: Facts) -> None:
    text = f"gpu,price,currency,price_unit,market,term_h\nT4,650,USD,month,{market},\nT4,9000,USD,term,{market},8760\n"
    month, term = map(str, load(text, facts).catalogue.rejects)
    assert month.startswith(f"mine.csv, line 2: market: what is paid by the month is owed for all of it, and {market}")
    assert "write dedicated" in month
    assert "line 3: market: what is paid by the term" in term
    assert "write reserved" in term


def test_an_advance_payment_without_a_market_is_a_reservation_and_needs_its_length(facts: Facts) -> None:
    text = "gpu,price,currency,upfront,term_h\nT4,0.5,USD,876,8760\nT4,0.5,USD,876,\n"
    catalogue = load(text, facts).catalogue
    assert (catalogue.market[0], catalogue.price_usd_per_hour[0]) == ("reserved", pytest.approx(0.6))
    assert [str(r) for r in catalogue.rejects] == ["mine.csv, line 3: term_h: the length of the commitment is missing"]


def test_only_an_owned_machine_has_a_running_cost_beside_its_price(facts: Facts) -> None:
    header = "gpu,price,currency,price_unit,market,running_usd_per_hour\n"
    catalogue = load(f"{header}T4,730,USD,month,owned,0.25\nT4,730,USD,month,dedicated,0.25\n", facts).catalogue
    assert catalogue.price_usd_per_hour.tolist() == [1.25]
    assert "line 3: running_usd_per_hour: only an owned machine has it" in str(catalogue.rejects[0])


def test_uc_090_a_commitment_of_unknown_length_is_refused(facts: Facts) -> None:
    (reject,) = load("gpu,price,currency,market\nT4,1,USD,reserved\n", facts).catalogue.rejects
    assert str(reject) == "mine.csv, line 2: term_h: the length of the commitment is missing"


def test_uc_065_a_count_that_an_instance_type_cannot_have_is_flagged(facts: Facts) -> None:
    text = "provider,instance,gpu,gpu_count,price,currency\naws,p3.2xlarge,V100,{},3.06,USD\n"
    (wrong,), (right,) = offers(text.format(12), facts), offers(text.format(1), facts)
    assert wrong.note == "12 GPUs are stated, p3.2xlarge has 1"
    assert right.note == ""


def test_a_price_in_usd_an_hour_needs_no_currency(facts: Facts) -> None:
    (offer,) = offers("gpu,price_usd_per_hour,currency\nT4,0.35,EUR\n", facts)
    assert (offer.price_usd_per_hour, offer.currency) == (0.35, "USD")


# ---- numbers ----


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1.234,56", "0,75", "9,99", "1.234.567"], [1234.56, 0.75, 9.99, 1234567.0]),
        (["0,75", "-2,40", "9,99"], [0.75, None, 9.99]),
        (["1\u202f234,56"], [1234.56]),
        (["1'234.50"], [1234.5]),
        (["1,234", "1,500.95"], [1234.0, 1500.95]),
        (["1.234"], [1.234]),
    ],
)
def test_uc_115_the_signs_of_numbers_are_found_for_the_whole_column(
    cells: list[str], read: list[float | None], facts: Facts
) -> None:
    assert prices(cells, facts) == read


def test_uc_115_a_per_cent_sign_makes_a_fraction(facts: Facts) -> None:
    text = 'gpu;price;currency;vat_fraction\nT4;1;EUR;"12,5 %"\n'
    assert load(text, facts).catalogue.vat_fraction.tolist() == [0.125]


def test_uc_116_numbers_that_may_be_read_two_ways_refuse_the_file_with_both_readings(facts: Facts) -> None:
    with pytest.raises(DataError, match=r"column price: .*may be 1234 or 1\.234") as caught:
        prices(["1,234", "2,500"], facts)
    assert caught.value.column == "price"
    assert 'Show how it writes numbers in the header: "price [1234.56]"' in str(caught.value)


def test_uc_116_an_example_in_the_header_decides(facts: Facts) -> None:
    assert prices(["1,234", "2,500"], facts, "price [1,234.56]") == [1234.0, 2500.0]
    assert prices(["1,234", "2,500"], facts, "price [1.234,56]") == [1.234, 2.5]
    assert prices(["1.234"], facts, "price [1.234,56]") == [1234.0]


def test_uc_116_a_reading_that_was_assumed_is_noted(facts: Facts) -> None:
    notes = [str(n) for n in load("gpu,price,currency\nT4,1.234,USD\n", facts).notes]
    assert any('price: "1.234" was read as 1.234, not 1234' in note for note in notes)


def test_uc_116_plain_numbers_beside_doubtful_ones_do_not_decide(facts: Facts) -> None:
    with pytest.raises(DataError, match="may be 1234 or"):
        prices(["1,234", "950"], facts)


def test_a_long_column_of_nonsense_refuses_each_of_its_rows(facts: Facts) -> None:
    rows = "".join(f"T4,nonsense {i},USD\n" for i in range(20_000))
    catalogue = load(f"gpu,price,currency\n{rows}", facts).catalogue
    assert (len(catalogue), len(catalogue.rejects)) == (0, 20_000)


def test_units_in_cells_are_understood(facts: Facts) -> None:
    text = "gpu,gpu_memory,memory,price,currency,billing_step_s\nT4,16 GB,64 GiB,1,USD,1 min\n"
    catalogue = load(text, facts).catalogue
    assert (catalogue.memory_gib[0], catalogue.host_memory_gib[0], catalogue.billing_step_s[0]) == (16, 64, 60)


# ---- GPUs and places ----


def test_uc_070_memory_is_stated_per_gpu_whatever_the_source_counts(facts: Facts) -> None:
    text = "gpu,gpus,gpu_memory,price,currency\nA100,8,640,20,USD\nA100,8,40,15,USD\nA100,8,80,20,USD\n"
    found = offers(text, facts)
    assert [o.memory_gib for o in found] == [80, 40, 80]
    assert [o.accelerator for o in found] == [
        "a100-pcie-80gb|a100-sxm4-80gb",
        "a100-pcie-40gb|a100-sxm4-40gb",
        "a100-pcie-80gb|a100-sxm4-80gb",
    ]


def test_uc_070_memory_that_fits_no_reading_is_flagged_and_not_used(facts: Facts) -> None:
    loaded = load("gpu,gpus,gpu_memory,price,currency\nT4,2,99,1,USD\n", facts)
    offer = loaded.catalogue.offer(0)
    assert (offer.accelerator, offer.memory_gib) == ("t4", None)
    assert "99 GB for 2 GPUs is no size" in offer.note
    assert any("1 rows: 99 GB" in str(note) for note in loaded.notes)


def test_the_name_of_the_instance_says_which_variant_it_is(facts: Facts) -> None:
    text = "gpu,instance,price,currency\nA100,gpu_8x_a100_80gb_sxm4,20,USD\nA100,p4,20,USD\nT4,x,1,USD\n"
    assert [o.accelerator for o in offers(text, facts)] == [
        "a100-sxm4-80gb",
        "a100-pcie-40gb|a100-pcie-80gb|a100-sxm4-40gb|a100-sxm4-80gb",
        "t4",
    ]


def test_an_unknown_gpu_keeps_its_row_and_is_never_taken_for_another(facts: Facts) -> None:
    (offer,) = offers("gpu,price,currency,note\nH101,1,USD,cheap\n", facts)
    assert offer.accelerator == "unknown"
    assert offer.note == 'cheap; the GPU "H101" is not known'


def test_an_unknown_number_of_gpus_is_not_one(facts: Facts) -> None:
    catalogue = load("gpu,gpu_count,price,currency\nT4,,1,USD\nT4,0.5,1,USD\n", facts).catalogue
    assert math.isnan(catalogue.accelerators[0])
    assert "line 3: gpu_count: a part of a GPU is not read" in str(catalogue.rejects[0])


def test_uc_079_region_na_stays_text_there_and_back(facts: Facts) -> None:
    wanted = ["NA", "EU", "null", "None", "nan", None]
    text = "gpu,region,price,currency\n" + "".join(f"T4,{region or ''},1,USD\n" for region in wanted)
    catalogue = load(text, facts).catalogue
    assert [catalogue.offer(i).region for i in range(6)] == wanted
    again = parse_offers(write_catalogue(catalogue), "mine.csv", facts).catalogue
    assert [again.offer(i).region for i in range(6)] == wanted
    assert catalogue.region.isin(("NA",)).tolist() == [True] + [False] * 5


def test_the_country_of_a_known_region_is_filled_in_and_a_stated_one_stays(at_108: Facts) -> None:
    rows = ("cloudy,eu-1,,T4,1,USD", "cloudy,eu-1,DE,T4,1,USD", "x,eu-1,,T4,1,USD")
    text = "\n".join(("provider,region,country,gpu,price,currency", *rows))
    assert [o.country for o in offers(text, at_108)] == ["NL", "DE", None]


def test_a_country_is_a_code_in_any_case_and_a_name_is_refused_with_the_code(facts: Facts) -> None:
    text = "gpu,price,currency,country\n" + "".join(f"T4,1,USD,{c}\n" for c in ("de", "EU", "Germany", "UK", "D", ""))
    catalogue = load(text, facts).catalogue
    assert [catalogue.country[i] for i in range(len(catalogue))] == ["DE", "EU", None]
    meant = [("Germany", "DE"), ("UK", "GB"), ("D", "DE")]
    for (written, code), reject in zip(meant, map(str, catalogue.rejects), strict=True):
        assert f'country: "{written}" is not a country code' in reject
        assert f"Did you mean {code} (" in reject


# ---- columns and rows ----


def test_uc_080_unknown_columns_are_left_out_with_a_warning_and_missing_ones_are_none(facts: Facts) -> None:
    loaded = load("gpu,gpu_arch2,price,currency\nT4,turing,1.5,USD\n", facts)
    assert "mine.csv: columns not known and not used: gpu_arch2" in map(str, loaded.notes)
    offer = loaded.catalogue.offer(0)
    assert (offer.vcpus, offer.region, offer.observed) == (None, None, None)


def test_uc_080_faulty_rows_are_rejects_with_line_field_and_reason_and_stop_nothing(facts: Facts) -> None:
    text = """gpu,price,currency,cpu,observed,market
T4,"1,10",USD,4,2026-01-01,spot
T4,1.20,USD,many,2026-01-01,spot
T4,1.20,USD,4,01/02/2026,spot
T4,1.20,USD,4,2026-02-30,spot
T4,1.20,USD,4,2026-01-01,auction
T4,1.20,USD,-4,2026-01-01,spot
T4,1.30,USD,4,2026-01-01,spot
"""
    catalogue = load(text, facts).catalogue
    assert [catalogue.offer(i).price_usd_per_hour for i in range(len(catalogue))] == [1.3]
    starts = [
        'mine.csv, line 2: price: "1,10"',
        'mine.csv, line 3: cpu: "many"',
        'mine.csv, line 4: observed: "01/02/2026"',
        'mine.csv, line 5: observed: There is no day "2026-02-30"',
        'mine.csv, line 6: market: "auction" is none of on-demand, spot',
        'mine.csv, line 7: cpu: "-4" is below 0',
    ]
    assert [str(r).startswith(s) for r, s in zip(catalogue.rejects, starts, strict=True)] == [True] * 6


@pytest.mark.parametrize("missing", ["accelerator", "price"])
def test_a_missing_needed_column_is_one_error_that_lists_what_is_there(missing: str, facts: Facts) -> None:
    header = {"accelerator": "card,price,currency", "price": "gpu,cost,currency"}[missing]
    with pytest.raises(DataError, match=f"line 1: the column {missing} is missing; there are") as caught:
        load(f"{header}\nT4,1,USD\n", facts)
    assert (caught.value.file, caught.value.column) == ("mine.csv", missing)


def test_two_columns_of_one_meaning_are_refused(facts: Facts) -> None:
    with pytest.raises(DataError, match="the columns gpu and accelerator mean the same"):
        load("gpu,accelerator,price,currency\nT4,T4,1,USD\n", facts)


def test_the_columns_of_gpuhunt_are_understood_and_rows_without_gpu_counted(facts: Facts) -> None:
    text = """instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags
a2-highgpu-1g,us-central1,3.67,12,85,1,A100,40.0,False,,nvidia,
a2-highgpu-1g,us-central1,1.10,12,85,1,A100,40.0,True,,nvidia,
e2-medium,us-central1,0.03,2,4,0,,,False,,,
"""
    loaded = load(text, facts, "gcp.csv")
    first, spot = (loaded.catalogue.offer(i) for i in range(2))
    assert (first.provider, first.market, spot.market) == ("gcp", "on-demand", "spot")
    assert (first.memory_gib, first.host_memory_gib, first.vcpus) == (40, 85, 12)
    assert [str(n) for n in loaded.notes] == [
        "gcp.csv: 2 rows read, 0 refused, 0 empty",
        "gcp.csv: 1 rows without a GPU left out",
    ]


def test_the_columns_of_skypilot_are_understood_and_the_spot_price_is_an_offer_of_its_own(facts: Facts) -> None:
    header = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice"
    header += ",Region,AvailabilityZone"
    text = """
p3.2xlarge,V100,1.0,8.0,61.0,"{'Gpus': []}",3.06,0.92,us-east-1,us-east-1a
p3.8xlarge,V100,4.0,32.0,244.0,"{'Gpus': []}",12.24,,us-east-1,us-east-1a
c5.large,,,2.0,4.0,,0.085,0.03,us-east-1,us-east-1a
"""
    catalogue = load(header + text, facts, "aws.csv").catalogue
    found = [catalogue.offer(i) for i in range(len(catalogue))]
    assert [(o.instance, o.market, o.price_usd_per_hour) for o in found] == [
        ("p3.2xlarge", "on-demand", 3.06),
        ("p3.8xlarge", "on-demand", 12.24),
        ("p3.2xlarge", "spot", 0.92),
    ]


# ---- there and back ----


RISKY = ('=HYPERLINK("x")', "+49 call", "-x", "@x", "\ttab", "'=x", "''+x", "\rx", "plain", "")


@pytest.mark.parametrize("text", RISKY)
def test_uc_120_text_that_would_run_is_neutralised_and_restored(text: str) -> None:
    neutral = neutralise(text)
    assert not neutral or neutral[0] not in "=+-@\t\r\n"
    assert restore(neutral) == text


@given(st.text(st.sampled_from("'=+-@\t\r\na1"), max_size=8))
def test_what_is_neutralised_is_restored(text: str) -> None:
    assert restore(neutralise(text)) == text


def test_uc_120_an_exported_price_list_reads_back_as_it_was(facts: Facts) -> None:
    row = {"provider": '=HYPERLINK("http://x")', "note": "+49 call", "instance": "@x", "region": "\ttab-led"}
    made = from_rows("mine", "1", [row | {"market": "spot", "price_state": "listed", "currency": "USD"}
                                   | {"price_unit": "hour", "accelerator": "t4", "accelerators": 1.0}
                                   | {"price_native": 12.5, "price_usd_per_hour": 12.5}])  # fmt: skip
    written = write_catalogue(made)
    assert b"12.5" in written
    assert b"'12.5" not in written
    assert b"'=HYPERLINK" in written
    again = parse_offers(written, "mine.csv", facts).catalogue
    assert {c: getattr(again, c)[0] for c in row} == row
    assert again.price_usd_per_hour.tolist() == [12.5]


def test_the_bundled_offers_read_back_as_they_were(facts: Facts) -> None:
    written = write_catalogue(package.offers())
    again = parse_offers(written, "offers.csv", facts).catalogue
    assert again.rejects == ()
    assert same(package.offers(), again)


def test_foreign_prices_and_commitments_read_back_the_same_at_another_rate(facts: Facts, at_108: Facts) -> None:
    text = """gpu,price,currency,price_unit,market,term_h,upfront
T4,0.94,EUR,hour,on-demand,,
T4,300,EUR,month,dedicated,730,
T4,8000,EUR,term,reserved,8760,
T4,0.2,EUR,hour,reserved,8760,900
"""
    first = load(text, at_108).catalogue
    again = parse_offers(write_catalogue(first), "mine.csv", facts).catalogue
    assert np.allclose(first.price_usd_per_hour, again.price_usd_per_hour, rtol=1e-12)
    assert np.allclose(first.upfront_usd, again.upfront_usd, rtol=1e-12, equal_nan=True)


def test_uc_117_an_export_with_a_byte_order_mark_reads_back(facts: Facts) -> None:
    catalogue = load("gpu,price,currency,note\nT4,1,USD,€ ü\n", facts).catalogue
    marked = b"\xef\xbb\xbf" + write_catalogue(catalogue)
    assert parse_offers(marked, "mine.csv", facts).catalogue.offer(0) == catalogue.offer(0)


def test_reading_a_file_twice_gives_the_same_and_the_second_time_from_the_cache(
    tmp_path: Path, cache_folder: Path, facts: Facts
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("gpu,price,currency,odd\nT4,1.5,EUR,1\nL4,,EUR,\nT4,2,,\n", "utf-8")
    first, entries = read_offers(path, facts), list(cache_folder.rglob("*.npz"))
    again = read_offers(path, facts)
    assert len(entries) == 1
    assert same(first.catalogue, again.catalogue)
    assert [one.lines.tolist() for one in (first, again) if one.lines is not None] == [[2, 3], [2, 3]]
    said = [[*map(str, one.notes), *map(str, one.catalogue.rejects)] for one in (first, again)]
    assert said[0] == said[1]
    assert len(said[0]) == 5
    path.write_text("gpu,price,currency\nT4,2.5,USD\n", "utf-8")
    assert read_offers(path, facts).catalogue.price_usd_per_hour.tolist() == [2.5]


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path: Path, facts: Facts) -> None:
    with pytest.raises(DataError, match=r"none\.csv cannot be read: No such file"):
        read_offers(tmp_path / "none.csv", facts)
