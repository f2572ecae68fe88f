"""Graphs into kernels: lowering nodes to Atlas programs and running them on a backend, which is handed in.

`realize(nodes, machine)` computes nodes; `lower.lowered(node)` says by what.
"""
