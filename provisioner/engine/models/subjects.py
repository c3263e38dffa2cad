"""Subjects of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django_stubs_ext.db.models.manager import RelatedManager

    from provisioner.engine.models.operations import Operation


class Subject(models.Model):
    """The identity that operations refer to; `kind` names the model of its row."""

    kind = models.CharField(max_length=40)

    def __str__(self) -> str:
        return str(self.row)

    @property
    def row(self) -> Any:
        """The row of a feature that has this subject."""
        return getattr(self, self.kind)


class HasOperations(models.Model):
    """A feature's row that operations can be about: it has a subject of its own."""

    subject = models.OneToOneField(
        Subject, on_delete=models.PROTECT, related_name="%(class)s", editable=False
    )

    class Meta:
        abstract = True

    # Declared by each: the place of its queues and of its Perforce server.
    site: Any

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self.subject_id:
            self.subject = Subject.objects.create(kind=self._meta.model_name or "")
        super().save(*args, **kwargs)

    @property
    def perforce_server(self) -> Any:
        """The Perforce server that its steps use."""
        return self.site.perforce_server

    @property
    def operations(self) -> RelatedManager[Operation]:
        """The operations about this row, newest first."""
        return self.subject.operations
