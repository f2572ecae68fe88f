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
}
