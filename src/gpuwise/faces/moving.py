"""The ways out for the data, as a document: of own and of exit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwise.api.moving import Moved
from gpuwise.locale import words


def data_move(found: Moved) -> Mapping[str, Any]:
    return {
        "provider": found.provider,
        "gb": found.move.gb,
        "usd": found.usd,
        **({} if found.usd_reason is None else {"usd_reason": words(found.usd_reason)}),
        "early_deletion_usd": found.move.early_usd,
        "retrieval_usd": found.move.retrieval_usd,
        "ways": [
            {
                "kind": one.way.kind,
                "name": one.way.name,
                "usd": one.way.usd,
                **({} if one.way.reason is None else {"usd_reason": words(one.way.reason)}),
                "days": one.way.days,
                "condition": one.way.condition,
                "from_day": one.way.from_day,
                "from_day_reason": "now",
                "counts": one.why_not is None and one.way.usd is not None,
                "why_not": "" if one.why_not is None else words(one.why_not),
                "taken": one.way is found.best,
                "source": one.way.source,
            }
            for one in found.ways
        ],
    }
