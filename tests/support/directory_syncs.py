"""Syncs with a directory, without one."""

from __future__ import annotations

from django.db.models.functions import Now

from provisioner.directory.models import DirectorySync


def make_directory_sync(
    state: DirectorySync.State = DirectorySync.State.ASKS, *, message: str = ""
) -> DirectorySync:
    """Write down a sync that has ended."""
    return DirectorySync.objects.create(state=state, ended_at=Now(), message=message)
