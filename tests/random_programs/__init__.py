"""Random tensor programs: drawn, computed in every way there is, and compared.

    choosing     where choices come from: a seed, or hypothesis, which shrinks what fails
    program      programs as data: leaves and steps; each step by itself is the oracle
    steps        kinds of steps that are written out: movement, indexing, reductions, products, changes in place
    bodies       kinds of steps with programs inside: loops, branches, vmap, jit within jit
    length_steps steps in terms of the lengths that they meet
    matrix_steps einsum, linear algebra, windows, orders, with drawn parameters
    complex_steps  complex numbers and transforms
    table_steps  every row of the op table, by the domain of its own samples
    drawing      a program is drawn, step by step, on values that are at hand
    ways         the ways to compute a program: eager, jit, derivatives, vmap, backward in a loop, donation
    comparing    when two answers are the same
    shrinking    the smallest program that still fails

`python -m random_programs --count 10000 --seed 1 --jobs 2` runs many of them in processes that live long, so that what
one program leaves in a cache meets the next.
"""
