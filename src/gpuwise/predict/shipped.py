"""The model as plain arrays, and back: what `make fit` writes and a user's machine reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwise.predict.answer import Model
from gpuwise.predict.features import Basis, Smooth
from gpuwise.predict.gp import Posterior, Scales

Arrays = dict[str, NDArray[Any]]

SMOOTH = ("sheet", "counts", "more")
SETS = ("workloads", "answering", "cards", "architectures", "families")


def to_arrays(model: Model, data_version: str) -> Arrays:
    """The covariance as its lower triangle in single precision; all that is not a number as one JSON text."""
    p = model.posterior
    triangle = p.covariance[np.tril_indices(len(p.mean))].astype(np.float32)
    found: Arrays = {"mean": p.mean, "covariance": triangle}
    for name in SMOOTH:
        smooth = getattr(p.basis, name)
        found |= {f"{name}_anchors": smooth.anchors, f"{name}_weights": smooth.weights}
    told = {
        "data_version": data_version,
        "factors": dict(model.factors),
        "scales": {k: dict(getattr(p.scales, k)) for k in ("blocks", "components", "noises")},
        "lengths": {name: getattr(p.basis, name).length for name in SMOOTH},
        "starts": [[block, key, column] for (block, key), column in p.starts.items()],
        "block": list(p.block),
        **{name: sorted(getattr(p, name)) for name in SETS},
    }
    return found | {"told": np.array(json.dumps(told, sort_keys=True))}


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Model:
    """Inverse of `to_arrays`, but for the precision of the covariance."""
    told = json.loads(str(arrays["told"]))
    basis = {
        name: Smooth(anchors=arrays[f"{name}_anchors"], weights=arrays[f"{name}_weights"], length=told["lengths"][name])
        for name in SMOOTH
    }
    posterior = Posterior(
        scales=Scales(**told["scales"]),
        basis=Basis(**basis),
        starts={(block, key): column for block, key, column in told["starts"]},
        block=tuple(told["block"]),
        mean=arrays["mean"],
        covariance=_square(arrays["covariance"], len(arrays["mean"])),
        **{name: frozenset(told[name]) for name in SETS},
    )
    return Model(posterior=posterior, factors=told["factors"])


def _square(triangle: NDArray[Any], size: int) -> NDArray[Any]:
    """The symmetric matrix of a lower triangle."""
    found = np.zeros((size, size), triangle.dtype)
    found[np.tril_indices(size)] = triangle
    return found + np.tril(found, -1).T
