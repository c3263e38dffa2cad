"""Cloneyard with everything it needs on one machine: `make demo`.

Nothing here is used in production; it starts the same web server, worker and
commands as an installation does, with the lab in place of ONTAP and Perforce.
"""
