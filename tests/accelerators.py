"""Accelerators for tests, with the ids of the bundled table but without needing it."""

from __future__ import annotations

from gpuwise.model import Accelerator

_ROWS = """
a10                 | A10                                   | Ampere        | PCIe       | 24
a10g                | A10G (AWS only)                       | Ampere        | PCIe       | 24
a100-pcie-40gb      | A100 PCIe 40GB                        | Ampere        | PCIe       | 40
a100-pcie-80gb      | A100 PCIe 80GB                        | Ampere        | PCIe       | 80
a100-sxm4-40gb      | A100 SXM4 40GB                        | Ampere        | SXM4       | 40
a100-sxm4-80gb      | A100 SXM4 80GB                        | Ampere        | SXM4       | 80
a800-pcie-80gb      | A800 PCIe 80GB                        | Ampere        | PCIe       | 80
b200                | B200 SXM                              | Blackwell     | SXM        | 180
gaudi2              | Gaudi 2                               | Gaudi         | OAM        | 96
gb300               | GB300 (per GPU)                       | Blackwell Ultra | superchip | 287.5
gh200-96gb          | GH200 96GB (GPU part)                 | Hopper        | superchip  | 96 | GH200 480GB
gtx-1080-ti         | GeForce GTX 1080 Ti                   | Pascal        | PCIe       | 11
h100-nvl-94gb       | H100 NVL 94GB (one card)              | Hopper        | PCIe       | 94
h100-pcie-80gb      | H100 PCIe 80GB                        | Hopper        | PCIe       | 80
h100-sxm5-80gb      | H100 SXM5 80GB                        | Hopper        | SXM5       | 80
h20                 | H20                                   | Hopper        | SXM5       | 96
h200-nvl            | H200 NVL 141GB                        | Hopper        | PCIe       | 141
h200-sxm            | H200 SXM 141GB                        | Hopper        | SXM5       | 141
k80                 | Tesla K80 (whole board, 2x GK210)     | Kepler        | PCIe       | 24
k80-half            | Tesla K80 (one of two GK210 dies)     | Kepler 2.0    | PCIe       | 12
l4                  | L4                                    | Ada Lovelace  | PCIe       | 24
l40                 | L40                                   | Ada Lovelace  | PCIe       | 48
l40s                | L40S                                  | Ada Lovelace  | PCIe       | 48
mi300x              | Instinct MI300X                       | CDNA 3        | OAM        | 192
quadro-rtx-4000     | Quadro RTX 4000                       | Turing        | PCIe       | 8
quadro-rtx-6000     | Quadro RTX 6000                       | Turing        | PCIe       | 24
rtx-3080-10gb       | GeForce RTX 3080 10GB                 | Ampere        | PCIe       | 10
rtx-3080-ti         | GeForce RTX 3080 Ti                   | Ampere        | PCIe       | 12
rtx-4000-ada        | RTX 4000 Ada Generation               | Ada Lovelace  | PCIe       | 20
rtx-4060-ti-16gb    | GeForce RTX 4060 Ti 16GB              | Ada Lovelace  | PCIe       | 16
rtx-4090            | GeForce RTX 4090                      | Ada Lovelace  | PCIe       | 24
rtx-6000-ada        | RTX 6000 Ada Generation               | Ada Lovelace  | PCIe       | 48
rtx-a4500           | RTX A4500                             | Ampere        | PCIe       | 20
rtx-a6000           | RTX A6000                             | Ampere        | PCIe       | 48
rtx-pro-6000-server | RTX PRO 6000 Blackwell Server Edition | Blackwell 2.0 | PCIe       | 96
rtx-pro-6000-ws     | RTX PRO 6000 Blackwell Workstation    | Blackwell 2.0 | PCIe       | 96
t4                  | Tesla T4                              | Turing        | PCIe       | 16
t4g                 | Tesla T4G                             | Turing        | PCIe       | 16
titan-rtx           | TITAN RTX                             | Turing        | PCIe       | 24
titan-v             | TITAN V                               | Volta         | PCIe       | 12
tpu-v4              | TPU v4                                | TPU           | chip       | 32
v100-pcie-16gb      | Tesla V100 PCIe 16GB                  | Volta         | PCIe       | 16
v100-pcie-32gb      | Tesla V100 PCIe 32GB                  | Volta         | PCIe       | 32
v100-sxm2-16gb      | Tesla V100 SXM2 16GB                  | Volta         | SXM2       | 16
v100-sxm2-32gb      | Tesla V100 SXM2 32GB                  | Volta         | SXM2       | 32
v100s-pcie-32gb     | Tesla V100S PCIe 32GB                 | Volta         | PCIe       | 32
"""

_VENDORS = {"gaudi2": "Intel", "mi300x": "AMD", "tpu-v4": "Google"}


def _accelerator(row: str) -> Accelerator:
    key, name, architecture, form_factor, memory_gib, *aliases = (cell.strip() for cell in row.split("|"))
    return Accelerator(
        id=key,
        name=name,
        vendor=_VENDORS.get(key, "NVIDIA"),
        architecture=architecture,
        form_factor=form_factor,
        memory_gib=float(memory_gib),
        aliases=tuple(aliases),
    )


ACCELERATORS = {a.id: a for a in map(_accelerator, _ROWS.strip().splitlines())}
