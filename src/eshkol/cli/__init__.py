"""The `eshkol` command: it begins in `command.py`; `main.py` has its parser, the others a group of commands each."""
