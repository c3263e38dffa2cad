"""An errand: a row that operations are about."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from provisioner.accounts.models import User
from provisioner.engine.models import HasOperations
from provisioner.sites.models import Site


class ErrandOperation(models.TextChoices):
    RUN = "errand_run", "Run an errand"


class Errand(HasOperations):
    """Something to be done at a site, for its owner."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    name = models.CharField(max_length=40)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    status_message = models.TextField(blank=True)

    objects: ClassVar[models.Manager[Errand]]

    def __str__(self) -> str:
        return self.name
