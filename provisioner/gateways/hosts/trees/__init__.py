"""Doing one thing to every entry of a tree, with many processes and threads.

Runs as a process of its own (`__main__`), on the standard library alone: a *lister*
(`walk`) reads directories and cuts their names into batches; *workers* (`worker`) take
batches, each with the file descriptor of its directory, and act on names relative to
it. A path is never resolved a second time, so nothing that happens to the tree
meanwhile can lead out of it. `run` is the caller's end.

For changes of ownership `compiled` does the same in C, where it was built (`native`).
"""
