"""What Perforce said of a workspace's client at some time."""

from __future__ import annotations

from django.db import models

from provisioner.lib.fields import NamesField


class RecordedClient(models.Model):
    """A row that keeps what a client had, so that another one can get the same.

    `opened` are files that were opened, as the Perforce gateway has them (OpenedFile);
    `descriptions` those of the pending changes, by number. `have_differences` lists the
    [depot path, revision] that differ from the pin; 0 is none.
    """

    opened = NamesField(default=list)
    descriptions = NamesField(default=dict)
    have_differences = NamesField(default=list)

    class Meta:
        abstract = True


class ReadClient(RecordedClient):
    """A record that is read again once the client was used.

    `accessed_at` is the client's Access date after the reading.
    """

    accessed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
