"""A feature that does nothing, in one folder: what a feature needs, and no more.

`settings.py` and `addresses.py` are the two lines elsewhere that add it.
"""
