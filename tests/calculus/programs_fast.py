"""Typed programs with all that there is: loops, branches, arrays, lists, calls; each with arguments to try it at."""

from __future__ import annotations

from typing import Any

PROGRAMS: dict[str, tuple[str, list[Any]]] = {
    "rosenbrock": (
        """
function main -> f64
b0(%x: array(f64) varies):
  %z: i64 = constant 0
  %one: i64 = constant 1
  %f0: f64 = constant 0.0
  %n: i64 = array_length %x
  %m: i64 = isub %n, %one
  jump loop(%z, %f0)
loop(%i: i64, %s: f64):
  %c: i1 = icompare lt %i, %m
  branch %c body() done()
body():
  %a: f64 = array_get %x, %i
  %j: i64 = iadd %i, %one
  %b: f64 = array_get %x, %j
  %h: f64 = constant 100.0
  %u: f64 = constant 1.0
  %aa: f64 = math * %a, %a
  %d: f64 = math - %b, %aa
  %dd: f64 = math * %d, %d
  %t: f64 = math * %h, %dd
  %e: f64 = math - %u, %a
  %ee: f64 = math * %e, %e
  %tt: f64 = math + %t, %ee
  %r: f64 = math + %s, %tt
  jump loop(%j, %r)
done():
  return %s
""",
        [[0.3, 1.2, -0.7, 0.5]],
    ),
    "array_set": (
        """
function main -> f64
b0(%x: f64 varies, %n: i64):
  %one: i64 = constant 1
  %two: i64 = constant 2
  %z: i64 = constant 0
  %w: array(f64) = array_new %n, %x
  jump loop(%one)
loop(%i: i64):
  %c: i1 = icompare lt %i, %n
  branch %c body() done()
body():
  %h: i64 = isub %i, %one
  %a: f64 = array_get %w, %h
  %b: f64 = array_get %w, %i
  %p: f64 = math * %a, %b
  %q: f64 = math sin %p
  array_set %w, %i, %q
  %j: i64 = iadd %i, %one
  jump loop(%j)
done():
  %k: i64 = isub %n, %one
  %r: f64 = array_get %w, %k
  %r0: f64 = array_get %w, %z
  %rr: f64 = math * %r, %r0
  return %rr
""",
        [1.3, 6],
    ),
    "recursion": (
        """
function main -> f64
b0(%n: i64, %x: f64 varies):
  %r: f64 = call f %n, %x
  return %r

function f -> f64
b0(%n: i64, %x: f64):
  %z: i64 = constant 0
  %c: i1 = icompare eq %n, %z
  branch %c yes() no()
yes():
  %u: f64 = constant 1.0
  return %u
no():
  %one: i64 = constant 1
  %m: i64 = isub %n, %one
  %v: f64 = call f %m, %x
  %s: f64 = math sin %v
  %p: f64 = math * %x, %s
  return %p
""",
        [7, 1.7],
    ),
    "recursive_main": (
        """
function f -> f64
b0(%n: i64, %x: f64 varies):
  %z: i64 = constant 0
  %c: i1 = icompare eq %n, %z
  branch %c yes() no()
yes():
  %u: f64 = constant 1.0
  return %u
no():
  %one: i64 = constant 1
  %m: i64 = isub %n, %one
  %v: f64 = call f %m, %x
  %p: f64 = math * %x, %v
  return %p
""",
        [7, 1.7],
    ),
    "nested_loops": (
        """
function main -> f64
b0(%x: f64 varies, %y: f64 varies, %n: i64):
  %z: i64 = constant 0
  %one: i64 = constant 1
  jump outer(%z, %x)
outer(%i: i64, %a: f64):
  %c: i1 = icompare lt %i, %n
  branch %c pre() done()
pre():
  %g: f64 = math sin %a
  %g2: f64 = math * %g, %y
  jump inner(%z, %a)
inner(%j: i64, %b: f64):
  %d: i1 = icompare le %j, %i
  branch %d body() out()
body():
  %t: f64 = math * %b, %g2
  %k: f64 = math cos %t
  %jf: f64 = itof %j
  %k2: f64 = math * %k, %g
  %kk: f64 = math + %k2, %jf
  %big: i1 = compare gt %kk, %b
  branch %big exit2() cont()
cont():
  %j2: i64 = iadd %j, %one
  jump inner(%j2, %kk)
exit2():
  %q: f64 = math / %kk, %g2
  jump join(%q)
out():
  jump join(%b)
join(%o: f64):
  %i2: i64 = iadd %i, %one
  %oo: f64 = math * %o, %g
  %ooo: f64 = math + %oo, %y
  jump outer(%i2, %ooo)
done():
  %e: f64 = math * %a, %y
  return %e
""",
        [0.3, 1.1, 6],
    ),
    "lists": (
        """
function main -> f64
b0(%l: cell(f64) varies, %y: f64 varies):
  %e: null = constant None
  jump loop(%l, %e)
loop(%p: cell(f64), %acc: cell(f64)):
  %c: i1 = is_null %p
  branch %c done() body()
body():
  %v: f64 = cell_value %p
  %w: f64 = math * %v, %y
  %q: f64 = math * %w, %v
  %n: cell(f64) = cell_new %q, %acc
  %r: cell(f64) = cell_next %p
  jump loop(%r, %n)
done():
  %f0: f64 = constant 0.5
  jump sum(%acc, %f0)
sum(%m: cell(f64), %s: f64):
  %d: i1 = is_null %m
  branch %d fin() more()
more():
  %t: f64 = cell_value %m
  %u: f64 = math * %t, %s
  %uu: f64 = math + %u, %y
  %o: cell(f64) = cell_next %m
  jump sum(%o, %uu)
fin():
  return %s
""",
        [(0.3, 1.5, 0.7), 1.2],
    ),
    "functions": (
        """
function main -> f64
b0(%x: f64 varies, %y: f64 varies):
  %p: f64 = math * %x, %y
  %s: f64 = math sin %p
  %q: f64 = math / %s, %x
  %e: f64 = math expt %x, %y
  %t: f64 = math tan %e
  %l: f64 = math log %e
  %a: f64 = math atan %t
  %r: f64 = math + %q, %l
  %u: f64 = math - %r
  %v: f64 = math max %u, %a
  %w: f64 = math sqrt %x
  %z: f64 = math * %v, %w
  return %z
""",
        [1.3, 2.1],
    ),
    "loop_with_branch": (
        """
function main -> f64
b0(%x: f64 varies, %n: i64):
  %z: i64 = constant 0
  %one: i64 = constant 1
  %f1: f64 = constant 1.0
  jump loop(%z, %f1)
loop(%i: i64, %a: f64):
  %c: i1 = icompare lt %i, %n
  branch %c body() done()
body():
  %fi: f64 = itof %i
  %t: f64 = math * %a, %x
  %s: f64 = math sin %t
  %u: f64 = math + %s, %fi
  %pos: i1 = compare lt %u, %a
  branch %pos yes() no()
yes():
  %v: f64 = math * %u, %u
  jump next(%v)
no():
  %w: f64 = math exp %s
  jump next(%w)
next(%k: f64):
  %j: i64 = iadd %i, %one
  jump loop(%j, %k)
done():
  %h: f64 = math * %a, %a
  return %h
""",
        [0.7, 9],
    ),
    "constant_data": (
        """
function main -> f64
b0(%w: f64 varies, %b: f64 varies, %xs: pairs(f64), %rows: vector(vector(f64))):
  %zero: f64 = constant 0.0
  %i0: i64 = constant 0
  %one: i64 = constant 1
  jump loop(%xs, %zero, %i0)
loop(%p: pairs(f64), %s: f64, %i: i64):
  %e: i1 = is_null %p
  branch %e done() body()
body():
  %x: f64 = pairs_car %p
  %row: vector(f64) = vector_get %rows, %i
  %y: f64 = vector_get %row, %one
  %wx: f64 = math * %w, %x
  %q: f64 = math + %wx, %b
  %d: f64 = math - %q, %y
  %dd: f64 = math * %d, %d
  %t: f64 = math + %s, %dd
  %r: pairs(f64) = pairs_cdr %p
  %j: i64 = iadd %i, %one
  jump loop(%r, %t, %j)
done():
  return %s
""",
        [0.5, -0.25, (1.0, 2.0, 4.0), [[0.0, 3.0], [1.0, 2.5], [0.0, -1.0]]],
    ),
    "matrix": (
        """
function main -> f64
b0(%m: array(array(f64)) varies, %l: cell(array(f64)) varies):
  %i0: i64 = constant 0
  %one: i64 = constant 1
  %zero: f64 = constant 0.0
  %n: i64 = array_length %m
  jump rows(%l, %i0, %zero)
rows(%p: cell(array(f64)), %i: i64, %s: f64):
  %e: i1 = is_null %p
  branch %e done() row()
row():
  %v: array(f64) = cell_value %p
  %r: array(f64) = array_get %m, %i
  %k: i64 = array_length %r
  jump columns(%i0, %s)
columns(%j: i64, %t: f64):
  %c: i1 = icompare lt %j, %k
  branch %c one() next()
one():
  %a: f64 = array_get %r, %j
  %b: f64 = array_get %v, %j
  %ab: f64 = math * %a, %b
  %u: f64 = math + %t, %ab
  %w: f64 = math sin %u
  %j2: i64 = iadd %j, %one
  jump columns(%j2, %w)
next():
  %q: cell(array(f64)) = cell_next %p
  %i2: i64 = iadd %i, %one
  jump rows(%q, %i2, %t)
done():
  return %s
""",
        [[[0.5, 1.5], [-1.0, 0.25], [2.0, 1.0]], ([1.0, 2.0], [0.5, 0.5])],
    ),
}
