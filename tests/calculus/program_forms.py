"""Forms of random programs that are about memory: vectors and variables that are changed, shared, passed on.

They join the table of `differentiable_programs.py`.
"""

from __future__ import annotations

from differentiable_programs import FORMS as FORMS
from differentiable_programs import Generator, Scope, form


@form
def swapped_vectors(g: Generator, scope: Scope, depth: int) -> str:
    """A loop that carries two vectors, changes one and exchanges them."""
    a, b, i = g.name("a"), g.name("b"), g.name("i")
    one, two = (f"(vector {' '.join(g.real(scope, depth - 2) for _ in range(3))})" for _ in range(2))
    inner = scope.plus(vectors=[a, b], integers=[i])
    change = f"(vector-set! {a} (modulo {i} 3) {g.small(inner, depth - 1)})"
    again = g.chance.choice([f"(loop (+ {i} 1) {b} {a})", f"(loop (+ {i} 1) {a} {a})", f"(loop (+ {i} 1) {b} {b})"])
    if g.chance.random() < 0.5:
        again = f"(if {g.test(inner, 1)} {again} (loop (+ {i} 1) {a} {b}))"
    result = f"(+ (vector-ref {a} 0) (* 2 (vector-ref {b} 0)) (mean-of {b}))"
    return f"(let loop (({i} 0) ({a} {one}) ({b} {two})) (if (= {i} 4) {result} (begin {change} {again})))"


@form
def passed_vector(g: Generator, scope: Scope, depth: int) -> str:
    """A procedure that changes the vector that it is given; perhaps it calls itself."""
    h, v, w, k = g.name("h"), g.name("v"), g.name("w"), g.name("k")
    inner = scope.plus(vectors=[v], integers=[k])
    more = g.chance.choice(["", f"(if (> {k} 0) ({h} {v} (- {k} 1)))"])
    start = g.chance.choice([f"(make-vector 3 {g.real(scope, 1)})", f"(vector {g.real(scope, 1)} 0 1.5)"])
    after = g.chance.choice(["0", f"(vector-set! {v} 1 {g.real(scope, 1)})"])
    return (
        f"(let* (({w} {start})) (define ({h} {v} {k}) (vector-set! {v} {k} {g.small(inner, depth - 1)}) {more} {after})"
        f" ({h} {w} 2) ({h} {w} 1) (mean-of {w}))"
    )


@form
def vector_in_closure(g: Generator, scope: Scope, depth: int) -> str:
    """Procedures that share a vector."""
    v, put, get, u = g.name("v"), g.name("put"), g.name("get"), g.name("u")
    body = g.small(scope.plus(reals=[u], vectors=[v]), depth - 1)
    made = f"(vector {g.real(scope, 1)} {g.real(scope, 1)} 2)"
    return (
        f"(let* (({v} {made}) ({put} (lambda (i {u}) (vector-set! {v} i {body})))"
        f" ({get} (lambda (i) (vector-ref {v} i)))) ({put} 0 {g.real(scope, depth - 2)}) ({put} 2 ({get} 0))"
        f" (* ({get} 0) ({get} {g.chance.choice('012')})))"
    )


@form
def rows(g: Generator, scope: Scope, depth: int) -> str:
    """A vector of vectors, or a list of lists."""
    i, j, m, row = g.name("i"), g.name("j"), g.name("m"), g.name("row")
    parts = [g.real(scope, depth - 2) for _ in range(4)]
    u = g.name("u")
    body = g.small(scope.plus(reals=[u]), depth - 1)
    return g.chance.choice(
        [
            f"(apply + (map (lambda ({row}) (dot {row} (list {parts[0]} {parts[1]} 2))) table))",
            f"(sum-of (map (lambda ({row}) (sum-of (map (lambda ({u}) {body}) {row}))) table))",
            f"(let (({m} (vector (vector {parts[0]} {parts[1]}) (vector {parts[2]} {parts[3]}))))"
            f" (do (({i} 0 (+ {i} 1)) ({j} 0 (+ {j} (vector-ref (vector-ref {m} {i}) (- 1 {i}))))) ((= {i} 2) {j})))",
            f"(let (({m} (list (list {parts[0]} {parts[1]}) (list {parts[2]} 1))))"
            f" (fold (lambda ({row} s) (+ (* 0.5 s) (car {row}) (cadr {row}))) 0 {m}))",
        ]
    )


@form
def assigned(g: Generator, scope: Scope, depth: int) -> str:
    """Variables that are assigned in loops and by closures, exact first and then not."""
    a, b, i, change = g.name("a"), g.name("b"), g.name("i"), g.name("change")
    inner = scope.plus(reals=[a, b], integers=[i])
    one, two = g.small(inner, depth - 1), g.small(inner, depth - 1)
    return (
        f"(let (({a} {g.chance.choice(['0', '1', '0.5'])}) ({b} {g.real(scope, 1)}))"
        f" (define ({change} u) (set! {a} (+ (* 0.5 {a}) u)) {a})"
        f" (do (({i} 0 (+ {i} 1))) ((= {i} {g.integer(scope)}))"
        f" (if {g.test(inner, depth - 1)} (set! {b} {one}) ({change} {two})))"
        f" (+ {a} (* 2 {b})))"
    )


@form
def flag(g: Generator, scope: Scope, depth: int) -> str:
    """A truth value that goes round a loop, and a search."""
    i, s, on, u = g.name("i"), g.name("s"), g.name("on"), g.name("u")
    inner = scope.plus(reals=[s], integers=[i])
    if g.chance.random() < 0.4:
        g.smooth = False
        items = g.list(scope, depth - 1)
        found = f"(let find ((l {items})) (cond ((null? l) #f) ((> (car l) 0) (car l)) (else (find (cdr l)))))"
        return f"(let (({u} {found})) (if {u} {u} 1/2))"
    return (
        f"(let loop (({i} 0) ({s} {g.real(scope, 1)}) ({on} {g.chance.choice(['#t', '#f'])})) (if (= {i} 4) {s}"
        f" (loop (+ {i} 1) (if {on} {g.small(inner, depth - 1)} (* 0.5 {s})) (not {on}))))"
    )


@form
def integers(g: Generator, scope: Scope, depth: int) -> str:
    """Integers that are counted, used as indices and as factors."""
    i, n, s = g.name("i"), g.name("n"), g.name("s")
    inner = scope.plus(reals=[s], integers=[i])
    test = g.test(inner, 1)
    return (
        f"(let loop (({i} 0) ({n} 0) ({s} 0)) (if (= {i} 4) (+ {s} (* {n} {g.real(scope, 1)}) (vector-ref weights {n}))"
        f" (loop (+ {i} 1) (if (and (< {n} 3) {test}) (+ {n} 1) {n}) (+ (* 0.5 {s}) {g.small(inner, depth - 1)}))))"
    )


@form
def filtered(g: Generator, scope: Scope, depth: int) -> str:
    u = g.name("u")
    inner = scope.plus(reals=[u])
    items = g.list(scope, depth - 1)
    return g.chance.choice(
        [
            f"(sum-of (filter (lambda ({u}) {g.test(inner, 1)}) {items}))",
            f"(sum-of (map (lambda (i) (* i {g.small(scope, depth - 1)})) (iota 4)))",
            f"(reduce + 0 {items})",
            f"(apply (lambda ({u} . rest) (apply + {u} {u} rest)) {items})",
            f"(apply * 0.5 {items})",
            f"(vector-ref (vector-map (lambda ({u}) {g.small(inner, depth - 1)}) (list->vector {items})) 0)",
        ]
    )
