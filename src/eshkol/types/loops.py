"""Named loops: the types of their variables are those of all that is given to them.

Comes in: `letrec`s that are named lets, and calls of them, of checkers (`checking.py`). Goes out: the types of their
variables and of what they give. A loop is looked at until these stay the same; what is certain of its variables when it
runs (`certain.py`) is found out in the same turns.
"""

from __future__ import annotations

from eshkol.lang.core import Call, Lambda, Letrec, Local, Variable
from eshkol.types.calls import AGAIN, Calls
from eshkol.types.kinds import ANY, NEVER, Arrow, Type, flattened, function, grown, join
from eshkol.types.wording import Expected, arity, counted, declared_as

MOST_NESTED = 3  # loops within loops of which this is found out: each multiplies the turns of the others
MOST_TURNS = 4  # of a loop whose variables find their types; then they are Any


class Loops(Calls):
    """The part of a checker that looks at loops."""

    def is_loop(self, node: Letrec) -> bool:
        """Whether it is a named let without annotations of its own."""
        value, body = node.values[0], node.body
        if len(node.variables) != 1 or type(value) is not Lambda or len(value.clauses) != 1:
            return False
        clause, variable = value.clauses[0], node.variables[0]
        return (
            type(body) is Call
            and type(body.procedure) is Local
            and body.procedure.variable is variable
            and not variable.assigned
            and variable.annotation is None
            and clause.rest is None
            and clause.returns is None
            and len(clause.params) == len(body.args)
        )

    def loop(self, node: Letrec, expected: Expected | None) -> Type:
        """A named loop: its variables have the types of all that is given to them, its result those of its ends."""
        loop, value, call = node.variables[0], node.values[0], node.body
        assert isinstance(value, Lambda)
        assert isinstance(call, Call)
        clause = value.clauses[0]
        begin = [
            self.check_node(arg, declared_as(kind, param))
            if (kind := self.declared(param))
            else self.used(self.synth(arg))
            for param, arg in zip(clause.params, call.args, strict=True)
        ]
        self.clauses[loop] = clause
        certain = self.proving.certain
        mark = self.proving.mark()
        if certain is not None:
            certain.open_loop(loop, clause.params, call.args)
        before, missed = self.errors, self._missing
        kinds, result = [grown(kind) for kind in begin], AGAIN
        nested = len(self._loops) >= MOST_NESTED
        for turn in range(MOST_TURNS if nested else 0, MOST_TURNS + 1):
            if turn == MOST_TURNS:
                kinds, result = [ANY] * len(kinds), ANY
            if certain is not None:
                certain.loop_turns(loop, turn >= MOST_TURNS - 1)
            for param, kind in zip(clause.params, kinds, strict=True):
                if param.annotation is None:
                    self.kinds[param] = ANY if param.assigned else kind
            self.errors, self._missing = [], False
            self._gives[loop] = result
            self._loops[loop] = given = [NEVER] * len(kinds)
            found = self.synth(clause.body) if expected is None else self.check_node(clause.body, expected)
            errors, missing = self.errors, self._missing
            self.errors = before
            del self._loops[loop], self._gives[loop]
            wider = [join(kind, flattened(more)) for kind, more in zip(kinds, given, strict=True)]
            self.proving.back(mark)
            kept = certain is None or certain.loop_kept(loop)
            settled = turn == MOST_TURNS or (wider == kinds and kept and (not missing or found == result))
            if settled:
                before.extend(errors)
                break
            kinds = [grown(kind) for kind in wider]
            result = found if missing else AGAIN
        self._missing = missed
        self.kinds[loop] = function(Arrow(tuple(kinds), None, found))
        self.called_so.add(id(call))
        return self.used(found) if found is AGAIN and expected is not None else (NEVER if found is AGAIN else found)

    def _call_loop(self, node: Call, loop: Variable) -> Type:
        """A named loop goes on."""
        given, kinds = self._loops[loop], self._all(node.args)
        if len(kinds) != len(given):
            ways = counted(len(given), len(given))
            self.refuse(arity(loop.name, ways, len(kinds), node, loop.place), False)
            return NEVER
        params = self.clauses[loop].params
        for index, (kind, arg) in enumerate(zip(kinds, node.args, strict=True)):
            given[index] = join(given[index], kind)
            declared = self.declared(params[index])
            if declared is not None:
                self.require(arg, kind, declared_as(declared, params[index]))
        if self.proving.certain is not None:
            self.proving.certain.loop_goes_on(loop, node.args)
        self.called_so.add(id(node))
        return self._gives[loop]
