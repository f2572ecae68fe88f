"""Eshkol: write a numerical program once, differentiate it, and run it fast anywhere.

The package root stays light: heavy parts are imported from their own modules
(`eshkol.atlas`, `eshkol.backends`), so `import eshkol` costs next to nothing.
"""

from eshkol.version import __version__

__all__ = ["__version__"]
