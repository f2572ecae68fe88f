"""Graphs as one text of StableHLO, for machines that take whole graphs and compile them by themselves.

    text          names, types, regions; loops and branches over cells; the first fault
    arrays        operations on whole arrays, as lines of text
    instructions  what instructions of Atlas are there
    reads replay  rows' scalar code, run on whole arrays: most rows need no line of their own
    rows          those that do
    control       scan, while and cond as regions
    program       a graph as a program: its text, and what its checks say

Knows no machine: `run/whole.py` has one compile the text and run it.
"""
