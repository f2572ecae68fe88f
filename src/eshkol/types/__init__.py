"""Gradual types and ownership: what programs say of their values, checked before they run.

Comes in: core forms (`lang/core.py`), with the annotations that the expander keeps beside variables and procedures.
Goes out: errors with places, the types of expressions, and the same core forms with checks where typed and untyped code
meet. It stands between `lang/` and `codegen/`, and knows no tensors: what their shapes come to is asked of whoever has
the op table.

    kinds fitting        what types are, their joins and meets; which type fits where
    sizes                sizes with names, in one normal form
    reading              annotations, which are data, as types
    constants            the types of constants
    standard             the types of the standard library: a table, and what signatures of primitives say
    numbers              what arithmetic gives for the kinds of numbers that it takes
    checking calls loops narrowing   core forms with their types: inference within procedures, calls, predicates
    inequalities         linear arithmetic over the integers: whether constraints can hold together, what follows
    propositions terms   what annotations say of sizes and indices; core forms as sums of unknowns
    proving proofs       what is known of them at a point of a program; proofs that sizes are equal
    certain              what is certain when a program runs, whatever types say: looks at bounds that may be left out
    owners owning        who owns what: moves, borrows, ends, followed through a program
    scopes regions       where owners end and borrows are given back, written in; who may have a region's memory
    wording              mismatches as errors with both types, their places and a remedy
    exporting            what a library says of its types to importers
    borders tests        checks where untyped values come into typed code, with blame; types as code that asks
    walking              the forms within a form
"""
