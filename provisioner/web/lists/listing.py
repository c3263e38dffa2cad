"""The declaration of a list, and one page of it.

The address holds the whole state: the fields of the filter form, `sort` (the name of a
column, with a minus for descending order), `page`, and `as=csv`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any, Generic, TypeVar

from django.contrib.humanize.templatetags.humanize import intcomma
from django.core.paginator import Page, Paginator
from django.db.models import Count, F, Model, QuerySet, Window
from django.db.models.expressions import OrderBy
from django.http import HttpRequest

from provisioner.accounts.models import User
from provisioner.lib.rows import with_words
from provisioner.lib.tables import Cell, csv_lines
from provisioner.web.bulk import MOST_AT_A_TIME
from provisioner.web.filters import FilterForm, SearchForm
from provisioner.web.http import WebRequest
from provisioner.web.lists.acts import Act

Row = TypeVar("Row", bound=Model)
READ_AT_A_TIME = 1000


@dataclass(frozen=True)
class Column:
    """A column: `name` is for addresses and CSV, `label` for people.

    Without a label it is in the CSV only. `cell` is the path of an attribute, or a
    function of the dressed row; with None the column is on the page only. `order` is
    the field to sort by; empty means that the column cannot be sorted. With `has_gaps`,
    rows without a value come last in both directions.
    """

    name: str
    label: str
    cell: str | Callable[[Any], Cell] | None
    order: str = ""
    has_gaps: bool = False
    is_unbroken: bool = False
    begins_descending: bool = False
    is_label_spoken: bool = False

    def in_direction(self, *, is_descending: bool) -> OrderBy:
        by = F(self.order)
        gaps_last = True if self.has_gaps else None
        return by.desc(nulls_last=gaps_last) if is_descending else by.asc()

    def value(self, row: Any) -> Cell:
        assert self.cell is not None
        found: Cell = (
            attrgetter(self.cell)(row) if isinstance(self.cell, str) else self.cell(row)
        )
        return found


@dataclass(frozen=True, kw_only=True)
class Listing(Generic[Row]):
    """A declared list.

    `matching(user, **criteria)` returns the rows that somebody may see and that match
    the `criteria()` of the filter form. `dress(user, rows)` adds what the rows of a
    page show beyond their own fields, in a constant number of queries. `cells` is the
    template of the cells of a dressed row, which it knows as `row`.

    `reads` are the fields to load; empty loads all. `usual` is the default order.
    `choosable` are the rows that acts apply to, where the filter hides some by default;
    `key` is the field that names them in forms. Filters appear from `quiet_below` rows
    on. Lists with `is_cards` have no headings. `is_read_whole` means that no index
    helps to find a page, so rows are counted while they are read.
    """

    name: str
    one: str
    many: str
    columns: tuple[Column, ...]
    cells: str
    matching: Callable[..., QuerySet[Row]]
    usual: str
    form: type[FilterForm] = SearchForm
    reads: tuple[str, ...] = ()
    dress: Callable[[User, list[Row]], Sequence[Any]] | None = None
    acts: tuple[type[Act[Row]], ...] = ()
    choosable: Callable[[User], QuerySet[Row]] | None = None
    key: str = "pk"
    page_size: int = 50
    quiet_below: int = 1
    is_cards: bool = False
    is_read_whole: bool = False
    nothing: str = "There is none yet."

    def __post_init__(self) -> None:
        assert self.column(self.usual) is not None, "sorted by what it can sort by"

    def tally(self, number: int) -> str:
        """Return a number of rows with their noun."""
        return f"{intcomma(number)} {self.one if number == 1 else self.many}"

    def column(self, sort: str) -> Column | None:
        """Return the column of an order, or None if there is no such order."""
        name = sort.removeprefix("-")
        fitting = (c for c in self.columns if c.name == name and c.order)
        return next(fitting, None)

    def ordered(self, rows: QuerySet[Row], sort: str) -> QuerySet[Row]:
        """Return rows in an order, with the primary key as the last criterion."""
        column, is_descending = self.column(sort), sort.startswith("-")
        assert column is not None
        in_order = column.in_direction(is_descending=is_descending)
        return rows.order_by(in_order, "-pk" if is_descending else "pk")

    def shown(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Load only the displayed columns."""
        return rows.only(*self.reads) if self.reads else rows

    def dressed(self, user: User, rows: list[Row]) -> Sequence[Any]:
        return self.dress(user, rows) if self.dress else rows

    def find(self, user: User, keys: Sequence[str]) -> QuerySet[Row]:
        """Return the rows with these keys that somebody may see."""
        rows = self.choosable(user) if self.choosable else self.matching(user)
        can_be = _is_number if self.key == "pk" else _is_text
        named = [key for key in keys if can_be(key)]
        return rows.filter(**{f"{self.key}__in": named})


def searched(
    rows: Callable[[User], QuerySet[Row]], *fields: str, **lookups: str
) -> Callable[..., QuerySet[Row]]:
    """Return a query for those of a person's rows that match all criteria.

    Every word of `text` has to be in one of the fields. Any other criterion is compared
    by its lookup, or by its own name; empty ones are ignored.
    """

    def matching(user: User, *, text: str = "", **criteria: Any) -> QuerySet[Row]:
        given = {
            lookups.get(name, name): value
            for name, value in criteria.items()
            if value not in ("", None)
        }
        return with_words(rows(user), text, *fields).filter(**given)

    return matching


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 19


def _is_text(key: str) -> bool:
    """Return whether PostgreSQL can hold it."""
    return "\0" not in key


@dataclass(frozen=True, kw_only=True)
class Heading:
    """The heading of a column."""

    label: str
    is_unbroken: bool
    is_spoken: bool
    direction: str  # as in aria-sort; "" if the list is sorted by another column
    sort: str  # the order after a click; "" if the column cannot be sorted


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A dressed row, and its key in forms."""

    key: str
    name: str
    row: Any
    is_chosen: bool


class KeyPaginator(Paginator[Any]):
    """Pages of keys. Those of the second half are read from the end, so that the
    database skips at most half of the rows."""

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
    """Pages of keys: the first and the last are read and counted in one query.

    Beyond the row `near`, most requests are for the last page.
    """

    near = 1000

    def get_page(self, number: float | str | None) -> Page[Any]:
        text = str(number or 1)
        begin = (int(text) - 1) * self.per_page if _is_number(text) else -1
        if begin >= self.near:
            last = self._counted(self.object_list.reverse(), 0)
            if begin >= self.count - self.per_page:
                number_there = self.count - (self.num_pages - 1) * self.per_page
                return Page(last[:number_there][::-1], self.num_pages, self)
        elif begin >= 0 and (keys := self._counted(self.object_list, begin)):
            return Page(keys, int(text), self)
        return super().get_page(number)

    def _counted(self, keys: QuerySet[Any, Any], begin: int) -> list[Any]:
        """Return the keys of a page, and count all where there is such a page."""
        counted = keys.annotate(of_all=Window(Count("*"))).values_list("pk", "of_all")
        found = list(counted[begin : begin + self.per_page])
        if found:
            self.count = found[0][1]
        return [key for key, _ in found]


class Look(Generic[Row]):
    """One page of a list, as an address asks for it."""

    def __init__(self, listing: Listing[Row], request: WebRequest) -> None:
        self.listing = listing
        self.user = request.user
        self.form = listing.form(request.GET)
        self.criteria = self.form.criteria()
        asked = request.GET.get("sort", "")
        self.sort = asked if listing.column(asked) else listing.usual
        self.rows = listing.ordered(
            listing.matching(self.user, **self.criteria), self.sort
        )
        self.acts = [act for act in listing.acts if act.is_offered_to(self.user)]
        self.error = ""
        self._number = request.GET.get("page")
        self._choose = request.GET.get("choose")
        self._chosen = set(request.POST.getlist("chosen"))

    @cached_property
    def page(self) -> Page[Any]:
        """The keys of the rows on the page; everything else is read for these alone."""
        keys = self.rows.values_list("pk", flat=True)
        pages = CountingPaginator if self.listing.is_read_whole else KeyPaginator
        return pages(keys, self.listing.page_size).get_page(self._number)

    @cached_property
    def entries(self) -> list[Entry]:
        keys = list(self.page.object_list)
        of_page = self.listing.shown(self.rows.order_by().filter(pk__in=keys))
        found = {row.pk: row for row in of_page}
        rows = [found[key] for key in keys if key in found]
        dressed = self.listing.dressed(self.user, rows)
        return [
            self._entry(row, shown) for row, shown in zip(rows, dressed, strict=True)
        ]

    def _entry(self, row: Row, shown: Any) -> Entry:
        key = str(getattr(row, self.listing.key))
        is_chosen = self._choose == "page" or key in self._chosen
        return Entry(key=key, name=str(row), row=shown, is_chosen=is_chosen)

    @property
    def count(self) -> int:
        return self.page.paginator.count

    @property
    def is_filtered(self) -> bool:
        """Whether the address asks for some of the rows."""
        return any(self.form[name].data for name in self.form.fields)

    @property
    def is_moving(self) -> bool:
        """Whether a row on the page is changing its state right now."""
        return any(getattr(entry.row, "is_moving", False) for entry in self.entries)

    @property
    def has_filters(self) -> bool:
        return self.is_filtered or self.count >= self.listing.quiet_below

    @property
    def are_all_choosable(self) -> bool:
        """Whether all matching rows can be chosen, including those on other pages."""
        return self.page.has_other_pages() and self.count <= MOST_AT_A_TIME

    @property
    def headings(self) -> Iterator[Heading]:
        for column in self.listing.columns:
            if column.label:
                yield self._heading(column)

    def _heading(self, column: Column) -> Heading:
        is_sorted = self.sort.removeprefix("-") == column.name
        is_descending = self.sort.startswith("-")
        goes_down = not is_descending if is_sorted else column.begins_descending
        direction = "descending" if is_descending else "ascending"
        return Heading(
            label=column.label,
            is_unbroken=column.is_unbroken,
            is_spoken=column.is_label_spoken,
            direction=direction if is_sorted else "",
            sort=f"{'-' * goes_down}{column.name}" if column.order else "",
        )

    @property
    def sorts(self) -> Iterator[tuple[str, str, bool]]:
        """Yield each order with its words, and whether it is the current one."""
        for column in self.listing.columns:
            if column.order and column.label:
                down = f"-{column.name}"
                yield column.name, column.label, column.name == self.sort
                yield down, f"{column.label}, descending", down == self.sort

    def as_csv(self) -> Iterator[str]:
        """Yield all matching rows, from every page, as lines of CSV."""
        columns = [column for column in self.listing.columns if column.cell]
        return csv_lines(
            [column.name for column in columns],
            (
                [column.value(row) for column in columns]
                for row in self._dressed_bit_by_bit()
            ),
        )

    def _dressed_bit_by_bit(self) -> Iterable[Any]:
        every = self.listing.shown(self.rows).iterator(chunk_size=READ_AT_A_TIME)
        while some := list(islice(every, READ_AT_A_TIME)):
            yield from self.listing.dressed(self.user, some)


def address_without(request: HttpRequest, *names: str) -> str:
    """Return the address of a list without some of its parameters."""
    query = request.GET.copy()
    for name in names:
        query.pop(name, None)
    return f"{request.path}?{query.urlencode()}" if query else request.path
