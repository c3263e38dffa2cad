"""Lists: each is declared once; searching, sorting, paging and acting are shared.

`listing.py` has the parts of a declaration, `acts.py` the bulk actions, and
`answers.py` the one view behind all lists.
"""
