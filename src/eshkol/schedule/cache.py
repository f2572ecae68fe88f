"""What the compiler keeps of what it has made."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

KEPT = 4096

# One thread at a time compiles graphs, and computes what is not computed yet: nodes are shared, and become leaves. No
# code of a user's runs under it, so no one who has it waits for another thread. Plans that are ready need no lock.
COMPILER = threading.RLock()


class Cache(dict[Any, Any]):
    """A bounded cache: when it is full, the older half goes."""

    every: ClassVar[list[Cache]] = []

    def __init__(self) -> None:
        super().__init__()
        Cache.every.append(self)

    def keep(self, key: Any, value: Any) -> None:
        with COMPILER:
            if len(self) >= KEPT:
                for old in list(itertools.islice(self, KEPT // 2)):
                    del self[old]
            self[key] = value


@contextmanager
def nothing_kept() -> Iterator[None]:
    """Within it all is made anew, and nothing of it is kept afterwards."""
    with COMPILER:
        kept = [dict(cache) for cache in Cache.every]
        for cache in Cache.every:
            cache.clear()
        try:
            yield
        finally:
            for cache, items in zip(Cache.every, kept, strict=False):
                cache.clear()
                cache.update(items)
