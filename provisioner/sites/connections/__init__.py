"""Testing the way to a site and to a Perforce server: what is wrong, what to do.

Each look goes through what Cloneyard really needs, one thing after another, and what
needs something that failed is not looked at. But for a trial, which somebody asks for,
nothing is changed at the far side. The rows are written by rows.py alone.
"""
