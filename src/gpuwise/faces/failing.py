"""An error as a document: the same for `--json` and over HTTP."""

from __future__ import annotations

from typing import Any

from gpuwise.errors import GpuwiseError

SCHEMA = 1
DETAILS = ("nearest", "file", "row", "column")


def document(error: GpuwiseError) -> dict[str, Any]:
    """In English whatever the language. The kind is the name in `errors`; details only where the kind has them."""
    about = {
        "kind": type(error).__name__,
        "message": str(error.message),
        "hint": str(error.hint),
        "exit_code": error.exit_code,
    }
    return {"schema": SCHEMA, "error": about | {k: getattr(error, k) for k in DETAILS if hasattr(error, k)}}
