"""Sources are tested with the fixtures of the store: a cache folder of one's own, and the bundled facts."""

from tests.store.conftest import cache_folder, facts

__all__ = ["cache_folder", "facts"]
