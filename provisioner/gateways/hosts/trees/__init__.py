"""Doing one thing to every entry of a tree: changing its owner, or removing it.

`compiled` does it in C, with as many threads as pay off; `native` builds it. Without a
C compiler, `sequential` does the same slowly. Both get an open directory, act on names
relative to open directories, and resolve no path a second time. So nothing that happens
to the tree meanwhile can lead out of it. `run` is the side of the caller.
"""
