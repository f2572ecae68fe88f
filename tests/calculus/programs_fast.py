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
    "called": (
        """
function main -> f64
b0(%x: f64 varies, %y: f64 varies, %n: i64):
  %z: i64 = constant 0
  %a: f64 = call bent %x, %y
  %b: f64, %k: i64 = call both %a, %n
  %w: f64 = call bent %b, %a
  jump loop(%z, %w)
loop(%i: i64, %s: f64):
  %c: i1 = icompare lt %i, %k
  branch %c body() done()
body():
  %one: i64 = constant 1
  %t: f64 = call bent %s, %y
  %j: i64 = iadd %i, %one
  jump loop(%j, %t)
done():
  %r: f64 = call deep %n, %s
  return %r

function bent -> f64
b0(%x: f64, %y: f64):
  %p: f64 = math * %x, %y
  %c: i1 = compare lt %p, %x
  branch %c yes() no()
yes():
  %s: f64 = math sin %p
  return %s
no():
  %q: f64 = math / %x, %p
  return %q

function both -> f64, i64
b0(%x: f64, %n: i64):
  %one: i64 = constant 1
  %m: i64 = iadd %n, %one
  %u: f64 = call bent %x, %x
  return %u, %m

function deep -> f64
b0(%n: i64, %x: f64):
  %z: i64 = constant 0
  %one: i64 = constant 1
  %c: i1 = icompare le %n, %z
  branch %c yes() no()
yes():
  return %x
no():
  %m: i64 = isub %n, %one
  %u: f64 = call bent %x, %x
  %v: f64 = call deep %m, %u
  %w: f64 = math * %v, %u
  return %w

function unused -> f64
b0(%x: f64):
  return %x
""",
        [0.75, 0.6, 3],
    ),
    "stepped": (  # integers that a loop counts in every way, and some that it does not
        """
function main -> f64
b0(%x: f64 varies, %n: i64, %d: i64):
  %z: i64 = constant 0
  %ten: i64 = constant 10
  jump loop(%z, %n, %d, %z, %n, %ten, %n, %x)
loop(%up: i64, %down: i64, %turned: i64, %grown: i64, %still: i64, %i: i64, %late: i64, %a: f64):
  %c: i1 = icompare gt %i, %z
  branch %c body() done()
body():
  %two: i64 = constant 2
  %none: i64 = constant 0
  %f1: f64 = itof %up
  %f2: f64 = itof %down
  %f3: f64 = itof %turned
  %f4: f64 = itof %grown
  %f5: f64 = itof %still
  %f6: f64 = itof %i
  %f7: f64 = itof %late
  %p1: f64 = math * %a, %f1
  %p2: f64 = math + %p1, %f2
  %p3: f64 = math sin %p2
  %p4: f64 = math * %p3, %f3
  %p5: f64 = math + %p4, %f4
  %p6: f64 = math cos %p5
  %p7: f64 = math * %p6, %f5
  %p8: f64 = math / %p7, %f6
  %p9: f64 = math * %p8, %f7
  %b: f64 = math + %p9, %x
  %up2: i64 = iadd %d, %up
  %down2: i64 = isub %down, %d
  %turned2: i64 = isub %d, %turned
  %grown2: i64 = iadd %grown, %i
  %still2: i64 = iadd %still, %none
  %i2: i64 = isub %i, %two
  %late2: i64 = iadd %late, %z
  jump loop(%up2, %down2, %turned2, %grown2, %still2, %i2, %late2, %b)
done():
  %g: f64 = itof %down
  %r: f64 = math * %a, %g
  return %r
""",
        [0.75, 3, 2],
    ),
    "loops_of_a_function": (  # whose values outside of loops are recorded once for all turns
        """
function main -> f64
b0(%x: f64 varies, %n: i64):
  %r: f64 = call f %n, %x, %x
  return %r

function f -> f64
b0(%n: i64, %x: f64, %y: f64):
  %z: i64 = constant 0
  %one: i64 = constant 1
  %g: f64 = math exp %x
  %h: f64 = math * %g, %y
  %none: i1 = icompare eq %n, %z
  branch %none leave() start()
start():
  jump outer(%n, %x)
outer(%i: i64, %a: f64):
  %c: i1 = icompare gt %i, %z
  branch %c into() out()
into():
  %u: f64 = math sin %a
  jump inner(%z, %a)
inner(%j: i64, %b: f64):
  %d: i1 = icompare lt %j, %i
  branch %d step() after()
step():
  %v: f64 = math * %b, %h
  %w: f64 = math cos %v
  %k: f64 = math * %w, %u
  %jf: f64 = itof %j
  %kk: f64 = math / %k, %g
  %kkk: f64 = math + %kk, %jf
  %q: i64 = iadd %j, %one
  %far: i1 = compare gt %kkk, %y
  branch %far early() go()
go():
  jump inner(%q, %kkk)
early():
  %e: f64 = math * %kkk, %u
  jump again(%e)
after():
  jump again(%b)
again(%t: f64):
  %o: f64 = math * %t, %u
  %l: i64 = isub %i, %one
  jump outer(%l, %o)
out():
  %m: i64 = isub %n, %one
  %s: f64 = call f %m, %a, %h
  %ss: f64 = math * %s, %a
  jump leave2(%ss)
leave():
  jump leave2(%h)
leave2(%found: f64):
  return %found
""",
        [0.75, 3],
    ),
    "ways": (  # to come to a block: three that join, one that fails, one that no turn of a loop decides
        """
function main -> f64
b0(%x: f64 varies, %y: f64 varies, %n: i64):
  %z: i64 = constant 0
  %one: i64 = constant 1
  %three: i64 = constant 3
  %w: array(f64) = array_new %three, %y
  %n2: f64 = constant 7.5
  %first: i1 = compare lt %x, %y
  branch %first some() join2(%x)
some():
  jump loop(%z, %x)
loop(%i: i64, %a: f64):
  %c: i1 = icompare lt %i, %n
  branch %c body() done()
body():
  %low: i1 = compare lt %a, %x
  branch %low one() other()
one():
  %s: f64 = math sin %a
  jump join(%s)
other():
  %high: i1 = compare gt %a, %y
  branch %high two() three()
two():
  %lost: i1 = icompare gt %i, %n
  branch %lost lost() two2()
lost():
  %stuck: i1 = icompare eq %i, %n
  branch %stuck spin() fails()
spin():
  jump spin()
fails():
  fail
two2():
  %q: f64 = math * %a, %x
  array_set %w, %one, %q
  jump join(%q)
three():
  %e: f64 = array_get %w, %one
  %ee: f64 = math * %e, %a
  jump join(%ee)
join(%b: f64):
  %j: i64 = iadd %i, %one
  %bb: f64 = math + %b, %y
  %enough: i1 = compare gt %bb, %n2
  branch %enough done2() loop(%j, %bb)
done():
  jump join2(%a)
done2():
  %h: f64 = math * %bb, %b
  jump join2(%h)
join2(%r: f64):
  %v: f64 = array_get %w, %one
  %vr: f64 = math * %v, %r
  return %vr
""",
        [0.75, 1.25, 4],
    ),
}
