"""The shipped predictor, made anew: scales, posterior, the factors of its intervals, and those of several devices.

python -m benchmarks.fit               `make fit` runs this: scales, posterior, several devices; other factors stay
python -m benchmarks.fit --factors     the factors of the intervals too, from every split (some five minutes)
python -m benchmarks.fit --profile     what moves a profiled step class by class too (some ten minutes)
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gpuwise.api.trust import bundled
from gpuwise.predict import profile_split
from gpuwise.predict.answer import Model
from gpuwise.predict.fit import Design, fit_scales, posterior
from gpuwise.predict.profile import Profiles
from gpuwise.predict.profile_fit import fit_profile, module
from gpuwise.predict.scaling import STEPS
from gpuwise.predict.scaling_fit import as_module, fit_classes
from gpuwise.predict.shipped import to_arrays
from gpuwise.predict.splits import bench, factors, raws, shipped_rows
from gpuwise.store import package

ROOT = Path(__file__).parent.parent / "src" / "gpuwise"
DATA = ROOT / "data"
SCALING, PROFILE = ROOT / "predict" / "scaling_fitted.py", ROOT / "predict" / "profile_fitted.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factors", action="store_true", help="the factors of the intervals too")
    parser.add_argument("--profile", action="store_true", help="scales and factors for profiled steps too")
    arguments = parser.parse_args()
    tables = bundled(model=False)
    b = bench(tables)
    begun = time.perf_counter()
    scales = fit_scales(b.design())
    scaled = time.perf_counter()
    found = posterior(Design.of(shipped_rows(tables), b.basis), scales)
    print(f"scales {scaled - begun:.1f} s, posterior {time.perf_counter() - scaled:.1f} s, {len(found.mean)} features")
    if arguments.profile:
        rows = Profiles.of(tables.texts["profiles"])
        PROFILE.write_text(module(fit_profile(rows), profile_split.factors(profile_split.raws(rows))), "utf-8")
    SCALING.write_text(as_module(fit_classes(package.throughput(frozenset(STEPS)), package.accelerators())), "utf-8")
    write(Model(posterior=found, factors=factors(raws(tables)) if arguments.factors else _kept()))


def _kept() -> Mapping[str, float]:
    """The factors that ship."""
    if not (DATA / "predictor.npz").exists():
        return {}
    with np.load(DATA / "predictor.npz", allow_pickle=False) as arrays:
        found: dict[str, float] = json.loads(str(arrays["told"]))["factors"]
    return found


def write(model: Model) -> None:
    """The model into the bundle, and its hash into datapackage.json."""
    content = io.BytesIO()
    np.savez_compressed(content, **to_arrays(model, package.version()))  # type: ignore[arg-type]
    (DATA / "predictor.npz").write_bytes(content.getvalue())
    described = json.loads((DATA / "datapackage.json").read_text("utf-8"))
    entry = {
        "name": "predictor",
        "title": "Scales and posterior of the predictor, made by `make fit`",
        "path": "predictor.npz",
        "format": "npz",
        "bytes": len(content.getvalue()),
        "hash": f"sha256:{hashlib.sha256(content.getvalue()).hexdigest()}",
    }
    others = [r for r in described["resources"] if r["path"] != "predictor.npz"]
    described["resources"] = [*others, entry]
    (DATA / "datapackage.json").write_text(json.dumps(described, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print("Written: src/gpuwise/data/predictor.npz")


if __name__ == "__main__":
    main()
