"""Pages of a list, by the keys of their rows."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, QuerySet, Window
from django.utils.functional import cached_property


class KeyPaginator(Paginator[Any]):
    """Pages of keys.

    Those of the second half are read from the end, so that the database skips at most
    half of the rows.
    """

    object_list: QuerySet[Any, Any]

    def page(self, number: int | str) -> Page[Any]:
        number = self.validate_number(number)
        begin = (number - 1) * self.per_page
        end = min(begin + self.per_page, self.count)
        if begin <= self.count // 2:
            return Page(list(self.object_list[begin:end]), number, self)
        backwards = self.object_list.reverse()[self.count - end : self.count - begin]
        return Page(list(backwards)[::-1], number, self)


class CountingPaginator(KeyPaginator):
    """Pages of keys that count: the first and the last take one query.

    Beyond the row `near`, most requests are for the last page.
    """

    near = 1000

    def get_page(self, number: float | str | None) -> Page[Any]:
        text = str(number or 1)
        begin = (int(text) - 1) * self.per_page if is_number(text) else -1
        if begin >= self.near:
            last = self._counted(self.object_list.reverse(), 0)
            if begin >= self.count - self.per_page:
                number_there = self.count - (self.num_pages - 1) * self.per_page
                return Page(last[:number_there][::-1], self.num_pages, self)
        elif begin >= 0 and (keys := self._counted(self.object_list, begin)):
            return Page(keys, int(text), self)
        return super().get_page(number)

    def _counted(self, keys: QuerySet[Any, Any], begin: int) -> list[Any]:
        """Return the keys of a page, and count all rows if there is such a page."""
        counted = keys.annotate(of_all=Window(Count("*"))).values_list("pk", "of_all")
        found = list(counted[begin : begin + self.per_page])
        if found:
            self.count = found[0][1]
        return [key for key, _ in found]


class BoundedPaginator(Paginator[Any]):
    """Pages of the first keys: rows beyond `most` are neither counted nor shown."""

    most = 10_000
    object_list: QuerySet[Any, Any]

    @cached_property
    def found(self) -> int:
        """How many rows there are, `most` and one if there are more."""
        return self.object_list.order_by()[: self.most + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self.found, self.most)

    @property
    def is_cut(self) -> bool:
        """Whether there are more rows than are counted."""
        return self.found > self.most


def is_number(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 19
