"""How programs are laid out on lines: `eshkol fmt`, and what else indents.

`rules` is the table of forms and how they stand; `parts` makes of a text what is laid out, with its comments; `layout`
lays it out; `formatted` is all of that, with the check that nothing but white space has changed.
"""
