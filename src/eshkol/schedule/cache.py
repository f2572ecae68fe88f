"""What the compiler keeps of what it has made."""

from __future__ import annotations

import itertools
from typing import Any

KEPT = 4096


class Cache(dict[Any, Any]):
    """A bounded cache: when it is full, the older half goes."""

    def keep(self, key: Any, value: Any) -> None:
        if len(self) >= KEPT:
            for old in list(itertools.islice(self, KEPT // 2)):
                del self[old]
        self[key] = value
