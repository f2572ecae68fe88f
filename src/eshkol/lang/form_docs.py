"""What the forms that the expander knows by itself are for: how each is written, and what it means.

The page of the library and `,doc` read it. The words that only mean something inside a form are here, too.
"""

from __future__ import annotations

from collections.abc import Mapping

_ROWS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("quote", ("(quote datum)", "'datum"), "The datum itself, a constant."),
    (
        "quasiquote",
        ("(quasiquote template)", "`template"),
        "The datum with holes: `,x` is replaced by the value of x, `,@x` by the elements of the list x.",
    ),
    ("unquote", (",expression",), "Inside a quasiquote: the value of the expression."),
    ("unquote-splicing", (",@expression",), "Inside a quasiquote: the elements of the list that the expression gives."),
    (
        "lambda",
        ("(lambda (parameter ... [. rest]) body ...)", "(lambda rest body ...)"),
        "A procedure. A parameter is a name or `(name : type)`; a string before the body is its documentation.",
    ),
    ("λ", ("(λ (parameter ...) body ...)",), "The same as `lambda`."),
    ("named-lambda", ("(named-lambda (name parameter ...) body ...)",), "A procedure that bears this name."),
    (
        "case-lambda",
        ("(case-lambda (parameters body ...) ...)",),
        "A procedure with several bodies: the first whose parameters take the arguments is evaluated.",
    ),
    ("if", ("(if test then [else])",), "The value of then, unless test is #f; then that of else."),
    ("set!", ("(set! variable expression)",), "Give a variable another value."),
    ("begin", ("(begin form ...)",), "One after the other; the value of the last. Definitions in it count as outside."),
    (
        "define",
        (
            "(define name expression)",
            "(define (name parameter ...) [: type] body ...)",
            "(define name : type expression)",
        ),
        "Define a variable, or a procedure.",
    ),
    ("define-values", ("(define-values formals expression)",), "Define variables by the values of one expression."),
    (
        "define-record-type",
        ("(define-record-type name (constructor field ...) predicate (field accessor [modifier]) ...)",),
        "Define a type of records: its constructor, its predicate, and what reads and changes its fields.",
    ),
    ("define-syntax", ("(define-syntax name transformer)",), "Define a macro."),
    ("let-syntax", ("(let-syntax ((name transformer) ...) body ...)",), "Macros for the body."),
    ("letrec-syntax", ("(letrec-syntax ((name transformer) ...) body ...)",), "Macros for the body and each other."),
    (
        "syntax-rules",
        ("(syntax-rules [ellipsis] (literal ...) (pattern template) ...)",),
        "A transformer: the template of the first pattern that the use matches, hygienically.",
    ),
    ("...", ("item ...",), "In patterns and templates: any number of what stands before it."),
    ("_", ("_",), "In patterns: anything."),
    (
        "syntax-case",
        (
            "(syntax-case expression (literal ...) (pattern [fender] result) ...)",
            "(syntax-case (literal ...) clause ...)",
        ),
        "The result of the first clause whose pattern the syntax matches and whose fender holds. Without an expression "
        "it is a transformer.",
    ),
    ("with-syntax", ("(with-syntax ((pattern expression) ...) body ...)",), "Bind variables of patterns."),
    ("syntax", ("(syntax template)", "#'template"), "Syntax made of a template and the variables of patterns."),
    ("quasisyntax", ("(quasisyntax template)", "#`template"), "A template with holes, `#,` and `#,@`."),
    ("unsyntax", ("#,expression",), "Inside a quasisyntax: the value of the expression."),
    ("unsyntax-splicing", ("#,@expression",), "Inside a quasisyntax: the elements of the list that it gives."),
    ("syntax-error", ("(syntax-error message form ...)",), "An error where the macro is used that comes to this."),
    ("begin-for-syntax", ("(begin-for-syntax definition ...)",), "Definitions for the transformers of macros."),
    ("define-for-syntax", ("(define-for-syntax (name parameter ...) body ...)",), "One such definition."),
    (
        "let",
        ("(let ((variable expression) ...) body ...)", "(let name ((variable expression) ...) body ...)"),
        "Variables for the body. With a name: a procedure with these parameters, called at once; a loop.",
    ),
    (
        "let*",
        ("(let* ((variable expression) ...) body ...)",),
        "As let, but each expression sees the variables before.",
    ),
    ("letrec", ("(letrec ((variable expression) ...) body ...)",), "As let, but the expressions see all variables."),
    ("letrec*", ("(letrec* ((variable expression) ...) body ...)",), "As letrec, evaluated from left to right."),
    (
        "cond",
        ("(cond (test expression ...) ... [(else expression ...)])", "(cond (test => procedure) ...)"),
        "The expressions of the first clause whose test holds; with => the procedure is called with the test's value.",
    ),
    (
        "case",
        ("(case key ((datum ...) expression ...) ... [(else expression ...)])",),
        "The expressions of the clause that has the key, by eqv?, among its data; => as in cond.",
    ),
    ("else", ("(else expression ...)",), "The last clause of cond, case and guard."),
    ("=>", ("(test => procedure)",), "In a clause of cond, case or guard: call the procedure with the value."),
    (
        "and",
        ("(and expression ...)",),
        "The last value if none is #f, else #f; what comes behind a #f is not evaluated.",
    ),
    ("or", ("(or expression ...)",), "The first value that is not #f; what comes behind it is not evaluated."),
    (
        "when",
        ("(when test expression ...)",),
        "The expressions, if test holds; definitions among them are theirs alone.",
    ),
    (
        "unless",
        ("(unless test expression ...)",),
        "The expressions, if test does not hold; definitions among them are theirs alone.",
    ),
    (
        "do",
        ("(do ((variable start [step]) ...) (test result ...) command ...)",),
        "A loop: the commands are evaluated and the variables take their steps until test holds; then the results.",
    ),
    (
        ":",
        ("(: name type)",),
        "Says of what type a variable is that is defined beside it: checked before the program runs, and where values "
        "come from code without types.",
    ),
    ("define-type", ("(define-type name type)",), "A name for a type, which may stand within it: a recursive type."),
    (
        "proof",
        ("(proof {proposition})",),
        "A proof that something holds of sizes, such as `{n = m}`: refused where that does not follow from what is "
        "known there, and nothing when the program runs.",
    ),
    (
        "cast-shape",
        ("(cast-shape object proof)",),
        "The object itself, a tensor or vector, in whose type the left side of the equation that is proven has become "
        "the right side.",
    ),
    (
        "cond-expand",
        ("(cond-expand (requirement form ...) ... [(else form ...)])",),
        "The forms of the first clause whose features and libraries are there.",
    ),
    ("include", ('(include "file" ...)',), "The forms of the files, found beside the one that includes them."),
    ("include-ci", ('(include-ci "file" ...)',), "As include, with all letters of symbols made small."),
    (
        "import",
        ("(import import-set ...)",),
        "Names of libraries: `(scheme base)`, `(only set name ...)`, `(except set name ...)`, `(prefix set name)`, "
        "`(rename set (name new) ...)`.",
    ),
    (
        "define-library",
        ("(define-library name declaration ...)",),
        "A library; its declarations are export, import, begin, include, include-ci, include-library-declarations and "
        "cond-expand.",
    ),
    ("require", ('(require "file.esk")', "(require name)"), "The names that a file provides, or those of a library."),
    ("provide", ("(provide name ...)",), "The names that this file gives to those that require it."),
    (
        "module",
        ("(module name (export ...) form ...)",),
        "A library in the midst of a program, which sees its exports.",
    ),
)

FORM_DOCS: Mapping[str, tuple[tuple[str, ...], str]] = {name: (uses, meaning) for name, uses, meaning in _ROWS}
