"""Calculus of programs: the derivative rules of the language's numeric procedures.

`rules` derives them from the op table by running its factors on the symbols of `expressions`; `header` writes them as
C for the runtime. Nothing is imported here: the op table is heavy, and only those who differentiate need it.
"""
