"""The declaration of a list, and one page of it.

The URL holds the whole state: the fields of the filter form, `sort` (the name of a
column, with a minus for descending order), `page`, and `as=csv`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.contrib.humanize.templatetags.humanize import intcomma
from django.core.paginator import Page, Paginator
from django.db.models import F, Model, QuerySet
from django.db.models.expressions import OrderBy
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from provisioner.accounts.models import User
from provisioner.lib import times
from provisioner.lib.rows import with_words
from provisioner.lib.tables import Cell, csv_lines
from provisioner.web.bulk import MOST_AT_A_TIME
from provisioner.web.filters import FilterForm, SearchForm
from provisioner.web.http import WebRequest
from provisioner.web.lists.acts import Act
from provisioner.web.lists.pages import (
    BoundedPaginator,
    CountingPaginator,
    KeyPaginator,
    is_number,
)
from provisioner.web.lists.saved import Views

Row = TypeVar("Row", bound=Model)
READ_AT_A_TIME = 1000
# PostgreSQL keeps the whole answer until the last line is sent.
MOST_DOWNLOADED = 1_000_000
# Before the first row of any list.
_ALWAYS = "2000-01-01T00:00"


@dataclass(frozen=True)
class Column:
    """A column: `name` is for URLs and CSV, `label` for people.

    Without a label it is in the CSV only. `cell` is the path of an attribute, or a
    function of the dressed row; with None the column is on the page only. `order` is
    the field to sort by; if empty, the column cannot be sorted. `is_number` aligns the
    column to the right, with class "number" on its cells. With `has_gaps`, rows without
    a value come last in both directions. `goes_with` names the page's column whose cell
    shows this value as well: hiding that column removes both from the CSV.
    """

    name: str
    label: str
    cell: str | Callable[[Any], Cell] | None
    order: str = ""
    has_gaps: bool = False
    is_unbroken: bool = False
    is_number: bool = False
    begins_descending: bool = False
    is_label_spoken: bool = False
    goes_with: str = ""

    def in_direction(self, *, is_descending: bool) -> OrderBy:
        by = F(self.order)
        gaps_last = True if self.has_gaps else None
        return by.desc(nulls_last=gaps_last) if is_descending else by.asc()

    @property
    def classes(self) -> str:
        """The CSS classes of its heading, which its cells have, too."""
        names = {"unbroken": self.is_unbroken, "number": self.is_number}
        return " ".join(name for name, is_one in names.items() if is_one)

    def stored_as(self, model: type[Model]) -> str:
        """Return the path of the stored field it shows unchanged; "" if it is made."""
        if not isinstance(self.cell, str):
            return ""
        of: Any = model
        for name in self.cell.split("."):
            stored = of._meta.concrete_fields if of else ()
            field = next((each for each in stored if each.name == name), None)
            if field is None:
                return ""
            of = field.related_model
        return "" if of else self.cell.replace(".", "__")

    def value(self, row: Any) -> Cell:
        assert self.cell is not None
        found: Cell = (
            attrgetter(self.cell)(row) if isinstance(self.cell, str) else self.cell(row)
        )
        return found


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A quick filter of a list: values by filter name, {me} for the reader.

    With `url_name` it leads to another list.
    """

    label: str
    query: Mapping[str, str] = field(default_factory=dict)
    url_name: str = ""

    def query_of(self, user: User) -> dict[str, str]:
        me = user.get_username()
        return {name: value.format(me=me) for name, value in self.query.items()}

    def address(self, user: User) -> str:
        if self.url_name:
            return reverse(self.url_name)
        return f"?{urlencode(self.query_of(user))}"


@dataclass(frozen=True, kw_only=True)
class Listing(Generic[Row]):
    """A declared list.

    `matching(user, **criteria)` returns the rows that the user may see and that match
    the `criteria()` of the filter form. `dress(user, rows)` adds what the rows of a
    page show beyond their own fields, in a constant number of queries. `cells` is the
    template of a dressed row's cells, which it knows as `row`.

    `reads` are the fields to load; empty loads all. `usual` is the default order.
    `choosable` are the rows that bulk actions apply to, if the filter hides some by
    default; `key` is the field that identifies them in forms. Filters appear from
    `quiet_below` rows on. Lists with `is_cards` have no headings. `is_read_whole` means
    that no index helps to find a page, so rows are counted while they are read, and
    `is_bounded` that they are too many to be counted, nor to be downloaded unless it
    `is_downloaded_whole`. Words are searched since `newest()`, unless a time is given
    or the list is downloaded; None is all of it. `chips` are quick filters.
    `more_acts` are bulk actions that features above add.
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
    more_acts: list[type[Act[Row]]] = field(default_factory=list)
    chips: tuple[Chip, ...] = ()
    choosable: Callable[[User], QuerySet[Row]] | None = None
    key: str = "pk"
    page_size: int = 50
    quiet_below: int = 1
    is_cards: bool = False
    is_read_whole: bool = False
    is_bounded: bool = False
    is_downloaded_whole: bool = False
    newest: Callable[[], dt.datetime | None] | None = None
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
        """Return the rows with these keys that a person may see."""
        rows = self.choosable(user) if self.choosable else self.matching(user)
        can_be = is_number if self.key == "pk" else _is_text
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


def _is_text(key: str) -> bool:
    """Return whether PostgreSQL can store the text."""
    return "\0" not in key


@dataclass(frozen=True, kw_only=True)
class Heading:
    """The heading of a column."""

    label: str
    classes: str
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


class Look(Generic[Row]):
    """One page of a list, as requested by a URL."""

    def __init__(self, listing: Listing[Row], request: WebRequest) -> None:
        self.listing = listing
        self.user = request.user
        self.views = Views(listing.name, request)
        query = self.views.query
        self.form = listing.form(query)
        self.criteria = self.form.criteria()
        self._request = request
        self._narrowed_to = self._narrow()
        asked = query.get("sort", "")
        self._asked_sort = asked
        self.sort = asked if listing.column(asked) else listing.usual
        self.rows = listing.ordered(
            listing.matching(self.user, **self.criteria), self.sort
        )
        self.acts = [
            act
            for act in (*listing.acts, *listing.more_acts)
            if act.is_offered_to(self.user)
        ]
        self.error = ""
        self._number = query.get("page")
        self._choose = request.GET.get("choose")
        self._chosen = set(request.POST.getlist("chosen"))

    def _narrow(self) -> dt.datetime | None:
        """Search words in the newest rows only; return since when, or None for all."""
        newest, given = self.listing.newest, self.criteria
        is_download = self._request.GET.get("as") == "csv"
        if newest is None or is_download or "text" not in given:
            return None
        if {"since", "until"} & given.keys():
            return None
        since = newest()
        if since is not None:
            self.criteria = {**given, "since": since}
        return since

    @cached_property
    def page(self) -> Page[Any]:
        """The keys of the rows on the page; everything else is read only for these."""
        keys = self.rows.values_list("pk", flat=True)
        is_search = "text" in self.criteria
        pages: type[Paginator[Any]] = KeyPaginator
        if self.listing.is_bounded and not (is_search and self.listing.newest):
            pages = BoundedPaginator
        elif is_search or self.listing.is_read_whole:
            pages = CountingPaginator
        return pages(keys, self.listing.page_size).get_page(self._number)

    @cached_property
    def entries(self) -> list[Entry]:
        keys = list(self.page.object_list)
        # These have the words already; searching for them again takes as long.
        criteria = {n: given for n, given in self.criteria.items() if n != "text"}
        visible = self.listing.matching(self.user, **criteria)
        of_page = self.listing.shown(visible.order_by().filter(pk__in=keys))
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

    @cached_property
    def choosable_columns(self) -> list[tuple[Column, bool]]:
        """The columns of the page that can be hidden, and whether each is shown."""
        hidden = self.views.hidden
        return [
            (column, column.name not in hidden)
            for column in self._labeled[1:]
            if not column.is_label_spoken
        ]

    @property
    def hides(self) -> str:
        """The CSS classes of the table that hide columns."""
        hidden = {
            column.name for column, is_shown in self.choosable_columns if not is_shown
        }
        first = 2 if self.acts else 1
        return "".join(
            f" hides-{number}"
            for number, column in enumerate(self._labeled, start=first)
            if column.name in hidden
        )

    @property
    def remarks(self) -> list[str]:
        """Sentences about what a saved view or a URL names that no longer exists."""
        names = {column.name for column in self.listing.columns}
        gone = sorted(self.views.hidden - names)
        said = [f"The column “{name}” of this view is gone." for name in gone]
        asked = self._asked_sort
        if asked and not self.listing.column(asked):
            usual = self.listing.column(self.sort)
            assert usual is not None
            said.append(
                f"There is no order by “{asked.removeprefix('-')[:60]}” any more: "
                f"sorted by {usual.label or usual.name}."
            )
        wrong = (
            f"{self.form[name].label}: {message}"
            for name, messages in self.form.errors.items()
            for message in messages
        )
        return [*self.views.remarks, *wrong, *said, *self._said_of_narrowing()]

    def _said_of_narrowing(self) -> Iterator[str]:
        if self._narrowed_to is None:
            return
        query = self._request.GET.copy()
        query.pop("page", None)
        query["since"] = _ALWAYS
        yield format_html(
            "Words were searched in the newest {} only, since {}. "
            '<a href="?{}">Search all, which takes some seconds</a>',
            self.listing.many,
            times.exact_text(timezone.localtime(self._narrowed_to), seconds=True),
            query.urlencode(),
        )

    @property
    def chips(self) -> list[tuple[str, str, bool]]:
        """The quick filters: label, URL, and whether it is the current one."""
        return [
            (chip.label, chip.address(self.user), self._is_shown(chip))
            for chip in self.listing.chips
        ]

    def _is_shown(self, chip: Chip) -> bool:
        return bool(chip.query) and chip.query_of(self.user) == self._given

    @cached_property
    def _given(self) -> dict[str, str]:
        return {
            name: str(self.form[name].data)
            for name in self.form.fields
            if self.form[name].data
        }

    @cached_property
    def _labeled(self) -> list[Column]:
        return [column for column in self.listing.columns if column.label]

    @property
    def count(self) -> int:
        return self.page.paginator.count

    @property
    def is_cut(self) -> bool:
        """Whether there are more rows than `count`."""
        return getattr(self.page.paginator, "is_cut", False)

    @property
    def most_downloaded(self) -> int | None:
        """How many rows a download has at most; None for all."""
        has_all = self.listing.is_downloaded_whole or not self.listing.is_bounded
        return None if has_all else MOST_DOWNLOADED

    @property
    def is_filtered(self) -> bool:
        """Whether the URL restricts the rows."""
        return bool(self._given)

    @property
    def has_several(self) -> bool:
        return self.count > 1

    @property
    def has_any(self) -> bool:
        """Whether there are rows, or filters or an error that may hide them."""
        return bool(self.count or self.is_filtered or self.error)

    @property
    def offers_columns(self) -> bool:
        """Whether its reader can choose the columns here."""
        is_table = not self.listing.is_cards and not self.views.shown
        return is_table and bool(self.choosable_columns)

    @property
    def is_moving(self) -> bool:
        """Whether a row on the page is in a moving state."""
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
        return map(self._heading, self._labeled)

    def _heading(self, column: Column) -> Heading:
        is_sorted = self.sort.removeprefix("-") == column.name
        is_descending = self.sort.startswith("-")
        goes_down = not is_descending if is_sorted else column.begins_descending
        direction = "descending" if is_descending else "ascending"
        return Heading(
            label=column.label,
            classes=column.classes,
            is_spoken=column.is_label_spoken,
            direction=direction if is_sorted else "",
            sort=f"{'-' * goes_down}{column.name}" if column.order else "",
        )

    @property
    def sorts(self) -> Iterator[tuple[str, str, bool]]:
        """Yield each order with its label, and whether it is the current one."""
        for column in self.listing.columns:
            if column.order and column.label:
                down = f"-{column.name}"
                yield column.name, column.label, column.name == self.sort
                yield down, f"{column.label}, descending", down == self.sort

    def as_csv(self) -> Iterator[str]:
        """Yield all matching rows, from every page, as lines of CSV.

        Of some lists the first `most_downloaded`.
        It has the columns shown, plus fields that the page does not show.
        """
        hidden = self.views.hidden
        columns = [
            column
            for column in self.listing.columns
            if column.cell and not hidden & {column.name, column.goes_with}
        ]
        rows = self.rows[: self.most_downloaded]
        names = [column.name for column in columns]
        fields = [column.stored_as(rows.model) for column in columns]
        if all(fields) and not self.listing.dress and not rows.query.distinct:
            # To make objects of rows, for values that are stored, takes most of it.
            stored = rows.values_list(*fields)
            return csv_lines(names, stored.iterator(chunk_size=READ_AT_A_TIME))
        shown = self._dressed_bit_by_bit(self.listing.shown(rows))
        return csv_lines(names, ([c.value(row) for c in columns] for row in shown))

    def _dressed_bit_by_bit(self, rows: QuerySet[Row]) -> Iterable[Any]:
        every = rows.iterator(chunk_size=READ_AT_A_TIME)
        while some := list(islice(every, READ_AT_A_TIME)):
            yield from self.listing.dressed(self.user, some)


def address_without(request: HttpRequest, *names: str) -> str:
    """Return the URL of a list without some of its parameters."""
    query = request.GET.copy()
    for name in names:
        query.pop(name, None)
    return f"{request.path}?{query.urlencode()}" if query else request.path
