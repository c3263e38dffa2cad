"""Compare a remote system with our rows, both ways. Pure: no I/O.

Only marks decide what is ours: a volume by the tag in its comment, a client by its name
and description together, a snapshot by its name and comment on a volume of ours.
Everything else is somebody else's: never listed, never touched. Objects with a running
or just ended operation are skipped.
"""
