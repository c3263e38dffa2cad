"""The setup page: texts and actions of each milestone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.accounts.models import User
from provisioner.dashboard.setup import Milestone, Progress, Setup
from provisioner.sites.queries import PlaceReport
from provisioner.web.notices import Action
from provisioner.web.templatetags.cloneyard import state

_WHAT_IT_IS = {
    "perforce": "Cloneyard talks to your Perforce server as a user of its own, which "
    "should be super. Its password comes from the environment.",
    "site": "A site is one SVM of ONTAP that serves NFS, and the hosts that mount its "
    "namespace. A worker runs on one of them, as root, for work on files.",
    "template": "A template is a depot path that is synced and built once. Workspaces "
    "are clones of it.",
    "workspace": "One click clones the template in seconds. The clone is yours and has "
    "a Perforce client.",
}
_DONE = {
    "perforce": ("The Perforce server {} works.", "A Perforce server works."),
    "site": ("The site {} works.", "A site works."),
    "template": ("{} is built.", "A template is built."),
}
_PAGES = {
    "perforce": "perforce-server-detail",
    "site": "site-detail",
    "template": "template-detail",
}


_STATES = {
    Progress.MOVING: ("running", "Under way"),
    Progress.FAILED: ("failed", "Something is wrong"),
}


@dataclass(frozen=True, kw_only=True)
class ShownMilestone:
    """A milestone as one reader sees it.

    `reports` are the connection tests to show, and `note` says what is missing.
    """

    milestone: Milestone
    text: str
    note: str
    reports: list[PlaceReport]
    actions: list[Action]

    @property
    def state(self) -> SafeString:
        """Its state beside the title: running, failed, or done for screen readers."""
        progress = self.milestone.progress
        if progress in _STATES:
            return state(*_STATES[progress])
        done = '<span class="visually-hidden">done</span>'
        return SafeString(done if self.milestone.is_done else "")

    @property
    def has_failed(self) -> bool:
        return self.milestone.progress == Progress.FAILED


@dataclass(frozen=True, kw_only=True)
class SetupPage:
    """Setup as one reader sees it. `lead` tells others whom to ask."""

    setup: Setup
    title: str
    lead: SafeString
    milestones: list[ShownMilestone]


def setup_page_of(setup: Setup, user: User) -> SetupPage:
    """Return the milestones with what their reader can do about them."""
    milestones = [_shown(milestone, user) for milestone in setup.milestones]
    if user.is_administrator:
        title, lead = "Set up Cloneyard", SafeString()
    else:
        title, lead = "Cloneyard is being set up", _lead(setup.administrators)
    return SetupPage(setup=setup, title=title, lead=lead, milestones=milestones)


def _lead(administrators: list[str]) -> SafeString:
    ready = "You get a workspace with one click once the first three are done. "
    if not administrators:
        return SafeString(
            f"{ready}Administrators do that, and there is none yet: the server's owner "
            "creates one with <code>python manage.py createsuperuser</code>."
        )
    who = "the administrator" if len(administrators) == 1 else "administrators"
    names = ", ".join(administrators)
    return format_html("{}Ask {}: {}.", ready, who, names)


def _shown(milestone: Milestone, user: User) -> ShownMilestone:
    may_act = user.is_administrator and not milestone.is_done
    note, actions = _OFFERS[milestone.name](milestone, user) if may_act else ("", [])
    connection = milestone.connection if may_act else None
    reports = connection.reports if connection else []
    return ShownMilestone(
        milestone=milestone,
        text=_text(milestone, user),
        note=note,
        reports=[each for each in reports if each.has_failed or each.is_waiting],
        actions=actions,
    )


def _text(milestone: Milestone, user: User) -> str:
    if not milestone.is_done:
        return _WHAT_IT_IS[milestone.name]
    named, unnamed = _DONE[milestone.name]
    about = milestone.about
    is_open_to_all = milestone.name == "template"
    if about is None or not (user.is_administrator or is_open_to_all):
        return unnamed
    url = reverse(_PAGES[milestone.name], args=[about.pk])
    return format_html(named, format_html('<a href="{}">{}</a>', url, about.name))


Offer = tuple[str, list[Action]]


def _first(milestone: Milestone, action: Action) -> Offer:
    return "", [action] if milestone.is_open else []


def _connection(kind: str, label: str) -> Callable[[Milestone, User], Offer]:
    """Return a function that offers to connect a system, or to test its row."""

    def offer(milestone: Milestone, user: User) -> Offer:
        about, connection = milestone.about, milestone.connection
        if about is None or connection is None:
            url = reverse(f"{kind}-create")
            return _first(milestone, Action(label=label, url=url, look="primary"))
        was_tested = bool(connection.reports)
        note = (
            ""
            if was_tested
            else f"{about.name} has not been tested since the last change."
        )
        return note, [
            Action(
                label="Test again" if was_tested else "Test it",
                url=reverse(f"{kind}-test", args=[about.pk]),
                is_post=True,
                sends={"from_guide": "yes"},
                look="primary",
                html_id=f"{kind}-test",
            ),
            Action(
                label=f"Edit {about.name}",
                url=reverse(f"{kind}-edit", args=[about.pk]),
                html_id=f"{kind}-edit",
            ),
            Action(
                label="Show all tests",
                url=reverse(f"{kind}-detail", args=[about.pk]),
                look="link",
                html_id=f"{kind}-tests",
            ),
        ]

    return offer


def _template(milestone: Milestone, user: User) -> Offer:
    about = milestone.about
    if about is None:
        url = reverse("template-create")
        define = Action(label="Define a template", url=url, look="primary")
        return _first(milestone, define)
    show = Action(
        label=f"Show {about.name}",
        url=reverse("template-detail", args=[about.pk]),
        look="link",
    )
    if not milestone.is_open:
        return "", []
    if milestone.progress == Progress.MOVING:
        return f"{about.name} is being built. You may leave this page.", [show]
    again = " again" if milestone.progress == Progress.FAILED else ""
    build = Action(
        label=f"Build {about.name}{again}",
        url=reverse("template-build", args=[about.pk]),
        is_post=True,
        look="primary",
    )
    return milestone.reason, [build, show]


def _workspace(milestone: Milestone, user: User) -> Offer:
    if not milestone.is_open:
        return "", []
    if milestone.about is not None:
        label = f"Show {milestone.about.name}"
        url = reverse("workspace-detail", args=[milestone.about.pk])
        return milestone.reason, [Action(label=label, url=url, look="primary")]
    if user.uid is None:
        note = "Your account has no uid and gid yet. Files need an owner."
        url = reverse("person-edit", args=[user.pk])
        set_uid = Action(label="Give your account a uid", url=url, look="primary")
        return note, [set_uid]
    url = reverse("template-list")
    return "", [Action(label="Choose a template", url=url, look="primary")]


_OFFERS: dict[str, Callable[[Milestone, User], Offer]] = {
    "perforce": _connection("perforce-server", "Connect Perforce"),
    "site": _connection("site", "Connect a site"),
    "template": _template,
    "workspace": _workspace,
}
