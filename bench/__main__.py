"""Run the benchmarks named on the command line, or all. Words after one that takes them choose among its rows.

`python -m bench --busy workloads` measures CPU time on one CPU: for a machine that does other work at the same time.
`python -m bench all`, `compare`, `kernels` and `parallel` have options of their own, which `--help` tells;
`python -m bench machines` takes names of machines.
"""

from __future__ import annotations

import sys
from importlib import import_module

from bench import harness

ALL = (
    "startup", "instant", "atlas", "scheduler", "cpu", "gemm", "rows", "attention", "conv", "graph", "workloads",
    "steps", "optimizers", "latency", "scheme", "parallel", "calculus", "twice", "training", "checkpoints", "loading",
)  # fmt: skip
ELSEWHERE = ("gpu", "gpt2", "resnet")  # for machines that not everyone has: run where they are named
CHOOSY = ("workloads", "steps", "latency", "scheme", "calculus")  # `python -m bench scheme fib`: words choose its rows
OWN = {  # commands with options of their own
    "all": "bench.every.command", "compare": "bench.every.compare", "kernels": "bench.kernels",
    "machines": "bench.machines", "parallel": "bench.parallel", "pauses": "bench.pauses",
}  # fmt: skip


def main(words: list[str]) -> int:
    chosen: dict[str, list[str]] = {}
    last = ""
    if "--busy" in words:
        words.remove("--busy")
        harness.among_others()
    if words and words[0] in OWN:
        return int(import_module(OWN[words[0]]).main(words[1:]))
    for word in words or ALL:
        if word in CHOOSY or (word in (*ALL, *ELSEWHERE) and (last not in CHOOSY or not words)):
            chosen[last := word] = []
        elif last in CHOOSY:
            chosen[last].append(word)
        else:
            print(f"no benchmark '{word}'; there are {', '.join((*ALL, *ELSEWHERE, *OWN))}", file=sys.stderr)
            return 2
    for name, rows in chosen.items():
        module = import_module(f"bench.{name}")
        results = module.run(rows) if name in CHOOSY else module.run()
        if name in CHOOSY:
            module.finish(name, results)
        else:
            harness.show(module.TITLE, results)
            harness.save(name, module.TITLE, results)
    print(f"JSON and PNG are in {harness.OUT.relative_to(harness.OUT.parent.parent)}/")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
