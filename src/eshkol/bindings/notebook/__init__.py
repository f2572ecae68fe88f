"""Eshkol in notebooks: a kernel of its own (kernel.py), and the `%%eshkol` magic in those of Python (magics.py).

Each module is imported when it is asked for: ipykernel and IPython are an extra, `pip install 'eshkol[notebook]'`.
"""
