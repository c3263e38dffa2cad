"""The process that writes and checks archives of unsaved work.

Standard library only: it is started bare, as the host worker's own user, and may be
root. It is a process of its own so that a file server that hangs holds no worker.
"""
