"""The prompt's parts: how it is typed at, its commands, how values look, what is watched.

`repl.py` above puts them together. `plain.py` reads lines from a dumb terminal or a pipe; `editor.py` is the terminal
with history, completion and colours, the one module that imports prompt_toolkit, and `highlighting.py` and
`history.py` are its parts. `talk.py` is what goes on between two forms; `commands.py` has the table of commands;
`printing.py`, `watching.py` and `machine_code.py` are what some of them stand on.
"""
