"""Run the benchmarks named on the command line, or all."""

from __future__ import annotations

import sys
from importlib import import_module

from bench import harness

ALL = ("startup", "atlas", "scheduler", "cpu", "gemm", "rows", "attention", "conv", "graph")


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"no benchmark '{unknown[0]}'; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    for name in names or ALL:
        module = import_module(f"bench.{name}")
        results = module.run()
        harness.show(module.TITLE, results)
        harness.save(name, module.TITLE, results)
    print(f"JSON and PNG are in {harness.OUT.relative_to(harness.OUT.parent.parent)}/")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
