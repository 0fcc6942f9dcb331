"""A person's table of measured rates: what its rows mean, what refuses one of them, and what ends the reading."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from gpuwise.errors import DataError
from gpuwise.names import Index
from gpuwise.predict.against import Claim
from gpuwise.predict.rows import work
from gpuwise.predict.spelling import Names
from gpuwise.sources.rates import COLUMNS, NEEDED, Known, Loaded, parse_claims, read_claims
from gpuwise.store import package

HEAD = ",".join(NEEDED)
GIVEN = "1,given,Tesla T4,ours,amp,64,120"
ASKED = "1,predict,RTX 3090,ours,amp,64,400"


@pytest.fixture(scope="module")
def known() -> Known:
    rows = package.throughput()
    cards = package.accelerators()
    return Known(
        index=Index(cards.values()), accelerators=cards, names=Names.of(rows), counts=package.counts()
    )  # fmt: skip


def table(*rows: str, head: str = HEAD) -> bytes:
    return "\n".join([head, *rows, ""]).encode()


def load(known: Known, *rows: str, head: str = HEAD) -> Loaded:
    return parse_claims(table(*rows, head=head), "ours.csv", known)


def refused(claims: Iterable[Claim]) -> list[str]:
    return [str(claim.refused) for claim in claims if claim.refused is not None]


def error(known: Known, *rows: str, head: str = HEAD) -> DataError:
    with pytest.raises(DataError) as raised:
        load(known, *rows, head=head)
    return raised.value


def test_a_row_becomes_a_setting_with_what_it_states(known: Known) -> None:
    head = f"{HEAD},{','.join(c for c in COLUMNS if c not in NEEDED)}"
    row = "q,predict,2x RTX 3090,Ours,fp16,32,800,2,PyTorch 1.13,channels_last,training,vit,4.1,11.1,25.6,288"
    (claim,) = load(known, row, head=head).claims
    (setting,) = claim.settings
    assert (setting.accelerator.id, setting.accelerators) == ("rtx-3090", 2)
    assert (setting.workload, setting.family, setting.batch, setting.precision) == (
        "Ours@288",
        "transformer",
        32,
        "amp",
    )
    assert (setting.software, setting.memory_format, setting.mode) == ("ngc-pytorch-1.13", "nhwc", "train")
    assert setting.work is not None
    assert (setting.work.gmacs, setting.work.activations_m, setting.work.parameters_m) == (4.1, 11.1, 25.6)
    assert setting.work.transformer
    assert (claim.samples_per_s, claim.line, claim.group) == (800.0, 2, "q")


def test_what_a_row_does_not_state_is_one_device_in_training_of_unknown_software(known: Known) -> None:
    given, asked = load(known, GIVEN, ASKED).claims
    for claim in (given, asked):
        (setting,) = claim.settings
        assert (setting.accelerators, setting.mode, setting.software, setting.memory_format) == (1, "train", None, None)
        assert (setting.family, setting.work) == (None, None)


@pytest.mark.parametrize(
    ("written", "precision"),
    [("fp32", "fp32"), ("float32", "fp32"), ("TF32", "tf32"), ("amp", "amp"), ("FP16", "amp"), ("mixed", "amp"),
     ("AMP-bf16", "amp_bf16"), ("amp bf16", "amp_bf16"), ("bfloat16", "bf16"), ("FP8", "fp8")],
)  # fmt: skip
def test_a_precision_may_be_written_in_other_words(known: Known, written: str, precision: str) -> None:
    (claim,) = load(known, f"1,predict,T4,ours,{written},64,400").claims
    assert claim.settings[0].precision == precision


def test_a_workload_that_the_tables_have_is_known_with_its_family_and_counts(known: Known) -> None:
    (claim,) = load(known, "1,predict,T4,ResNet-50,amp,64,400").claims
    (setting,) = claim.settings
    assert (setting.workload, setting.family) == ("resnet50", "cnn")
    assert setting.work == work("resnet50", known.counts)
    assert setting.work is not None


def test_counts_that_are_stated_in_part_are_not_used_and_the_row_says_so(known: Known) -> None:
    (claim,) = load(known, "1,predict,T4,ours,amp,64,400,4.1", head=HEAD + ",gmacs").claims
    assert claim.settings[0].work is None
    assert [str(remark) for remark in claim.remarks] == [
        "counts are not used: activations_m, parameters_m is missing"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["Tesla K80", "NVIDIA Tesla K80", "M60"])
def test_of_a_board_with_two_dies_one_is_meant_and_the_row_says_so(known: Known, name: str) -> None:
    (claim,) = load(known, f"1,predict,{name},ours,amp,64,40").claims
    assert claim.accelerator in ("k80-half", "m60-half")
    assert "one of the two dies" in str(claim.remarks[0])


def test_semicolons_decimal_commas_and_a_byte_order_mark_are_understood(known: Known) -> None:
    text = "\r\n".join([HEAD.replace(",", ";"), GIVEN.replace(",", ";") + ",5", ASKED.replace(",", ";") + ",25", ""])
    claims = parse_claims(b"\xef\xbb\xbf" + text.encode(), "ours.csv", known).claims
    assert [claim.samples_per_s for claim in claims] == [120.5, 400.25]


def test_other_headers_mean_the_same_and_columns_without_a_use_are_named(known: Known) -> None:
    head = "Group,Role,GPU,Model,Precision,Batch per GPU,Samples per s,GPUs,who measured"
    loaded = load(known, "1,predict,T4,ours,amp,64,400,4,Ann", head=head)
    assert loaded.claims[0].settings[0].accelerators == 4
    assert [str(note) for note in loaded.notes] == ["columns that are not used: who measured"]


# ---- rows that are refused, while the others go on ----


def test_uc_056_a_gpu_that_nobody_knows_refuses_its_row_with_the_nearest_names(known: Known) -> None:
    rows = ("1,given,NVIDIA RTX 5090 D v2,ours,amp,64,900", GIVEN, "1,predict,B400,ours,amp,64,9000", ASKED)
    claims = load(known, *rows).claims
    assert [bool(claim.settings) for claim in claims] == [False, True, False, True]
    first, second = refused(claims)
    assert '"NVIDIA RTX 5090 D v2" is not a GPU that is known here' in first
    assert "RTX-5090" in first
    assert "B300" in second


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("1,predict,RTX 3090,ours,,64,400", "precision: it is empty"),
        ("1,predict,RTX 3090,ours,fp64,64,400", 'precision: "fp64" is none of fp32, tf32'),
        ("1,predict,RTX 3090,ours,amp,,400", "batch_per_accelerator: it is empty"),
        ("1,predict,RTX 3090,ours,amp,0,400", "batch_per_accelerator: 0 is not a whole number"),
        ("1,predict,RTX 3090,ours,amp,2.5,400", "batch_per_accelerator: 2.5 is not a whole number"),
        ("1,predict,RTX 3090,ours,amp,64,-400", 'samples_per_s: "-400" is below 0'),
        ("1,predict,RTX 3090,ours,amp,64,0", "samples_per_s: 0 is not above 0"),
        ("1,predict,RTX 3090,ours,amp,64,2.4 ms", "samples_per_s: "),
        ("1,predict,,ours,amp,64,400", "accelerator: it is empty"),
        ("1,predict,RTX 3090,,amp,64,400", "workload: it is empty"),
        ("1,predict,24GB..,ours,amp,64,400", 'accelerator: "24GB.." names no GPU'),
        ("1,predict,RTX 6000,ours,amp,64,400", "accelerator: "),
    ],
)
def test_a_row_to_be_predicted_that_cannot_be_used_names_its_column_and_the_others_go_on(
    known: Known, row: str, says: str
) -> None:
    claims = load(known, GIVEN, row, ASKED).claims
    assert len(refused(claims)) == 1
    assert refused(claims)[0].startswith(says)
    assert claims[2].settings


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ("-1,11.1,25.6", "gmacs: "),
        ("0,11.1,25.6", "gmacs: 0 is not above 0"),
        ("4100000000,11.1,25.6", "gmacs: 4.1e+09 is more than any network has"),
        (",11.1,25.6", "gmacs: activations_m stands without it"),
        ("4.1,11100000,25.6", "activations_m: 1.11e+07 is more than any network has"),
        ("4.1,11.1,25557032", "parameters_m: 2.5557e+07 is more than any network has"),
        ("4.1,11.1,1250000", "parameters_m: 1.25e+06 does not go with 4.1 gmacs"),
        ("4.1,11.1,97 MB", "parameters_m: "),
        ("4.1,11.1,0.1 GB", "parameters_m: "),
    ],
)
def test_an_impossible_count_names_its_column(known: Known, counts: str, says: str) -> None:
    head = HEAD + ",gmacs,activations_m,parameters_m"
    claims = load(known, GIVEN + ",,,", f"{ASKED},{counts}", head=head).claims
    assert len(refused(claims)) == 1
    assert refused(claims)[0].startswith(says)
    raised = error(known, f"{GIVEN},{counts}", ASKED + ",,,", head=head)
    assert (raised.file, raised.row, raised.column) == ("ours.csv", 2, says.partition(":")[0])


def test_a_number_of_gpus_in_the_name_may_not_contradict_the_column(known: Known) -> None:
    rows = (GIVEN + ",1", "1,predict,8x RTX 3090,ours,amp,64,400,4", "1,predict,8x RTX 3090,ours,amp,64,400,8")
    claims = load(known, *rows, head=HEAD + ",accelerators").claims
    assert "contradict each other" in refused(claims)[0]
    assert claims[2].settings[0].accelerators == 8


# ---- tables that cannot be used ----


@pytest.mark.parametrize(
    ("rows", "row", "column", "says"),
    [
        ((GIVEN.replace("amp", ""), ASKED), 2, "precision", "precision: it is empty."),
        ((GIVEN.replace("64", ""), ASKED), 2, "batch_per_accelerator", "it is empty"),
        ((ASKED, GIVEN.replace("120", "")), 3, "samples_per_s", "it is empty"),
        ((ASKED, GIVEN.replace("120", "215 ms")), 3, "samples_per_s", "215 ms"),
        ((ASKED, GIVEN.replace("120", "-3")), 3, "samples_per_s", "-3"),
        ((ASKED, GIVEN.replace("given", "mesured")), 3, "role", '"mesured" is none of given, predict'),
        ((ASKED, GIVEN.replace("given", "")), 3, "role", "it is empty"),
        ((GIVEN[1:], ASKED), 2, "group", "it is empty"),
        ((GIVEN, ASKED, "2" + GIVEN[1:]), 4, "role", "group 2 has no row to predict"),
    ],
)
def test_what_is_wrong_with_a_given_row_ends_the_reading_and_says_where(
    known: Known, rows: tuple[str, ...], row: int, column: str, says: str
) -> None:
    raised = error(known, *rows)
    assert (raised.file, raised.row, raised.column) == ("ours.csv", row, column)
    assert says in str(raised.message)
    assert str(raised.hint)


@pytest.mark.parametrize("column", NEEDED)
def test_a_column_that_is_missing_is_named(known: Known, column: str) -> None:
    kept = [place for place, name in enumerate(NEEDED) if name != column]
    rows = [",".join(row.split(",")[place] for place in kept) for row in (HEAD, GIVEN, ASKED)]
    raised = error(known, *rows[1:], head=rows[0])
    assert raised.column == column
    assert f"the column {column} is missing" in str(raised.message)


def test_a_column_of_times_is_told_how_to_become_a_rate(known: Known) -> None:
    raised = error(known, GIVEN, ASKED, head=HEAD.replace("samples_per_s", "step_ms"))
    assert "samples_per_s = batch_per_accelerator × accelerators / seconds of a step" in str(raised.hint)


def test_a_column_that_is_misspelled_is_told_the_nearest(known: Known) -> None:
    raised = error(known, GIVEN, ASKED, head=HEAD.replace("samples_per_s", "sample_per_s"))
    assert "Is it sample_per_s?" in str(raised.hint)


def test_times_in_the_place_of_rates_are_found_where_faster_cards_have_smaller_ones(known: Known) -> None:
    cards = {"Tesla T4": 60.0, "Tesla V100-SXM2-16GB": 130.0, "A100-SXM4-40GB": 260.0, "H100 SXM": 500.0}
    rates = [f"1,predict,{card},ours,amp,64,{rate}" for card, rate in cards.items()]
    times = [f"1,predict,{card},ours,amp,64,{64_000 / rate:.1f}" for card, rate in cards.items()]
    assert len(load(known, *rates).claims) == 4
    raised = error(known, *times)
    assert raised.column == "samples_per_s"
    assert "these are times, not rates" in str(raised.message)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (table(), "there are no rows"),
        (table(GIVEN, head=HEAD + ",role"), "names the column role twice"),
        (table(GIVEN + ",T4", head=HEAD + ",gpu"), "mean the same"),
        (b"PK\x03\x04....", "is a spreadsheet or an archive"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", ""),
        (b'{"group": 1}', "the column group is missing"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused(known: Known, content: bytes, says: str) -> None:
    with pytest.raises(DataError) as raised:
        parse_claims(content, "ours.csv", known)
    assert raised.value.file == "ours.csv"
    assert says in str(raised.value.message)


def test_a_file_that_is_not_there_is_refused(known: Known, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_claims(tmp_path / "nowhere.csv", known)


def test_a_line_that_is_no_row_is_left_out_and_said(known: Known) -> None:
    loaded = load(known, GIVEN, "1,predict,T4", ASKED)
    assert len(loaded.claims) == 2
    assert "line 3: 3 fields where the header has 7" in str(loaded.rejects[0])
