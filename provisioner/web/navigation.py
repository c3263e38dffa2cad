"""The sidebar: sections, the places in them, and groups of places where there are many.

Each feature's `urls.py` registers its places. Every page belongs to one of them, by its
URL name, so that details mark the place that led there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from django.urls import get_script_prefix, reverse

from provisioner.accounts.models import User


class Section(Enum):
    """The sections in order, with their icons; those without an icon are not shown."""

    OVERVIEW = ("Overview", "overview")
    WORKSPACES = ("Workspaces", "workspace")
    TEMPLATES = ("Templates", "template")
    STORAGE = ("Storage", "storage")
    PERFORCE = ("Perforce", "server")
    PEOPLE = ("People", "person")
    POLICIES = ("Policies", "policy")
    ACTIVITY = ("Activity", "activity")
    ACCOUNT = ("My account", "account")
    HELP = ("Help", "help")
    SEARCH = ("Search", "")

    def __init__(self, title: str, icon: str) -> None:
        self.title = title
        self.icon = icon


class Group(Enum):
    """Places of one section that fold into one line until one of them is open."""

    PROGRAMS = "Programs and clients"
    LOAD = "Load and logs"
    MEASUREMENTS = "Measurements"
    SANDBOXES = "Backup and tests"
    ADVICE = "Advice"


def everybody(user: User) -> bool:
    return True


def administrators(user: User) -> bool:
    return user.is_administrator


@dataclass(frozen=True, kw_only=True)
class Place:
    """A page in the sidebar, by its URL name.

    It also stands for pages whose URL names begin with one of `covers`; of several
    places the longest match wins, then the first one. `rank` orders a section, and its
    groups by their first places. `waits` counts what waits there for the person.
    `also` is what else people type for it in the command palette.
    """

    title: str
    section: Section
    group: Group | None = None
    url_name: str
    covers: tuple[str, ...] = ()
    rank: int = 50
    is_for: Callable[[User], bool] = everybody
    waits: Callable[[], int] | None = None
    also: tuple[str, ...] = ()

    def fit(self, url_name: str) -> int:
        """Return how well a page belongs here; 0: not at all."""
        if url_name == self.url_name:
            return len(url_name) + 1
        fitting = (start for start in self.covers if url_name.startswith(start))
        return max(map(len, fitting), default=0)


_places: list[Place] = []


def register(*places: Place) -> None:
    _places.extend(places)
    _places.sort(key=lambda place: place.rank)


def places_for(user: User) -> list[Place]:
    """Return the places that a person may open, in order.

    Many places are for the same people, so each condition is asked once.
    """
    may_open = {is_for: is_for(user) for is_for in {each.is_for for each in _places}}
    return [place for place in _places if may_open[place.is_for]]


def place_of(url_name: str, places: Sequence[Place]) -> Place | None:
    """Return the place that a page belongs to."""
    best = max(places, key=lambda place: place.fit(url_name), default=None)
    return best if best is not None and best.fit(url_name) else None


@dataclass(frozen=True, kw_only=True)
class Link:
    """A place of the sidebar, or a section or group with the `places` that it shows.

    `current` is as in aria-current: "page", or "true" on what leads to the page. A
    section or group links to its first place, and shows all while one of them is open.
    """

    title: str
    url: str
    current: str
    waits: int = 0
    icon: str = ""
    places: tuple[Link, ...] = ()


def entries(user: User, *, url_name: str) -> list[Link]:
    """Return the sections of the sidebar for a person on a page."""
    places = places_for(user)
    here = place_of(url_name, places)
    by_section: dict[Section, dict[Group | Place, list[Link]]] = {}
    for place in places:
        current = "" if place is not here else "true"
        link = Link(
            title=place.title,
            url=_address(place.url_name, prefix=get_script_prefix()),
            current="page" if current and url_name == place.url_name else current,
            waits=place.waits() if place.waits is not None else 0,
        )
        groups = by_section.setdefault(place.section, {})
        groups.setdefault(place.group or place, []).append(link)
    return [
        _folded(
            section.title,
            [_grouped(group, links) for group, links in by_section[section].items()],
            icon=section.icon,
        )
        for section in Section
        if section.icon and section in by_section
    ]


@functools.cache
def _address(url_name: str, *, prefix: str) -> str:
    """Return a place's address; the sidebar of every page has them all."""
    return reverse(url_name)


def _grouped(group: Group | Place, links: Sequence[Link]) -> Link:
    """Return the line of a group; a place alone needs none."""
    if isinstance(group, Group) and len(links) > 1:
        return _folded(group.value, links)
    return links[0]


def _folded(title: str, links: Sequence[Link], *, icon: str = "") -> Link:
    is_open = len(links) > 1 and any(link.current for link in links)
    return Link(
        title=title,
        url=links[0].url,
        current="true" if is_open else links[0].current,
        waits=0 if is_open else sum(link.waits for link in links),
        icon=icon,
        places=tuple(links) if is_open else (),
    )
