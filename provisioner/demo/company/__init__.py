"""Half a year of a game studio, as rows: `make demo ARGS="--company"`.

Generated from a seed and a moment, reproducibly, and written with COPY: people,
templates with good and bad builds, and workspaces in every state, each with the
operations, steps and events that would have led there. `company.py` is the entry point.
Benchmarks fill their databases with it, too; `lab.py` makes the lab agree with the
rows.
"""
