"""How strong the tests are: small changes to the compiler's sources, and whether a test notices each.

    PYTHONPATH=src:tests python -m mutation --package schedule --sample 100 --seed 1 --jobs 2 --out build/mutants.jsonl

`mutants` makes the changes, `excluded` lists the lines that no test of answers can judge, `suites` says which tests
judge which package, `reach` finds out once which test executes which line, `plans` is the first stage: whether plans
become others, by functions that are `swapped` in place. `trial` runs the tests on one changed module in a process of
its own, `workers` runs many such processes, `records` tells what became of each, `table` counts. docs/testing.md
explains how to read the table.
"""
