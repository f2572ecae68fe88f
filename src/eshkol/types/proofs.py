"""Proofs that sizes are equal, and types that are rewritten by them: `(proof {n = m})`, `(cast-shape t proof)`.

Comes in: calls that the expander makes of these forms, and a checker that knows what holds at that point. Goes out: the
type of a proof, the rewritten type of a tensor or vector; errors where something does not follow, or where there is
nothing to rewrite. When a program runs there is nothing of either form left (`borders.py`).

In the type of what is cast, the left side of the equation becomes the right side.
"""

from __future__ import annotations

from eshkol.errors import BadType, LanguageError
from eshkol.lang.core import Call, Const, Local
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.types.fitting import sizes_changed, sizes_in
from eshkol.types.inequalities import Constraint, Linear, entails, excludes
from eshkol.types.kinds import ANY, TENSOR, VECTOR, ProofOf, Type, shown
from eshkol.types.propositions import Proposition, read_proposition
from eshkol.types.proving import Proving, is_proof_form, with_sums
from eshkol.types.sizes import Polynomial, Size, normal, put

MOST_SAID = 3  # facts that an error names


def proof_type(proving: Proving, node: Call) -> Type:
    """The type of (proof {...})."""
    proposition = _proven(proving, node)
    return ANY if proposition is None else Type(0, (ProofOf(proposition),))


def cast_type(proving: Proving, node: Call, kind: Type) -> Type:
    """The type of (cast-shape object proof), by that of the object."""
    evidence = node.args[1]
    proposition: Proposition | None = None
    if type(evidence) is Call and is_proof_form(evidence):
        proposition = _proven(proving, evidence)
        if proposition is None:
            return ANY  # that is said already
    elif type(evidence) is Local:
        proposition = proving.proofs.get(evidence.variable)
    if proposition is None:
        return _refused(
            proving, "cast-shape takes a proof, but this is none", evidence.place,
            "(proof {n = m}) is one, and so is a parameter (p : (Proof {n = m}))", kind,
        )  # fmt: skip
    if not proposition.equations:
        return _refused(
            proving, f"cast-shape takes a proof that sizes are equal, which {proposition.text} does not say",
            evidence.place, None, kind,
        )  # fmt: skip
    if kind is ANY or (not kind.parts and not kind.mask & ~(TENSOR | VECTOR)):
        return kind
    if not sizes_in(kind):
        what = f"cast-shape takes a tensor or vector with sizes in its type, but this is a {shown(kind)}"
        return _refused(proving, what, node.args[0].place, None, kind)
    found = kind
    for left, right in proposition.equations:
        to = _size(right)
        if to is None:
            name = next(name for name, _ in right.factors if "@" in name).partition("@")[0].removeprefix("length ")
            return _refused(
                proving, f"{name} is a variable, which no type can name", evidence.place,
                "sizes in types are numbers and names of sizes", kind,
            )  # fmt: skip
        found = sizes_changed(found, lambda size, left=left, to=to: _rewritten(size, left, to))  # type: ignore[misc]
    if found == kind:
        return _refused(
            proving, f"no size of this {shown(kind)} is the left side of {proposition.text}", node.args[0].place,
            "the left side is what is replaced, by the right side", kind,
        )  # fmt: skip
    return found


def _size(total: Linear) -> Size | None:
    """A sum as types have it; None where it is one of variables."""
    if any("@" in name for name, _ in total.factors):
        return None
    polynomial: Polynomial = {(name,): by for name, by in total.factors}
    if total.constant:
        polynomial[()] = total.constant
    return normal(polynomial)


def _rewritten(size: Size, left: Linear, to: Size) -> Size:
    whole = _size(left)
    if size == whole:
        return to
    if len(left.factors) == 1 and not left.constant and left.factors[0][1] == 1 and whole is not None:
        return put(size, {left.factors[0][0]: to})
    return size


def _proven(proving: Proving, node: Call) -> Proposition | None:
    """What a form proves; None, and an error, where it does not follow."""
    said = node.args[0]
    assert type(said) is Const
    try:
        proposition = read_proposition(said.datum, said.place)
    except LanguageError as error:
        proving.checker.refuse(error, True)
        return None
    sums: dict[str, Linear] = {}
    for arg in node.args[1:]:
        assert type(arg) is Local
        term = proving.term(arg)
        if term is None:
            why = "set! changes it" if arg.variable.assigned else f"it is a {shown(proving.checker.synth(arg))}"
            name = arg.variable.name
            _refused(
                proving, f"{name} in {proposition.text} is a variable, and not known to be an integer: {why}",
                arg.place or said.place, None, ANY,
            )  # fmt: skip
            return None
        sums[arg.variable.name] = term
    named = with_sums(proposition, sums)
    known = proving.known_of(named.constraints)
    if all(entails(known, goal) for goal in named.constraints):
        return named
    never = any(excludes(known, goal) for goal in named.constraints)
    how = "cannot hold here" if never else "does not follow from what is known here"
    proving.checker.refuse(
        bad(
            f"{proposition.text} {how}", said.place or node.place,
            None if never else f"a test of it, or a parameter (p : (Proof {proposition.text})), would make it known",
            kind=BadType, notes=_known(proving, named),
        ),
        True,
    )  # fmt: skip
    return None


def _known(proving: Proving, proposition: Proposition) -> tuple[tuple[str, Place | None], ...]:
    """What is known of the names in a proposition, as a note."""
    names = set(proposition.names)
    about = [fact for fact in proving.facts if any(name in names for name, _ in fact.sum.factors)]
    texts = [_in_words(proving, fact) for fact in about[:MOST_SAID]]
    return ((f"known is {', '.join(texts)}", None),) if texts else ()


def _in_words(proving: Proving, fact: Constraint) -> str:
    total = fact.sum
    positive = Linear(tuple(f for f in total.factors if f[1] > 0), max(total.constant, 0))
    negative = Linear(tuple((n, -by) for n, by in total.factors if by < 0), max(-total.constant, 0))
    left, right = proving.shown(positive), proving.shown(negative)
    if fact.modulus:
        return f"{left} - {right} is a multiple of {fact.modulus}" if right != "0" else f"{left} % {fact.modulus} = 0"
    return f"{left} {'<=' if fact.modulus is None else '='} {right}"


def _refused(proving: Proving, message: str, place: Place | None, hint: str | None, kind: Type) -> Type:
    proving.checker.refuse(bad(message, place, hint, kind=BadType), True)
    return kind
