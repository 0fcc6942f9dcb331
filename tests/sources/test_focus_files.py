"""Files of FOCUS exports: versions and formats, and files and rows with faults."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.sources.exports import as_parquet, month

from gpuwise.errors import DataError, InvalidInput
from gpuwise.sources.focus import Wish, read_bill

# ---- versions and formats ----


@pytest.mark.parametrize("column", ["ProviderName", "ServiceProviderName", "HostProviderName"])
def test_a_renamed_column_is_the_same_column(column, write, known):
    row = {"ProviderName": None, column: "Google Cloud", "ChargeDescription": "Nvidia L4 GPU running in Iowa"}
    bill = read_bill([write(row)], Wish(instances=known))
    assert bill.gpu_h == 1
    assert bill.services[0].provider == "Google Cloud"


def test_null_words_extra_columns_and_other_cases_are_no_matter(write, known):
    row = {"Id": "7", "CommitmentDiscountId": "NULL", "ChargeClass": "null", "ChargeCategory": "USAGE",
           "billedcost": "9", "ChargeFrequency": "Usage-based"}  # fmt: skip
    bill = read_bill([write(row)], Wish(instances=known))
    assert (bill.commitments, bill.gpu_h, month(bill).billed) == ((), 1, 1.5)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_told_by_the_header(separator, write, known):
    assert read_bill([write({}, separator=separator)], Wish(instances=known)).gpu_h == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_text_of_a_spreadsheet_is_read(encoding, write, known):
    path = write({"ServiceName": "Größe"})
    path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    bill = read_bill([path], Wish(instances=known))
    assert bill.gpu_h == 1
    assert bill.services[0].service == "Größe"


def test_a_line_that_names_the_separator_is_skipped_and_rows_keep_their_numbers(write, known):
    path = write({}, {"BilledCost": "x"}, separator=";")
    text = path.read_text(encoding="utf-8").replace("\n", "\n1;2\n", 1)
    path.write_text("sep=;\n" + text, encoding="utf-8")
    bill = read_bill([path], Wish(instances=known))
    assert (bill.gpu_h, bill.rejected) == (1, 2)
    assert "row 3: Expected Number of Columns" in str(bill.rejects[0])
    assert 'row 5: BilledCost "x"' in str(bill.rejects[1])


def test_parquet_with_types_and_maps_reads_as_its_text(tmp_path, write, known):
    import duckdb

    text = write({"ChargeDescription": "x"})
    path = tmp_path / "typed.parquet"
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'Asia/Tokyo'")
        database.sql(
            "SELECT * REPLACE (BilledCost::DECIMAL(30, 12) AS BilledCost, ChargePeriodStart::TIMESTAMPTZ AS "
            "ChargePeriodStart, '2026-06-10 01:00:00'::TIMESTAMP AS ChargePeriodEnd), map {'GpuCount': '4'} AS "
            f"SkuPriceDetails FROM read_csv('{text}', all_varchar = true)"
        ).write_parquet(str(path))
    bill = read_bill([path], Wish(instances=known))
    assert (bill.gpu_h, bill.start) == (4, datetime(2026, 6, 10, tzinfo=UTC))
    assert month(bill).billed == 1.5


def test_signs_of_patterns_and_quotes_in_a_name_or_a_column_are_signs(tmp_path, write, known):
    path = write({"a'; DROP TABLE facts; --": "'"}, name="b[1]*'?; drop.csv")
    write({}, {}, name="b1.csv")
    bill = read_bill([path], Wish(instances=known))
    assert (bill.rows, bill.gpu_h) == (1, 1)
    as_parquet(tmp_path, path.read_text(encoding="utf-8"), tmp_path / "b[1]'*.parquet")
    assert read_bill([tmp_path / "b[1]'*.parquet"], Wish(instances=known)).gpu_h == 1


def test_what_steers_a_terminal_is_in_no_name_and_in_no_message(write):
    paint = "\x1b[31m"
    rows = ({"ServiceName": paint, "ChargeDescription": f"{paint} gpu hours"}, {"BillingCurrency": paint})
    bill = read_bill([write(*rows)])
    said = [bill.services[0].service, bill.unknown[0].machine, *map(str, (*bill.notes, *bill.rejects))]
    assert not any("\x1b" in text for text in said)


# ---- faults ----


@pytest.mark.parametrize(
    ("row", "says"),
    [({"ChargePeriodEnd": "2026-06-10T30:00:00Z"}, 'ChargePeriodEnd "2026-06-10T30:00:00Z" is no moment'),
     ({"ChargePeriodEnd": "2026-06-09T00:00:00Z"}, 'ChargePeriodEnd "2026-06-09T00:00:00Z" lies before its start'),
     ({"ChargePeriodStart": "0001-06-10"}, 'ChargePeriodStart "0001-06-10" is no moment of this century'),
     ({"ChargePeriodEnd": "infinity"}, 'ChargePeriodEnd "infinity" is no moment'),
     ({"ChargePeriodStart": ""}, 'ChargePeriodStart "" is no moment'),
     ({"BilledCost": "1,5"}, 'BilledCost "1,5" is no number'), ({"EffectiveCost": "nan"}, 'EffectiveCost "nan"'),
     ({"BillingCurrency": "Dollars"}, 'BillingCurrency "Dollars"'),
     ({"ChargeCategory": "Fee"}, 'ChargeCategory "Fee"')],
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_refused_by_number_and_the_others_go_on(row, says, write, known):
    bill = read_bill([write({}, row, {})], Wish(instances=known))
    assert (bill.rows, bill.rejected, bill.gpu_h) == (3, 1, 2)
    assert f"bill.csv, row 3: {says}" in str(bill.rejects[0])


def test_what_refused_rows_bill_is_said(write):
    bill = read_bill([write({}, {"ChargePeriodEnd": "2026-06-10T30:00:00Z", "BilledCost": "7.25"})])
    assert "bill 7.25 USD" in " ".join(map(str, bill.notes))
    assert month(bill).billed == 1.5


def test_a_row_of_other_length_is_refused_and_those_after_it_keep_their_numbers(write, known):
    path = write({}, {}, {"BilledCost": "x"}, {})
    lines = path.read_text(encoding="utf-8").splitlines()
    lines.insert(2, "1,2,3")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    bill = read_bill([path], Wish(instances=known))
    assert (bill.rows, bill.rejected, bill.gpu_h) == (5, 2, 3)
    assert "row 3: Expected Number of Columns: 13 Found: 3" in str(bill.rejects[0])
    assert 'row 5: BilledCost "x"' in str(bill.rejects[1])


def test_the_number_of_a_refused_row_of_parquet_is_its_place(tmp_path, write):
    as_parquet(tmp_path, write({}, {"ChargeCategory": "Fee"}).read_text(encoding="utf-8"), tmp_path / "b.parquet")
    assert "b.parquet, row 2: ChargeCategory" in str(read_bill([tmp_path / "b.parquet"]).rejects[0])


def test_only_the_first_refused_rows_are_shown_and_all_are_counted(write):
    bill = read_bill([write({}, *[{"BilledCost": "x"}] * 25)])
    assert (bill.rejected, len(bill.rejects), bill.rows) == (25, 10, 26)
    assert "row 3:" in str(bill.rejects[0])
    assert "row 12:" in str(bill.rejects[9])


def test_a_packed_file_that_is_cut_off_is_refused_even_between_two_rows(write):
    path = write(*[{}] * 500)
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0)[:-8])
    with pytest.raises(DataError, match="cannot be unpacked to its end"):
        read_bill([path])


def test_parts_of_a_packed_file_are_one_file(write, known):
    path = write({}, {}, {})
    head, *rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(gzip.compress(head + rows[0]) + gzip.compress(rows[1] + rows[2]))
    assert read_bill([path], Wish(instances=known)).gpu_h == 3


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_end_of_a_line_blank_lines_and_lines_within_a_cell_are_read(end, write, known):
    text = write({"ServiceName": "a\nb"}, {}, {"BilledCost": "x"}).read_text(encoding="utf-8")
    path = write({})
    path.write_bytes(text.replace("a\nb", "a b" if end == "\r" else "a\nb").replace("\n", end).encode() + end.encode())
    bill = read_bill([path], Wish(instances=known))
    assert (bill.gpu_h, bill.rejected) == (2, 1)
    assert "row 4" in str(bill.rejects[0])


def test_bytes_that_are_no_utf_8_cost_their_row_alone(write, known):
    path = write({"ServiceName": "Groesse"}, {}, {"BilledCost": "x"})
    path.write_bytes(path.read_bytes().replace(b"oe", b"\xf6"))
    bill = read_bill([path], Wish(instances=known))
    assert (bill.gpu_h, bill.rejected) == (1, 2)
    assert "row 2: Invalid unicode" in str(bill.rejects[0])
    assert "row 4: BilledCost" in str(bill.rejects[1])


@pytest.mark.parametrize("name", ["copy.csv", "bill.csv"])
def test_the_same_bytes_twice_are_refused(name, write):
    first = write({})
    again = write({}, name=name)
    with pytest.raises(InvalidInput, match="the same file: its rows would count double"):
        read_bill([first, again])


def test_files_of_one_size_and_other_rows_are_two_files(write, known):
    paths = [write({"BilledCost": cost}, name=f"{cost}.csv") for cost in ("1.5", "2.5")]
    assert month(read_bill(paths, Wish(instances=known))).billed == 4


def test_a_file_without_the_columns_is_refused_with_their_names(write):
    with pytest.raises(DataError, match=r"bill\.csv is no FOCUS export: it has no ChargeCategory, EffectiveCost\."):
        read_bill([write({"ChargeCategory": None, "EffectiveCost": None})])


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "is empty"), (b"PAR1 and nothing else", "cannot be read"), (b"\x1f\x8b broken", "cannot be read"),
     (b"PK\x03\x04 a spreadsheet", "is no text")],
)  # fmt: skip
def test_a_file_that_is_no_table_is_one_clear_error(content, says, tmp_path):
    path = tmp_path / "bill.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        read_bill([path])
    assert caught.value.file == "bill.csv"


def test_a_header_alone_and_no_file_at_all_are_refused(write, tmp_path):
    path = write({})
    path.write_text(path.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="holds no row"):
        read_bill([path])
    with pytest.raises(InvalidInput, match="No cost export"):
        read_bill([])
    with pytest.raises(DataError, match="cannot be read"):
        read_bill([tmp_path / "absent.csv"])


def test_a_reading_leaves_nothing_behind(write, monkeypatch, tmp_path):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    path = write({})
    read_bill([path])
    path.write_text("nothing\n", encoding="utf-8")
    with pytest.raises(DataError):
        read_bill([path])
    assert [*place.iterdir()] == []


def test_without_duckdb_the_error_says_what_to_install(write):
    code = (
        "import sys; sys.modules['duckdb'] = None\nfrom pathlib import Path\n"
        "from gpuwise.errors import InvalidInput\nfrom gpuwise.sources.focus import read_bill\n"
        f"try: read_bill([Path({str(write({}))!r})])\nexcept InvalidInput as error: print(error.hint)"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Run: pip install 'gpuwise[focus]'"


# ---- memory ----

PEAK = (
    "import sys\nfrom pathlib import Path\nfrom gpuwise.sources.focus import read_bill\n"
    "rows = read_bill([Path(sys.argv[1])]).rows\n"
    "peak = next(line for line in Path('/proc/self/status').read_text().splitlines() if line.startswith('VmHWM'))\n"
    "print(rows, int(peak.split()[1]) / 1024)"
)
"""Rows, and the most memory that the process held, MiB; of the process itself, where ru_maxrss has its parent's too."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process so")
def test_a_long_export_takes_hardly_more_memory_than_a_short_one(write):
    """Measured: 58 MB take 20 to 40 MiB more than 17 kB. All rows in memory at once would take several hundred."""
    header, row = write({"ChargePeriodStart": "@", "ChargePeriodEnd": "@"}).read_text("utf-8").splitlines()
    peaks = []
    for number in (100, 350_000):
        path = write({}, name=f"{number}.csv")
        with path.open("w", encoding="utf-8") as file:
            file.write(f"{header}\n")
            file.writelines(
                row.replace("@", f"2026-06-{n % 28 + 1:02d}T{n // 28 % 24:02d}:00:00Z") + "\n" for n in range(number)
            )
        done = subprocess.run((sys.executable, "-c", PEAK, str(path)), capture_output=True, text=True, check=True)
        rows, peak_mib = done.stdout.split()
        assert int(rows) == number
        peaks.append(float(peak_mib))
    assert path.stat().st_size > 55e6
    assert peaks[1] - peaks[0] < 150
