"""Benchmarks: `make bench` runs them all and prints side-by-side tables."""

import os

# Before NumPy is imported. Its threads otherwise wait busily for a tenth of a second after each product, on the cores
# that whoever is measured next computes on; a millisecond is more than lies between the calls of a burst.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "21")  # cycles, as a power of two
