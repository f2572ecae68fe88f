"""The differentiable graph: immutable nodes, and transformations from graphs to graphs."""
