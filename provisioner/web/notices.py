"""Notices and actions of pages: views decide, templates show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, kw_only=True)
class Action:
    """An action on a page: a link, or with `is_post` a form with one button.

    What cannot be undone is a link to a page that asks for confirmation. `sends` are
    the hidden fields of a form. `look` is "primary", "quiet-danger", "link", or "" for
    a plain button. Screen readers read `about` after the label, on pages with many such
    actions. `help` explains the action if the page has room for it. With `html_id` the
    action keeps the focus when a part of the page is swapped.
    """

    label: str
    url: str
    is_post: bool = False
    sends: Mapping[str, str] = field(default_factory=dict)
    icon: str = ""
    look: str = ""
    about: str = ""
    help: str = ""
    html_id: str = ""

    @property
    def is_minor(self) -> bool:
        """Whether it goes into a menu where there are many actions."""
        return self.look in ("link", "quiet-danger")

    @property
    def classes(self) -> str:
        """The CSS classes of its link or button; "" for a link in a text."""
        if self.look == "link":
            return ""
        return f"button button-{self.look}" if self.look else "button"


class Level(StrEnum):
    """The severity of a notice, with its color and icon."""

    INFO = "info"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"


LEVEL_ICONS = {
    Level.INFO: "info",
    Level.SUCCESS: "done",
    Level.WARNING: "warning",
    Level.ERROR: "failed",
}


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A message at the top of a page, with actions.

    Texts may be HTML that is marked safe. An urgent one is read out at once.
    """

    level: Level
    title: str = ""
    texts: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    icon_name: str = ""
    is_urgent: bool = False

    @property
    def icon(self) -> str:
        return self.icon_name or LEVEL_ICONS[self.level]
