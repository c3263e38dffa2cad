"""A table that the release before does not have."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class Noted(models.Model):
    """Something that only this release does, and which process did it."""

    what = models.CharField(max_length=40)
    process_id = models.PositiveIntegerField()
    at = models.DateTimeField(db_default=Now(), editable=False)

    objects: ClassVar[models.Manager[Noted]]

    def __str__(self) -> str:
        return self.what
