"""Mistakes that people make, thirty in each language: the program, and what its error must say.

A row is the program, the line that the error must show, what the message must hold, and what the remedy must hold.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """A wrong program, and what must be said about it."""

    program: str
    line: int
    said: str
    remedy: str


SCHEME = (
    Mistake("(define (area r) (* 3.14 r r))\n(display (aera 2))", 2, "`aera` is not defined", "did you mean `area`"),
    Mistake("(define (f a b) (+ a b))\n(f 1)", 2, "(f a b) takes 2 arguments, but was given 1", "1 more must be given"),
    Mistake("(define (f a b) (+ a b))\n(f 1 2 3)", 2, "takes 2 arguments, but was given 3", "1 must be left out"),
    Mistake("(define x 5)\n(x 1)", 2, "not a procedure", "without parentheses around it, 5 is a value"),
    Mistake('(define n "5")\n(+ n 1)', 2, "+: expected a number", '(string->number "5")'),
    Mistake('(+ 1 (string->number "x"))', 1, "but got #f", "nothing was found"),
    Mistake("(define l '())\n(car l)", 2, "car: expected a pair", "(null? list)"),
    Mistake("(define v (vector 1 2 3))\n(vector-ref v 3)", 2, "from 0 to 2", "the last is 2"),
    Mistake("(vector-ref (vector 1 2) 1.0)", 1, "but got 1.0", "(exact 1.0)"),
    Mistake("(define (f x)\n  (+ x 1)\n(f 2)", 1, "never closed", "to end before line 3"),
    Mistake("(display 1))", 1, "closes nothing", "take it away"),
    Mistake("(let (x 1) x)", 1, "a binding is (name value), not x", "((name value) ...)"),
    Mistake("(+ 1 (define x 2))", 1, "where an expression must", "(let () ...)"),
    Mistake("(set! nope 1)", 1, "`nope`, which is not defined", "(define nope ...)"),
    Mistake('(string-append "a" 1)', 1, "expected a string as argument 2", "(number->string 1)"),
    Mistake("(define (mean l) (/ (apply + l) (length l)))\n(mean '())", 1, "division by zero", "(zero? divisor)"),
    Mistake("(define h (make-hash-table))\n(hash-table-ref h 'k)", 2, "no such key k", "hash-table-ref/default"),
    Mistake("(apply + 1 2)", 1, "apply: expected a list", "(apply f (list 1 2))"),
    Mistake("(define (both v) (append v v))\n(both (vector 1 2))", 1, "append: expected a list", "vector->list"),
    Mistake(
        "(define-syntax swap! (syntax-rules () ((_ a b) (let ((t a)) (set! a b) (set! b t)))))\n(swap! x)",
        2, "no rule of the macro", "(swap! a b)",
    ),
    Mistake('(call-with-input-file "no-such.txt" read)', 1, "No such file", '(file-exists? "no-such.txt")'),
    Mistake("(import (eshkol nosuch))\n(display 1)", 1, "no library (eshkol nosuch)", "eshkol/nosuch.esk"),
    Mistake('(py-import "nosuchmodule")', 1, "No module named 'nosuchmodule'", "install nosuchmodule"),
    Mistake("(define m (py-import \"math\"))\n(py-call m 'sqroot 2)", 2, "no attribute 'sqroot'", "`sqrt`"),
    Mistake("(define a (ones 2 2))\n(display (+ a (ones 3)))", 2, "[2, 2] and [3] do not broadcast", "reshape"),
    Mistake("(define a (ones 2 3))\n(display (matmul a a))", 2, "rows of 3 against columns of 2", "transpose"),
    Mistake("(display (tensor (1.0 2.0) (3.0)))", 1, "rows of different lengths", "pad them"),
    Mistake("(display (tensor-sum (ones 2) :axes 0))", 1, "no keyword :axes", "[:axis] [:keepdims]"),
    Mistake("(define m (linear 3 2))\n(display (m (ones 4)))", 2, "in_features=3", "must have extent 3"),
    Mistake("(display (gradient (lambda (x) (* x 2.0)) (ones 2)))", 1, "only a number has a gradient", "jacobian"),
)  # fmt: skip

PYTHON = (
    Mistake("x = ek.ones((2, 2))\ny = x + ek.ones(3)", 2, "[2, 2] and [3] do not broadcast", "reshape or unsqueeze"),
    Mistake("a = ek.ones((2, 3))\nb = a @ a", 2, "rows of 3 against columns of 2", "transpose one"),
    Mistake("x = ek.tensor([[1.0, 2.0], [3.0]])", 1, "rows of different lengths", "pad them"),
    Mistake("x = ek.zeroes((2, 3))", 1, "no 'zeroes'", "did you mean 'zeros'"),
    Mistake("x = ek.ones(3).summ()", 1, "a tensor has no 'summ'", "did you mean 'sum'"),
    Mistake("m = ek.nn.Linaer(2, 3)", 1, "eshkol.nn has no 'Linaer'", "did you mean 'Linear'"),
    Mistake("m = ek.nn.Linear(3, 2)\nm(ek.ones((4, 5)))", 2, "in_features=3", "must have extent 3"),
    Mistake("x = ek.arange(6).reshape(4, 2)", 1, "do not fill shape [4, 2]", "one extent may be -1"),
    Mistake("x = ek.ones((2, 3)).sum(axis=2)", 1, "axis 2 is out of range", "axes are -2 to 1"),
    Mistake("x = ek.ones(3)\ny = x[5]", 2, "index 5 is out of range", "indices are -3 to 2"),
    Mistake("x = ek.ones(3)[0, 1]", 1, "an index of 2 places", "it has 1 axis"),
    Mistake("x = ek.ones(3, dtype='flaot32')", 1, "no dtype 'flaot32'", "float32"),
    Mistake("x = ek.ones(3).sum(axes=0)", 1, "unexpected keyword argument 'axes'", "did you mean axis="),
    Mistake("x = ek.ones(3)\nx.sum().backward()", 2, "no tensor with requires_grad", "requires_grad=True"),
    Mistake("x = ek.ones(2).requires_grad_()\n(x * 2).backward()", 2, "needs a scalar", "sum it"),
    Mistake("g = ek.grad(lambda x: x * 2)(ek.ones(2))", 1, "needs a real scalar", "jacobian"),
    Mistake("g = ek.grad(lambda x: x * x)(ek.tensor(3))", 1, "only floats", "cast it to a float"),
    Mistake(
        "@ek.jit\ndef f(x):\n    if x.sum() > 0:\n        return x\n    return -x\nf(ek.ones(2))",
        3, "not known inside jit of f", "ek.where or ek.cond",
    ),
    Mistake("x = ek.ones(3)\nif x > 0:\n    print('yes')", 2, "truth of a tensor", "x.any() or x.all()"),
    Mistake("x = ek.ones(3).item()", 1, "item() needs one element", "tolist()"),
    Mistake("ek.cross_entropy(ek.ones((2, 3)), ek.tensor([0, 7]))", 1, "a target is class 7", "as many outputs"),
    Mistake("o = ek.optim.Adam([1, 2, 3])", 1, "takes tensors", "model.parameters()"),
    Mistake("m = ek.nn.Linear(2, 2)\no = ek.optim.SGD(m.parameters(), lr=-1)", 2, "lr must be not negative", "lr=0.0"),
    Mistake("model = ek.load('nothing.esk')", 1, "cannot read nothing.esk", "the folder where"),
    Mistake("x = ek.eval('(lenght (list 1 2))')", 1, "no definition: lenght", "did you mean `length`"),
    Mistake("x = ek.io.load_checkpoint('nothing.eskpt')", 1, "no such file", "the folder where"),
    Mistake("m = ek.nn.Linear(2, 2)\nm.load_state_dict({'weight': m.weight})", 2, "missing: bias", "strict=False"),
    Mistake("x = ek.stack([ek.ones(2), ek.ones(3)])", 1, "differ in more than axis", "must agree"),
    Mistake("class Net(ek.nn.Module):\n    pass\nNet()(ek.ones(2))", 3, "no forward()", "define forward"),
    Mistake("m = ek.nn.MultiheadAttention(10, 3)", 1, "do not part into 3 heads", "a multiple of num_heads"),
)  # fmt: skip
