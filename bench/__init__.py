"""Benchmarks: `make bench` runs them all and prints side-by-side tables."""
