"""Commands that administrators and developers chose, in a sandbox of the kernel.

    worker → `__main__` → init, the first process of a namespace → the command

`__main__` keeps the log, init ends whatever the command started. Where the worker may
make no namespaces, init is the reaper of all that descends from it.
`docs/adr/0008-commands-in-a-sandbox.md` says why it is ours.
"""
