"""Saved views of lists, and the view that a URL names."""

from __future__ import annotations

from functools import cached_property

from django.db.models import QuerySet
from django.http import QueryDict

from provisioner.lib.prepared import Prepared
from provisioner.web.http import WebRequest
from provisioner.web.models import SavedView

_KEPT = Prepared(
    lambda person, listing: SavedView.objects.filter(person=person, listing=listing),
    values=2,
)


class Views:
    """A person's views of a list, read in one query.

    `?view=` names one, of anybody: its filters, order and columns are shown, unless the
    rest of the URL overrides them.
    """

    def __init__(self, listing: str, request: WebRequest) -> None:
        self._listing = listing
        self._request = request
        self._asked = request.GET.get("view", "")

    @property
    def _mine(self) -> QuerySet[SavedView]:
        return SavedView.objects.filter(person=self._request.user)

    @cached_property
    def _kept(self) -> list[SavedView]:
        return _KEPT.rows(self._request.user.pk, self._listing)

    @property
    def mine(self) -> list[SavedView]:
        return [view for view in self._kept if view.name]

    @cached_property
    def shown(self) -> SavedView | None:
        """The view that the URL names, or None."""
        asked = self._asked
        if not (asked.isascii() and asked.isdecimal() and len(asked) < 19):
            return None
        found = SavedView.objects.exclude(name="").select_related("person")
        return found.filter(pk=asked, listing=self._listing).first()

    @property
    def remarks(self) -> list[str]:
        if not self._asked or self.shown is not None:
            return []
        return ["This saved view was deleted. The whole list is shown."]

    @cached_property
    def query(self) -> QueryDict:
        given = self._request.GET
        if self.shown is None:
            return given
        query = QueryDict(self.shown.query, mutable=True)
        for name in given:
            query.setlist(name, given.getlist(name))
        return query

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The columns that are not shown."""
        if self.shown is not None:
            return frozenset(self.shown.hidden)
        usual = next((view for view in self._kept if not view.name), None)
        return frozenset(usual.hidden if usual else ())
