"""Plans: the steps that compute a function (`steps.py`), passes over them, where their values lie, and how people read
them.
"""
