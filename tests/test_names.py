"""What people, price lists and drivers write, and which accelerator each of it means."""

from __future__ import annotations

import csv
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise import units
from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.model import Accelerator
from gpuwise.names import Ambiguous, Index, Match, Slice, Unknown, memory_per_gpu, resolve, resolve_request
from tests.accelerators import ACCELERATORS

INDEX = Index(ACCELERATORS.values())
A100 = {"a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm4-40gb", "a100-sxm4-80gb"}
A100_80 = {"a100-pcie-80gb", "a100-sxm4-80gb"}
H100 = {"h100-pcie-80gb", "h100-sxm5-80gb", "h100-nvl-94gb"}
PRO_6000 = {"rtx-pro-6000-server", "rtx-pro-6000-ws"}
RTX_6000 = {"quadro-rtx-6000", "rtx-a6000", "rtx-6000-ada"} | PRO_6000


def matched(text: str, **beside: object) -> str:
    found = resolve(INDEX, text, **beside)  # type: ignore[arg-type]
    assert isinstance(found, Match), found
    return found.accelerator.id


def ambiguous(text: str, **beside: object) -> tuple[str, set[str]]:
    found = resolve(INDEX, text, **beside)  # type: ignore[arg-type]
    assert isinstance(found, Ambiguous), found
    return found.kind, {a.id for a in found.candidates}


def ids(found: Match | Ambiguous | Slice | Unknown) -> set[str]:
    return {a.id for a in found.variants}


# ---- user cases -------------------------------------------------------------------------------------------------


def test_uc_070_memory_of_the_machine_and_of_the_gpu_are_told_apart():
    known = [ACCELERATORS[i] for i in A100]
    assert memory_per_gpu(640, 8, known) == 80
    assert memory_per_gpu(40, 8, known) == 40
    assert memory_per_gpu(320, 8, known) == 40
    assert memory_per_gpu(79.6, 1, known) == 80


@pytest.mark.parametrize(("memory", "count", "says"), [(80, 2, "40, 80"), (96, 8, "no size")])
def test_uc_070_a_size_that_may_be_both_or_neither_is_flagged(memory, count, says):
    flag = memory_per_gpu(memory, count, [ACCELERATORS[i] for i in A100])
    assert isinstance(flag, Message)
    assert says in str(flag)


@pytest.mark.parametrize(
    ("text", "size", "card"),
    [("L4", "22 GiB", "l4"), ("A10G", "23028 MiB", "a10g"), ("RTX 4090", "24564 MiB", "rtx-4090")],
)
def test_uc_071_a_card_that_reports_its_usable_memory_passes_by_its_nominal_size(text, size, card):
    memory_gib = units.parse_memory(size)
    found = resolve(INDEX, text, memory_gib=memory_gib)
    assert isinstance(found, Match)
    assert found.accelerator.id == card
    assert not units.parse_range("24GB..").holds(memory_gib)
    assert units.parse_range("24GB..").holds(found.accelerator.memory_gib)


def test_uc_072_a_type_name_that_contradicts_the_memory_is_reported():
    kind, candidates = ambiguous("A100", memory_gib=40960 / 1024, hint="gpu_8x_a100_80gb_sxm4")
    found = resolve(INDEX, "A100", memory_gib=40960 / 1024, hint="gpu_8x_a100_80gb_sxm4")
    assert kind == "conflict"
    assert candidates == {"a100-sxm4-40gb", "a100-sxm4-80gb"}
    assert found.variants == ()
    assert "80 GB and 40 GB" in str(found.reason)


@pytest.mark.parametrize("text", ["A100-80GB", "A100 80 GB", "A100_80GB", "a100 (80gb)"])
def test_uc_072_all_spellings_of_the_size_are_one_model(text):
    assert ambiguous(text) == ("variant", A100_80)
    assert set(resolve_request(INDEX, text).ids) == A100_80


def test_uc_072_a_request_for_the_plain_name_gives_both_sizes_with_a_note():
    chosen = resolve_request(INDEX, "A100")
    assert set(chosen.ids) == A100
    assert "A100 PCIe (40 GB)" in str(chosen.notes[0])


@pytest.mark.parametrize("text", ["RTX 6000", "RTX6000", "rtx-6000", "NVIDIA RTX 6000"])
def test_uc_073_rtx_6000_alone_is_ambiguous_and_lists_the_cards_with_their_memory(text):
    assert ambiguous(text) == ("products", RTX_6000)
    reason = str(resolve(INDEX, text).reason)
    assert "Quadro RTX 6000 (24 GB)" in reason
    assert "RTX A6000 (48 GB)" in reason


@pytest.mark.parametrize(
    ("text", "card"),
    [
        ("Quadro RTX 6000", "quadro-rtx-6000"),
        ("RTX 6000 Turing", "quadro-rtx-6000"),
        ("A6000", "rtx-a6000"),
        ("RTX A6000", "rtx-a6000"),
        ("RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-ws"),
        ("RTX PRO Server 6000", "rtx-pro-6000-server"),
        ("RTX PRO 6000 SE", "rtx-pro-6000-server"),
    ],
)
def test_uc_073_a_name_that_says_which_rtx_6000_it_is_matches_that_one(text, card):
    assert matched(text) == card


def test_uc_073_a_mix_of_two_names_is_not_decided():
    assert ambiguous("A6000 ADA") == ("conflict", {"rtx-a6000", "rtx-6000-ada"})


def test_uc_073_memory_decides_where_it_can():
    assert matched("RTX 6000", memory_gib=24) == "quadro-rtx-6000"
    assert matched("RTX 6000 24GB") == "quadro-rtx-6000"
    assert ambiguous("RTX 6000", memory_gib=48) == ("products", {"rtx-a6000", "rtx-6000-ada"})
    assert ambiguous("RTX 6000", memory_gib=96) == ("variant", PRO_6000)


def test_uc_073_a_request_for_an_ambiguous_product_is_refused_with_the_names_to_write():
    with pytest.raises(UnknownName) as error:
        resolve_request(INDEX, "RTX 6000:2")
    assert "RTX-A6000:2" in error.value.nearest
    assert "(24 GB)" in str(error.value.message)


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("H100", H100),
        ("H100 PCIe 80GB", {"h100-pcie-80gb"}),
        ("H100 NVL 94GB", {"h100-nvl-94gb"}),
        ("H100 SXM5", {"h100-sxm5-80gb"}),
        ("NVIDIA H100 80GB HBM3", {"h100-sxm5-80gb"}),
    ],
)
def test_uc_074_the_variants_of_the_h100_are_told_apart_and_an_unknown_one_is_a_range(text, cards):
    assert ids(resolve(INDEX, text)) == cards


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("H100 80GB HBM3", {"h100-sxm5-80gb"}),
        ("L40S (graphics mode)", {"l40s"}),
        ("A800 PCIe", {"a800-pcie-80gb"}),
        ("V100 32G", {"v100-pcie-32gb", "v100-sxm2-32gb"}),
        ("Tesla V100-SXM2-16GB", {"v100-sxm2-16gb"}),
    ],
)
def test_uc_075_driver_strings_name_the_card(text, cards):
    assert ids(resolve(INDEX, text)) == cards


def test_uc_075_a_laptop_card_is_not_the_desktop_card():
    found = resolve(INDEX, "NVIDIA GeForce RTX 3080 Laptop GPU")
    assert isinstance(found, Unknown)
    assert "RTX-3080" in found.nearest


def test_uc_075_a_virtual_gpu_is_a_slice_with_its_own_memory():
    found = resolve(INDEX, "GRID A100D-40C")
    assert isinstance(found, Slice)
    assert (found.accelerator, found.memory_gib) == (ACCELERATORS["a100-pcie-80gb"], 40)
    assert found.variants == ()


def test_uc_075_one_unknown_row_keeps_its_text_and_does_not_stop_the_rest():
    found = [resolve(INDEX, text) for text in ("T4", "NONAME_GPU", "L4")]
    assert [type(f) for f in found] == [Match, Unknown, Match]
    assert found[1] == Unknown("NONAME_GPU", INDEX)


def test_uc_076_t4_is_neither_t4g_nor_a_machine_without_gpu():
    assert resolve_request(INDEX, "T4").ids == ("t4",)
    assert resolve_request(INDEX, "T4G").ids == ("t4g",)
    assert matched("NVIDIA T4G") == "t4g"
    assert isinstance(resolve(INDEX, "t4g.xlarge"), Unknown)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("A100-8:8", "A100-80GB:8"),
        ("H10", "H100"),
        ("RTX 409", "RTX-4090"),
        ("H100:8x", "H100:8"),
        ("tesla", "T4"),
    ],
)
def test_uc_077_a_name_that_is_nearly_known_is_refused_with_what_may_be_meant(text, meant):
    with pytest.raises(UnknownName) as error:
        resolve_request(INDEX, text)
    assert meant in error.value.nearest
    assert f"Did you mean {error.value.nearest[0]}" in str(error.value.hint)


def test_uc_077_tesla_alone_stands_for_no_card():
    assert isinstance(resolve(INDEX, "tesla"), Unknown)


# ---- what a text says -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "card"),
    [
        ("4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("NVIDIA-GeForce-RTX-4090", "rtx-4090"),
        ("GTX 1080Ti", "gtx-1080-ti"),
        ("3080 Ti (12 GB)", "rtx-3080-ti"),
        ("RTX 3080 10GB", "rtx-3080-10gb"),
        ("TITAN RTX", "titan-rtx"),
        ("Titan V", "titan-v"),
        ("h100sxm5", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H100 PCI Express", "h100-pcie-80gb"),
        ("H100 PCIe 94GB", "h100-nvl-94gb"),
        ("NVIDIA HGX H200", "h200-sxm"),
        ("B200 SXM6", "b200"),
        ("GB300 SXM6", "gb300"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("A100-80G-PCIe-NVLink", "a100-pcie-80gb"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("MI 300X", "mi300x"),
        ("Intel Gaudi2", "gaudi2"),
        ("Intel(R) Gaudi(R) 2 AI Accelerator", "gaudi2"),
        ("Google TPU-v4", "tpu-v4"),
        ("tpuv4", "tpu-v4"),
        ("NVIDIA A100-SXM4-80GB (400W)", "a100-sxm4-80gb"),
        ("NVIDIA Blackwell Ultra GPU (GB300)", "gb300"),
        ("NVIDIA® GeForce RTX™ 4090", "rtx-4090"),
        ("Ｌ４", "l4"),
        ("b200", "b200"),
    ],
)
def test_words_are_read_in_any_spelling(text, card):
    assert matched(text) == card


@pytest.mark.parametrize(
    "text",
    [
        "", "GPU", "NVIDIA 80GB", "titan", "Quadro 6000", "RTX 4090 D", "RTX 4090M", "RTX 4070", "A100X", "A1000",
        "L40SX", "RTX 4500", "H100 Plus", "8x H100", "RTX 4090 (48 GB mod)", "RTX PRO 6000 Max-Q", "T4 ставка",
    ],
)  # fmt: skip
def test_a_card_that_the_table_lacks_is_never_taken_for_its_neighbour(text):
    assert isinstance(resolve(INDEX, text), Unknown)


@pytest.mark.parametrize(
    "text", ["AMD A100", "GTX 4090", "H100 SXM4", "H200 Ampere", "B200 NVL", "L40 40GB", "A100 SXM4 80GB HBM3 PCIe"]
)
def test_statements_that_contradict_each_other_choose_nothing(text):
    assert ambiguous(text)[0] == "conflict"
    assert resolve(INDEX, text).variants == ()


def test_a_card_sold_in_several_sizes_is_not_surely_the_one_size_that_is_known():
    assert ambiguous("RTX 4060 Ti") == ("size", {"rtx-4060-ti-16gb"})
    assert resolve(INDEX, "RTX 4060 Ti").variants == ()
    assert matched("RTX 4060 Ti", memory_gib=15.99) == "rtx-4060-ti-16gb"
    assert ambiguous("RTX 4060 Ti", memory_gib=8)[0] == "conflict"


def test_a_board_of_two_gpus_is_told_from_one_of_them_by_its_memory():
    assert ambiguous("Tesla K80") == ("variant", {"k80", "k80-half"})
    assert matched("Tesla K80", memory_gib=11441 / 1024) == "k80-half"


def test_a_text_that_names_two_products_is_both():
    assert ambiguous("RTX 3080 / 3080 Ti") == ("products", {"rtx-3080-10gb", "rtx-3080-ti"})
    assert isinstance(resolve(INDEX, "RTX 3080 / 3070"), Unknown)


@pytest.mark.parametrize(
    ("hint", "cards"),
    [("SXM4", {"a100-sxm4-40gb", "a100-sxm4-80gb"}), ("PCIe", {"a100-pcie-40gb", "a100-pcie-80gb"}), ("NVLink", A100),
     ("a2-highgpu-1g", A100), ("gpu_1x_a100_80gb", A100_80), ("8x 200GB/s IB", A100)],
)  # fmt: skip
def test_a_hint_beside_the_name_adds_form_and_the_size_of_this_product_only(hint, cards):
    assert ids(resolve(INDEX, "A100", hint=hint)) == cards


def test_an_nvl_card_may_be_hinted_as_pcie():
    assert matched("H100", memory_gib=94, hint="PCIe") == "h100-nvl-94gb"


@pytest.mark.parametrize(
    ("text", "cards", "memory_gib"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", {"a100-sxm4-40gb"}, 20),
        ("H100 1g.10gb", H100, 10),
        ("NVIDIA H200 vGPU 14 GB", {"h200-sxm", "h200-nvl"}, 14),
        ("GRID A100DX-80C", {"a100-sxm4-80gb"}, 80),
        ("GRID V100D-8Q", {"v100-pcie-32gb"}, 8),
        ("NVIDIA H100XM-4-40C", {"h100-sxm5-80gb"}, 40),
        ("GRID T4-16Q", {"t4"}, 16),
        ("NVIDIA L40S-48Q", {"l40s"}, 48),
        ("NVIDIA RTXA6000-12C", {"rtx-a6000"}, 12),
    ],
)
def test_a_slice_knows_what_it_is_cut_from(text, cards, memory_gib):
    found = resolve(INDEX, text)
    assert isinstance(found, Slice)
    assert {a.id for a in found.candidates} == cards
    assert found.memory_gib == memory_gib
    assert (found.accelerator is None) == (len(cards) > 1)


def test_a_slice_larger_than_its_card_is_unknown():
    assert isinstance(resolve(INDEX, "GRID T4-40Q"), Unknown)


@given(st.text(max_size=30))
def test_no_text_stops_the_resolver(text):
    found = resolve(INDEX, text)
    assert isinstance(found, Match | Ambiguous | Slice | Unknown)
    assert isinstance(found, Unknown) or any(c.isalnum() for c in text)


@given(st.sampled_from(list(ACCELERATORS.values())), st.sampled_from([str.upper, str.lower, str.title]))
def test_every_accelerator_is_found_by_its_id_in_any_case(accelerator: Accelerator, write):
    for text in (accelerator.id, accelerator.id.replace("-", " "), accelerator.id.replace("-", "_")):
        found = resolve(INDEX, write(text), memory_gib=accelerator.memory_gib)
        assert isinstance(found, Match)
        assert found.accelerator is accelerator


@given(st.sampled_from(list(ACCELERATORS.values())), st.text(alphabet="bdfjyz", min_size=1, max_size=3))
def test_a_letter_too_many_makes_the_name_unknown(accelerator: Accelerator, letters):
    assert isinstance(resolve(INDEX, f"{accelerator.id} {letters}"), Unknown)


def bundled() -> list[Accelerator]:
    table = resources.files("gpuwise") / "data" / "accelerators.csv"
    keys = ("id", "name", "vendor", "architecture", "form_factor")
    return [
        Accelerator(
            **{key: row[key] for key in keys},
            memory_gib=float(row["memory_gib"]),
            aliases=tuple(filter(None, row["aliases"].split(";"))),
        )
        for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    ]


def test_every_bundled_accelerator_is_found_by_its_id_its_name_and_each_alias():
    accelerators = bundled()
    index = Index(accelerators)
    lost = [
        (a.id, text)
        for a in accelerators
        for text in (a.id, a.name.partition("(")[0], *a.aliases)
        if a not in resolve(index, text, memory_gib=a.memory_gib).variants
    ]
    assert lost == []


# ---- requests ---------------------------------------------------------------------------------------------------


def test_a_request_takes_a_name_with_a_number_of_gpus():
    chosen = resolve_request(INDEX, "H100-SXM:8")
    assert chosen.ids == ("h100-sxm5-80gb",)
    assert chosen.count == units.Range(low=8, high=8, kind="count")
    assert chosen.notes == ()


@pytest.mark.parametrize(
    "text", ["8xH100-SXM", "8 × H100 SXM5 80 GB", "8 X h100 sxm", "H100-SXMx8", "H100 SXM5 80 GB × 8", "H100-SXM:8"]
)
def test_a_number_of_times_a_name_is_a_name_with_a_number(text):
    chosen = resolve_request(INDEX, text)
    assert (chosen.ids, chosen.count) == (("h100-sxm5-80gb",), units.Range(low=8, high=8, kind="count"))


@pytest.mark.parametrize("text", ["1x8", "x8", "8x", "0xH100", "T4x", "A100X", "8xH10", "2xT4:4", "RX 580", "rtx999"])
def test_uc_077_what_only_looks_like_a_number_of_times_a_name_is_refused(text):
    with pytest.raises(UnknownName):
        resolve_request(INDEX, text)


def test_a_name_that_holds_an_x_and_a_number_stays_a_name():
    chosen = resolve_request(INDEX, "GTX 1080 Ti")
    assert (chosen.ids, chosen.count) == (("gtx-1080-ti",), None)


def test_a_request_takes_ranges_of_memory_and_of_counts():
    assert resolve_request(INDEX, "80GB..").memory == units.Range(low=80, high=None, kind="memory")
    assert resolve_request(INDEX, "1..8").count == units.Range(low=1, high=8, kind="count")
    both = resolve_request(INDEX, "24GB..48GB:2..4")
    assert (both.memory.low, both.memory.high, both.count.low, both.count.high) == (24, 48, 2, 4)


def test_a_number_is_a_card_where_one_has_that_name_and_else_a_count():
    assert resolve_request(INDEX, "4090").ids == ("rtx-4090",)
    assert resolve_request(INDEX, "8").count == units.Range(low=8, high=8, kind="count")


def test_a_request_for_a_card_of_one_known_size_says_so():
    chosen = resolve_request(INDEX, "RTX 4060 Ti")
    assert chosen.ids == ("rtx-4060-ti-16gb",)
    assert "16 GB" in str(chosen.notes[0])


@pytest.mark.parametrize("text", ["8:4", "1..8:2", "48GB..24GB", "..", "80..40GB"])
def test_a_request_that_contradicts_itself_is_refused(text):
    with pytest.raises(InvalidInput):
        resolve_request(INDEX, text)


@pytest.mark.parametrize("text", ["", ":8", "H100:", "H100:0", "H100:80GB", "A100D-40C", "GTX 4090", "NONAME"])
def test_a_request_that_names_no_whole_gpu_and_number_is_refused_with_a_hint(text):
    with pytest.raises(UnknownName) as error:
        resolve_request(INDEX, text)
    assert str(error.value.hint)


def test_a_name_like_no_other_points_to_the_list():
    with pytest.raises(UnknownName, match="gpuwise data list") as error:
        resolve_request(INDEX, "qqqqqq")
    assert error.value.nearest == ()
