"""The process that writes and verifies archives of unsubmitted work.

Standard library only: it starts bare, as the host worker's own user, and may be root.
It is a separate process so that a file server that hangs blocks no worker.
"""
