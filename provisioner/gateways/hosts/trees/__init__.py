"""Doing one thing to every entry of a tree: giving it to an owner, or removing it.

`compiled` does it in C, with as many threads as the calls are worth; `native` builds
it. Where there is no C compiler, `sequential` does the same slowly. Both get an open
directory, act on names relative to open directories, and resolve no path a second time,
so nothing that happens to the tree meanwhile can lead out of it. `run` is the caller's
end.
"""
