"""Commands of administrators and developers, run in a sandbox of the kernel.

    worker → `__main__` → init, the first process of a namespace → the command

`__main__` keeps the log, init ends whatever the command started. If the worker may not
create namespaces, init becomes the reaper of all its descendants.
`docs/adr/0008-commands-in-a-sandbox.md` explains why we wrote our own.
"""
