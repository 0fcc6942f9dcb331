"""Moments in FOCUS exports: days, zones, and the month in which a row is booked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.sources.exports import ONE, month

from gpuwise.errors import DataError, InvalidInput, UnknownName
from gpuwise.sources.focus import Wish, read_bill


def test_uc_101_first_of_the_month_slips_into_the_month_before(write):
    """A moment with its zone is booked in June in the person's zone; a date is a date; the third is asked for, the
    fourth is an error with its row."""
    hour = {"ChargePeriodEnd": "2026-06-01T01:00:00+03:00", "BillingPeriodStart": "2026-06-01T00:00:00+03:00"}
    zoned = write({"ChargePeriodStart": "2026-06-01T00:00:00+03:00", **hour}, name="zoned.csv")
    bill = read_bill([zoned], Wish(time_zone="Europe/Moscow", instances=ONE))
    assert bill.start == datetime(2026, 5, 31, 21, tzinfo=UTC)
    assert [(m.month, m.gpu_h, m.billed) for m in bill.months] == [("2026-06", 1, 1.5)]
    assert bill.notes == ()
    in_utc = read_bill([zoned], Wish(instances=ONE))
    assert [(m.month, m.gpu_h) for m in in_utc.months] == [("2026-05", 1), ("2026-06", 0)]
    assert "another zone" in str(in_utc.notes[0])

    dated = write({"ChargePeriodStart": "2026-06-01", "ChargePeriodEnd": "2026-06-02"}, name="dated.csv")
    for place in (None, "America/New_York", "Pacific/Auckland"):
        assert month(read_bill([dated], Wish(time_zone=place))).month == "2026-06"

    last = write({"ChargePeriodStart": "2026-06-30", "ChargePeriodEnd": "2026-07-01"}, name="last.csv")
    assert month(read_bill([last], Wish(time_zone="Pacific/Auckland"))).month == "2026-06"

    unclear = write({}, {"ChargePeriodStart": "01/06/2026", "ChargePeriodEnd": "02/06/2026"}, name="unclear.csv")
    with pytest.raises(InvalidInput, match=r'row 3: "01/06/2026" may be a day of two months.*Say whether'):
        read_bill([unclear])
    june = read_bill([unclear], Wish(days="day first"))
    assert (june.rejected, month(june).effective) == (0, 3)
    assert {m.month for m in read_bill([unclear], Wish(days="month first")).months} == {"2026-01", "2026-06"}

    late = write(*[{"BilledCost": "x"}] * 20, {"ChargePeriodStart": "01/06/2026"}, name="late.csv")
    with pytest.raises(InvalidInput, match=r'row 22: "01/06/2026" may be'):
        read_bill([late])

    wrong = write({"ChargePeriodStart": "2026-06-31"}, name="wrong.csv")
    with pytest.raises(DataError, match='row 2: ChargePeriodStart "2026-06-31" is no moment') as caught:
        read_bill([wrong])
    assert caught.value.row == 2


def test_a_zone_needs_no_seconds(write):
    bill = read_bill([write({"ChargePeriodStart": "2026-06-10T03:00+03:00"})], Wish(instances=ONE))
    assert (bill.rejected, bill.start) == (0, datetime(2026, 6, 10, tzinfo=UTC))


def test_use_of_more_than_a_year_is_refused_and_stretches_no_series(write):
    bill = read_bill([write({}, {"ChargePeriodEnd": "2062-06-10T01:00:00Z"})], Wish(instances=ONE))
    assert (bill.rejected, len(bill.gpus), bill.resolution_h) == (1, 1, 1)
    assert 'row 3: ChargePeriodEnd "2062-06-10T01:00:00Z" lies more than a year after its start' in str(bill.rejects[0])


@pytest.mark.parametrize(
    ("start", "end", "place", "booked"),
    [("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z", "America/New_York", "2026-06"),
     ("2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z", "America/New_York", "2026-06"),
     ("2026-06-01T00:00:00Z", "2026-06-01T01:00:00Z", "America/New_York", "2026-05"),
     ("2026-06-01T00:00Z", "2026-06-01T01:00Z", None, "2026-06"),
     ("2026-06-01 00:00:00", "2026-06-01 01:00:00", None, "2026-06"),
     ("2026-05-31T23:00:00Z", "2026-06-01T00:00:00Z", None, "2026-05"),
     ("2026-06-01T00:00:00Z", "2027-06-01T00:00:00Z", None, "2026-06")],
)  # fmt: skip
def test_a_row_is_booked_in_the_month_of_most_of_it(start, end, place, booked, write):
    path = write({"ChargePeriodStart": start, "ChargePeriodEnd": end})
    bill = read_bill([path], Wish(time_zone=place))
    assert [m.month for m in bill.months if m.effective] == [booked]


def test_an_unknown_time_zone_is_refused_by_name(write):
    with pytest.raises(UnknownName, match="Europe/Berlim"):
        read_bill([write({})], Wish(time_zone="Europe/Berlim"))
