"""Saved views of lists, and their columns."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from provisioner.accounts.models import User
from provisioner.accounts.names import check_one_line

LONGEST_VIEW_NAME = 60


class SavedView(models.Model):
    """A saved view of a list: filters and order as in the URL, and columns.

    The one without a name has a person's columns for the list itself. Others may open a
    view by its URL; they see the rows that they may see.
    """

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    listing = models.CharField(max_length=200, help_text="The name of the list.")
    name = models.CharField(
        max_length=LONGEST_VIEW_NAME, blank=True, validators=[check_one_line]
    )
    path = models.CharField(max_length=200)
    query = models.TextField(blank=True, max_length=2000)
    hidden = ArrayField(models.CharField(max_length=60), default=list, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("person", "listing", "name"), name="view_name_once_in_a_list"
            ),
        )

    def __str__(self) -> str:
        return self.name or self.listing
