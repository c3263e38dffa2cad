"""Half a year of a game studio, as rows: `make demo ARGS="--company"`.

Made up from a seed and a moment, the same ones the same way, and written with COPY:
people, templates with builds good and bad, and workspaces in every state, each with the
operations, steps and events that would have led there. `company.py` is the door.
Benchmarks fill their databases with it, too; `lab.py` has the lab agree with the rows.
"""
