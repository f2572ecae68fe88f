"""Translation validation: what was compiled, compared with the interpreter of the graph. `switch.py` turns it on."""
