"""Test the connections to a site and to a Perforce server, with advice.

Each test goes through what Cloneyard needs, step by step; a check is skipped if one
that it depends on failed. Nothing is changed remotely, except by a trial, which
somebody requests. Only rows.py writes the rows.
"""
