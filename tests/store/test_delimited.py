"""Bytes → columns: every way a spreadsheet writes a table gives the same table."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuwise.catalogue import Coded, coded
from gpuwise.errors import DataError
from gpuwise.store import delimited
from gpuwise.store.delimited import grouped, merged, read, stacked

PLAIN = "gpu,price,comment\nH100,2.5,fast\nA100,1.5,\n"


def rows(table: delimited.Table) -> list[tuple[str | None, ...]]:
    return [tuple(column[i] for column in table.columns.values()) for i in range(len(table))]


def texts(column: Coded) -> list[str | None]:
    return [column[i] for i in range(len(column))]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("ending", ["", "\n", "\n\n\n"], ids=["no line end", "one", "two empty lines"])
@pytest.mark.parametrize("trailing", [False, True], ids=["", "trailing separator"])
def test_uc_118_separators_line_ends_and_empty_lines_make_no_difference(
    separator: str, newline: str, ending: str, trailing: bool
) -> None:
    lines = PLAIN.strip().replace(",", separator).split("\n")
    text = "\n".join(line + separator * trailing for line in lines) + ending
    table = read(text.replace("\n", newline).encode(), "o.csv", ("gpu", "price"))
    assert list(table.columns) == ["gpu", "price", "comment"]
    assert rows(table) == [("H100", "2.5", "fast"), ("A100", "1.5", None)]
    assert table.lines.tolist() == [2, 3]
    assert table.blank == max(ending.count("\n") - 1, 0)
    assert table.rejects == ()


def test_uc_118_a_line_break_inside_quotes_stays_in_its_cell() -> None:
    table = read(b'gpu;price;note\r\nH100;2.5;"two\r\nlines; one cell"\r\nA100;1;\r\n', "o.csv")
    assert rows(table) == [("H100", "2.5", "two\nlines; one cell"), ("A100", "1", None)]
    assert table.lines.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("encoding", "mark", "found"),
    [
        ("utf-8", b"", "utf-8"),
        ("utf-8", b"\xef\xbb\xbf", "utf-8"),
        ("utf-16-le", b"\xff\xfe", "utf-16"),
        ("utf-16-be", b"\xfe\xff", "utf-16"),
        ("utf-16-le", b"", "utf-16-le"),
        ("utf-16-be", b"", "utf-16-be"),
        ("cp1252", b"", "windows-1252"),
    ],
)
def test_uc_117_marks_and_encodings_make_no_difference(encoding: str, mark: bytes, found: str) -> None:
    table = read(mark + "gpu;price;who\nH100;2,50 €;Müller\n".encode(encoding), "o.csv")
    assert list(table.columns) == ["gpu", "price", "who"]
    assert rows(table) == [("H100", "2,50 €", "Müller")]
    assert table.encoding == found


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("gpu,who\nA,ä\nB,".encode() + b"\xff\n", id="damaged UTF-8"),
        pytest.param(b"gpu,who\nA,x\nB,\x81\n", id="no Windows-1252 either"),
    ],
)
def test_uc_117_an_encoding_that_cannot_be_told_names_the_line(content: bytes) -> None:
    with pytest.raises(DataError, match=r"o\.csv, line 3: the byte 0x(FF|81)") as caught:
        read(content, "o.csv")
    assert caught.value.row == 3


def test_uc_079_only_the_empty_cell_is_missing() -> None:
    table = read(b"region,gpu\nNA,a\nEU,a\nnull,a\nNone,a\nnan,a\n,a\n   ,a\n", "o.csv")
    assert texts(table.columns["region"]) == ["NA", "EU", "null", "None", "nan", None, None]


def test_records_that_do_not_fit_the_header_are_rejects_with_their_line() -> None:
    table = read(b"a,b\n1,2\n1\n1,2,3\n1,2,\n1,2,  \n", "o.csv")
    assert rows(table) == [("1", "2")] * 3
    assert [str(r) for r in table.rejects] == [
        "o.csv, line 3: 1 fields where the header has 2",
        "o.csv, line 4: 3 fields where the header has 2",
    ]


def test_a_quote_that_is_never_closed_costs_the_lines_it_swallows_and_says_so() -> None:
    table = read(b'a,b\n1,2\n3,"4\n5,6\n', "o.csv")
    assert rows(table) == [("1", "2")]
    (reject,) = table.rejects
    assert str(reject).startswith("o.csv, line 3: a quote is opened and never closed")


def test_a_quote_in_the_middle_of_a_quoted_cell_costs_one_line() -> None:
    table = read(b'a,b\n"x"y,2\n3,4\n', "o.csv")
    assert rows(table) == [("3", "4")]
    assert "line 2" in str(table.rejects[0])


@pytest.mark.parametrize("control", ["\x00", "\x1b", "\x07", "\x7f", "\x85", "\x9b"])
def test_characters_that_steer_a_terminal_are_taken_out_and_the_first_is_named(control: str) -> None:
    table = read(f"a,b\n1,ü{control}2\n{control}3,4{control}\n5,tab\t\n".encode(), "o.csv")
    assert rows(table) == [("1", "ü2"), ("3", "4"), ("5", "tab")]
    assert [str(n) for n in table.notes] == ["3 control characters were taken out, the first in line 2"]


def test_a_plain_file_has_no_notes() -> None:
    assert read("a,b\n1,ü\t2\n".encode(), "o.csv").notes == ()


def test_an_inch_sign_inside_a_cell_is_text() -> None:
    assert rows(read(b'a,b\n19" rack,2\n', "o.csv")) == [('19" rack', "2")]


def test_the_separator_line_of_a_spreadsheet_and_blank_lines_before_the_header_are_passed_over() -> None:
    table = read(b"\nsep=;\ngpu;price\nA;1\n", "o.csv")
    assert rows(table) == [("A", "1")]
    assert table.lines.tolist() == [4]


def test_decimal_commas_do_not_pass_for_separators() -> None:
    table = read(b"gpu;price;memory\nA,B;1,5;80\nC;2,5;40,5\n", "o.csv", ("gpu", "price", "memory"))
    assert rows(table) == [("A,B", "1,5", "80"), ("C", "2,5", "40,5")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"PK\x03\x04rest", "is a spreadsheet or an archive"),
        (b"gpu,price,gpu\nA,1,B\n", "names the column gpu twice"),
        (b'"gpu\n', "cannot be read"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_sentence(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(content, "o.csv")
    assert caught.value.file == "o.csv"


CELLS = st.text(st.sampled_from("ab1., \"';|\t\n€"), max_size=12)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=30), st.sampled_from(",;\t|"), st.booleans())
def test_what_the_csv_module_writes_is_read_back(
    table: list[tuple[str, str, str]], separator: str, quote_all: bool
) -> None:
    stream = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n", quoting=quoting)
    writer.writerow(("first", "second", "third"))
    writer.writerows(table)
    read_back = read(stream.getvalue().encode(), "o.csv", ("first", "second", "third"))
    wanted = [tuple(cell.strip() or None for cell in row) for row in table]
    assert rows(read_back) == [row for row in wanted if any(row)]
    assert read_back.rejects == ()


@given(st.text(st.sampled_from('ab1, ;"\n'), max_size=60))
@example('a,"b ""c"""\n')
@example('"",\n"","",""\n')
@example(' ,"x"\n')
@example("x,y,\n")
def test_the_fast_and_the_exact_way_read_the_same(text: str) -> None:
    body = b"first,second\n" + text.encode() + b"\n"
    fast = delimited._split(body, ",", 2)
    if fast is not None:
        exact = delimited._walk(body, ",", 2)
        used = [[texts(c) for c in way.columns] for way in (fast, exact)]
        lines = [[n for n, *row in zip(way.lines.tolist(), *cells, strict=True) if any(row)]
                 for way, cells in zip((fast, exact), used, strict=True)]  # fmt: skip
        kept = [[row for row in zip(*cells, strict=True) if any(row)] for cells in used]
        assert kept[0] == kept[1]
        assert lines[0] == lines[1]
        assert [(n, str(m)) for n, m in fast.rejects] == [(n, str(m)) for n, m in exact.rejects]


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters='",', exclude_categories=("Cc",)), max_size=40),
        max_size=60,
    )
)
def test_long_texts_that_begin_alike_keep_their_own_code(cells: list[str]) -> None:
    prefix = "the same beginning of every cell "
    body = ("cell\n" + "".join(f"{prefix}{c}x\n" for c in cells)).encode()
    read_back = texts(read(body, "o.csv").columns["cell"])
    assert read_back == [f"{prefix}{c}x" for c in cells]


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from((0, 1, 2, 1 << 46, 1 << 63)), max_size=50))
def test_equal_values_share_a_code_in_order_of_first_appearance(values: list[int]) -> None:
    codes, first = grouped(np.array(values, np.uint64))
    distinct = list(dict.fromkeys(values))
    assert [distinct[c] for c in codes] == values
    assert [values[i] for i in first] == distinct


def test_many_values_share_slots_and_still_keep_their_codes() -> None:
    values = np.arange(50_000, dtype=np.uint64)[::-1]
    codes, first = grouped(np.concatenate([values, values]))
    assert codes.tolist() == [*range(50_000)] * 2
    assert first.tolist() == [*range(50_000)]


def test_columns_are_merged_and_stacked_by_text() -> None:
    first, second = coded(["a", None, "b"]), coded(["b", "c", None])
    assert texts(merged(first, second)) == ["a", "c", "b"]
    assert texts(stacked(first, second)) == ["a", None, "b", "b", "c", None]
