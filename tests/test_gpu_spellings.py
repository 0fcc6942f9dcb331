"""GPU names as drivers, clouds and people write them, against the cards of the bundled catalogue.

Sources of the spellings: `nvidia-smi` as benchmark logs and issues quote it, labels of Google's Kubernetes nodes,
names of instance pages, and everyday speech. A name that leaves the variant open stands for all of them; nothing is
ever taken for its neighbour.
"""

from __future__ import annotations

import pytest

from gpuwise.errors import UnknownName
from gpuwise.model import Accelerator
from gpuwise.names import Index, resolve_request
from gpuwise.store import package

INDEX = Index(package.accelerators().values())

ONE = """
Tesla V100-SXM2-16GB | v100-sxm2-16gb
NVIDIA Tesla V100-SXM2-32GB | v100-sxm2-32gb
Tesla V100-PCIE-16GB | v100-pcie-16gb
Tesla V100-PCIE-32GB | v100-pcie-32gb
Tesla V100S-PCIE-32GB | v100s-pcie-32gb
V100S | v100s-pcie-32gb
A100-SXM4-40GB | a100-sxm4-40gb
NVIDIA A100-SXM4-40GB | a100-sxm4-40gb
NVIDIA A100-SXM4-80GB | a100-sxm4-80gb
a100_80gb_sxm4 | a100-sxm4-80gb
A100-PCIE-40GB | a100-pcie-40gb
A100 80GB PCIe | a100-pcie-80gb
NVIDIA A100 80GB PCIe | a100-pcie-80gb
NVIDIA H100 80GB HBM3 | h100-sxm5-80gb
H100 SXM5 80GB HBM3 | h100-sxm5-80gb
H100 SXM | h100-sxm5-80gb
NVIDIA H100 PCIe | h100-pcie-80gb
H100 PCIe | h100-pcie-80gb
NVIDIA H100 NVL | h100-nvl-94gb
H100 NVL 94GB | h100-nvl-94gb
H200 SXM | h200-sxm
NVIDIA H200 NVL | h200-nvl
NVIDIA GH200 480GB | gh200-96gb
NVIDIA B200 | b200
B300 | b300
NVIDIA B300 SXM6 AC | b300
GB200 | gb200
H20 | h20
Tesla T4 | t4
NVIDIA T4 | t4
nvidia-tesla-t4 | t4
nvidia-l4 | l4
NVIDIA L40S | l40s
L40 | l40
A10 | a10
NVIDIA A10G | a10g
NVIDIA A30 | a30
NVIDIA A40 | a40
Tesla P100-PCIE-16GB | p100-pcie-16gb
Tesla P100-SXM2-16GB | p100-sxm2-16gb
Tesla P40 | p40
Tesla P4 | p4
GRID K520 | k520-half
NVIDIA GeForce RTX 3090 | rtx-3090
RTX3090 | rtx-3090
3090 | rtx-3090
GeForce RTX 3090 Ti | rtx-3090-ti
NVIDIA GeForce RTX 4090 | rtx-4090
4090 | rtx-4090
RTX 4090 24GB | rtx-4090
NVIDIA GeForce RTX 5090 | rtx-5090
RTX 5070 Ti | rtx-5070-ti
NVIDIA GeForce RTX 4080 SUPER | rtx-4080-super
RTX 4070 Ti SUPER | rtx-4070-ti-super
4060 Ti 16GB | rtx-4060-ti-16gb
NVIDIA GeForce RTX 3080 | rtx-3080-10gb
RTX 3080 Ti | rtx-3080-ti
RTX 3060 12GB | rtx-3060-12gb
GeForce RTX 2080 Ti | rtx-2080-ti
2080 Ti | rtx-2080-ti
RTX 2080 | rtx-2080
GeForce GTX 1080 Ti | gtx-1080-ti
1080Ti | gtx-1080-ti
GTX1080TI | gtx-1080-ti
GTX 1060 6GB | gtx-1060-6gb
TITAN Xp | titan-xp
NVIDIA TITAN Xp | titan-xp
TITAN V | titan-v
NVIDIA TITAN RTX | titan-rtx
Quadro RTX 6000 | quadro-rtx-6000
Quadro RTX 8000 | quadro-rtx-8000
Quadro RTX 5000 | quadro-rtx-5000
RTX A4000 | rtx-a4000
NVIDIA RTX A5000 | rtx-a5000
RTX A5000 | rtx-a5000
A6000 | rtx-a6000
NVIDIA RTX A6000 | rtx-a6000
NVIDIA RTX 6000 Ada Generation | rtx-6000-ada
RTX 6000 Ada | rtx-6000-ada
NVIDIA RTX 4000 SFF Ada Generation | rtx-4000-sff-ada
NVIDIA RTX PRO 6000 Blackwell Server Edition | rtx-pro-6000-server
NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition | rtx-pro-6000-maxq
AMD Instinct MI300X | mi300x
MI250X | mi250x
Radeon RX 7900 XTX | rx-7900-xtx
TPU v4 | tpu-v4
"""

SEVERAL = """
A100 | a100-pcie-40gb a100-pcie-80gb a100-sxm4-40gb a100-sxm4-80gb
A100 80GB | a100-pcie-80gb a100-sxm4-80gb
nvidia-a100-80gb | a100-pcie-80gb a100-sxm4-80gb
A100 SXM4 | a100-sxm4-40gb a100-sxm4-80gb
V100 16GB | v100-pcie-16gb v100-sxm2-16gb
nvidia-tesla-v100 | v100-pcie-16gb v100-pcie-32gb v100-sxm2-16gb v100-sxm2-32gb v100-sxm3-32gb
H100 | h100-nvl-94gb h100-pcie-80gb h100-sxm5-80gb
H100 80GB | h100-pcie-80gb h100-sxm5-80gb
NVIDIA H200 | h200-nvl h200-sxm
P100 | p100-pcie-12gb p100-pcie-16gb p100-sxm2-16gb
Tesla K80 | k80 k80-half
NVIDIA GeForce RTX 3060 | rtx-3060-12gb rtx-3060-8gb
RTX PRO 6000 | rtx-pro-6000-server rtx-pro-6000-ws
"""

NONE = (
    "NVIDIA RTX 5090 D v2", "NVIDIA GeForce RTX 4090 D", "RTX 3080 Laptop GPU", "RTX 2080 SUPER", "B400", "A200",
    "H800", "A100X", "GTX 980 Ti", "GTX 1070 Ti", "GTX 1660 Ti", "TITAN X (Pascal)", "GeForce GTX TITAN X",
    "Tesla M40 24GB", "GeForce RTX 2080 Ti (Max-Q)",
    "p3.2xlarge", "RTX 6000", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "Tesla V100-FHHL-16GB",
)  # fmt: skip
"""Laptop and cut-down cards, slices, instance types, and cards that the catalogue lacks."""


def rows(text: str) -> list[tuple[str, tuple[str, ...]]]:
    split = (line.partition(" | ") for line in text.strip().splitlines())
    return [(name, tuple(ids.split())) for name, _, ids in split]


@pytest.mark.parametrize(("name", "ids"), rows(ONE), ids=[name for name, _ in rows(ONE)])
def test_a_name_is_one_card_of_the_catalogue(name: str, ids: tuple[str, ...]) -> None:
    assert resolve_request(INDEX, name).ids == ids


@pytest.mark.parametrize(("name", "ids"), rows(SEVERAL), ids=[name for name, _ in rows(SEVERAL)])
def test_a_name_that_leaves_the_variant_open_is_all_of_them_and_says_so(name: str, ids: tuple[str, ...]) -> None:
    found = resolve_request(INDEX, name)
    assert (found.ids, len(found.notes)) == (ids, 1)


@pytest.mark.parametrize("name", NONE)
def test_uc_056_a_card_that_is_not_known_is_never_taken_for_another(name: str) -> None:
    with pytest.raises(UnknownName) as raised:
        resolve_request(INDEX, name)
    assert name in str(raised.value.message)
    assert str(raised.value.hint)


@pytest.mark.parametrize("card", package.accelerators().values(), ids=lambda card: card.id)
def test_every_card_is_known_by_its_id_its_name_and_its_aliases(card: Accelerator) -> None:
    names = (card.id, card.id.upper(), card.name.partition("(")[0].strip(), *card.aliases)
    assert [name for name in names if card.id not in resolve_request(INDEX, name).ids] == []
