"""Names for what is kept: hashes of texts."""

from __future__ import annotations

from blake3 import blake3


def digest(*parts: str) -> str:
    """A hash of these texts, each apart from the others."""
    hasher = blake3()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()
