"""Lists: each is declared once, and searches, filters, sorts, pages, is sent as a
table and acts on many rows alike.

`listing.py` has what a declaration is made of, `acts.py` what can be done to many
rows, `answers.py` the one view behind all of them. Every other module declares lists.
"""
