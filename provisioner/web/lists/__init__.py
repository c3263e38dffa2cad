"""Lists: each is declared once; searching, sorting, paging and acting are shared.

`listing.py` has the parts of a declaration, `acts.py` what can be done to many rows,
and `answers.py` the one view behind all lists.
"""
