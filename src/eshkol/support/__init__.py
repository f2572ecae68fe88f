"""What every package may stand on: environment variables, interrupts, what is kept on disk, how references are counted.

Nothing here knows programs, tensors or the language. `errors.py` and `version.py`, beside the packages, stand lower.
"""
