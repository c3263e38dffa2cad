"""Lists of templates: those on offer, and their refresh policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog import freshness
from provisioner.catalog.actions.refresh import refresh_pause, template_refresh_pause
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.events import asks_places, asks_usual_seconds
from provisioner.catalog.forms.templates import TemplateFilterForm
from provisioner.catalog.models import RefreshPolicy, Snapshot, Template, references_of
from provisioner.catalog.obstacles import Obstacle, known_obstacles
from provisioner.catalog.offers import Offer
from provisioner.catalog.queries import (
    by_default_snapshot,
    defaults_among,
    is_archived,
    templates_to_choose_from,
    templates_visible_to,
)
from provisioner.engine.models import Operation
from provisioner.lib.tables import Cell
from provisioner.sites.lists import PERFORCE_SERVERS
from provisioner.sites.models import PerforceServer, Site
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Chip, Column, Listing, searched


class ManagersAct(Act[Template]):
    """An action for those who define templates."""

    @classmethod
    def is_offered_to(cls, user: User) -> bool:
        return permissions.can_manage_templates(user)


class Build(ManagersAct):
    name, label, done = "build", "Build", "Being built"
    lead = "Existing workspaces do not change. New ones get the published snapshot."

    def do(self, row: Template, **told: Any) -> Operation:
        return template_build(by=self.by, template=row)

    def says(self, row: Template, result: Operation) -> str:
        return "It is built at the newest change."


class PauseRefresh(ManagersAct):
    name, label, done = "pause", "Pause refresh", "Paused"
    asks = "Pause the refresh of"
    lead = "Running builds continue, and people may still request builds."

    def do(self, row: Template, **told: Any) -> RefreshPolicy:
        return template_refresh_pause(by=self.by, template=row, is_paused=True)

    def says(self, row: Template, result: RefreshPolicy) -> str:
        return result.sentence


class ResumeRefresh(PauseRefresh):
    name, label, done = "resume", "Resume refresh", "Resumed"
    asks = "Resume the refresh of"
    lead = "Changes submitted meanwhile are built by their policies."

    def do(self, row: Template, **told: Any) -> RefreshPolicy:
        return template_refresh_pause(by=self.by, template=row, is_paused=False)


class PauseServerRefresh(Act[PerforceServer]):
    name, label, done = "pause-refresh", "Pause refresh", "Paused"
    asks = "Pause the refresh by"
    lead = "They are not polled for new changes. Running builds continue."
    is_paused = True

    def do(self, row: PerforceServer, **told: Any) -> None:
        refresh_pause(by=self.by, server=row, is_paused=self.is_paused)

    def says(self, row: PerforceServer, result: None) -> str:
        return "None of its templates is refreshed until it is resumed."


class ResumeServerRefresh(PauseServerRefresh):
    name, label, done = "resume-refresh", "Resume refresh", "Resumed"
    asks = "Resume the refresh by"
    lead = "Changes submitted meanwhile are built by each template's policy."
    is_paused = False

    def says(self, row: PerforceServer, result: None) -> str:
        return "It is polled for new changes again."


PERFORCE_SERVERS.more_acts.extend((PauseServerRefresh, ResumeServerRefresh))


@dataclass(frozen=True, kw_only=True)
class ShownTemplate(Offer):
    """A template on offer with its refresh policy."""

    policy: RefreshPolicy


def _usual_seconds(templates: list[Template]) -> dict[int, float]:
    """Return the usual time to ready, by template."""
    usual: dict[int, float] = {}
    answers: Any = asks_usual_seconds.send(Template, templates=templates)
    for _, known in answers:
        usual.update(known)
    return usual


def _shown(
    user: User,
    templates: list[Template],
    *,
    has_obstacles: bool = False,
) -> Sequence[ShownTemplate]:
    references = references_of(templates)
    places, coming = _elsewhere(user, templates) if has_obstacles else ({}, {})
    defaults = defaults_among(references) | {
        pk: snapshot for pk, (_, snapshot) in places.items()
    }
    known, seconds = freshness.freshness_since(references), _usual_seconds(templates)
    sites = {snapshot.pk: site for site, snapshot in places.values()}
    obstacles = _obstacles(user, defaults.values(), sites) if has_obstacles else {}
    return [
        ShownTemplate(
            template=template,
            user=user,
            default=defaults.get(template.pk),
            site=places[template.pk][0] if template.pk in places else None,
            coming=coming.get(template.pk, ""),
            freshness=known.get(template.pk),
            usual_seconds=seconds.get(template.pk),
            policy=getattr(template, "refresh_policy", RefreshPolicy()),
            obstacle=obstacles.get(template.pk),
        )
        for template in templates
    ]


def _elsewhere(
    user: User, templates: list[Template]
) -> tuple[dict[int, tuple[Site, Snapshot]], dict[int, str]]:
    """Return what a person gets at another site than the template's, by template.

    And what is on its way there.
    """
    places: dict[int, tuple[Site, Snapshot]] = {}
    coming: dict[int, str] = {}
    answers: Any = asks_places.send(Template, by=user, templates=templates)
    for _, (known, on_their_way) in answers:
        places.update(known)
        coming.update(on_their_way)
    return places, coming


def _obstacles(
    user: User, defaults: Iterable[Snapshot], sites: Mapping[int, Site]
) -> dict[int, Obstacle]:
    """Return the obstacles to a workspace, by the template's id."""
    offered = [each for each in defaults if not each.template.is_archived]
    known = known_obstacles(user, offered, sites=sites)
    return {each.template_id: known[each.pk] for each in offered if each.pk in known}


def _offered(user: User, templates: list[Template]) -> Sequence[ShownTemplate]:
    """Return templates as those who request a workspace see them."""
    return _shown(user, templates, has_obstacles=True)


def _default(field: str) -> Callable[[ShownTemplate], Cell]:
    """Return the cell with a field of the default snapshot, empty without one."""
    return lambda shown: getattr(shown.default, field, None)


def _behind(shown: ShownTemplate) -> int | None:
    return shown.freshness.changes if shown.freshness else None


_FACTS = (
    Column("site", "", "template.site.name", "site__name"),
    Column("state", "", "template.state", "state"),
    Column("change", "", _default("change")),
    Column("quality", "", _default("quality")),
    Column("files", "", _default("have_count")),
    Column("usual_seconds", "", "usual_seconds"),
)

_READS = (
    *("name", "title", "description", "state", "wanted_quality", "archived_at"),
    *("site__name", "site__perforce_server__name", "refresh_policy"),
    *("clones_of_others", "volume_size_bytes", "actual_size_bytes", "aggregate"),
)
_SEARCHED = searched(
    *(templates_visible_to, "name", "title", "description"),
    owner="owner__username",
)
_FAILED = Chip(label="Failed build", query={"state": Template.State.FAILED})
_BEHIND = Chip(label="Behind", query={"behind": "1"})


def _matching(
    user: User, *, archived: str = "", behind: str = "", **criteria: Any
) -> QuerySet[Template]:
    """Return a person's matching templates; archived ones only on request."""
    found = is_archived(_SEARCHED(user, **criteria), archived)
    found = by_default_snapshot(found).select_related("refresh_policy")
    if not behind:
        return found
    # In SQL the same took seconds: the newest snapshot is asked for again and again.
    visible = templates_to_choose_from(user).select_related(None).only("pk")
    known = freshness.freshness_of_all(list(visible))
    return found.filter(pk__in=[pk for pk, each in known.items() if each.changes])


TEMPLATES = Listing[Template](
    name="templates",
    one="template",
    many="templates",
    columns=(
        Column("name", "Name", "template.name", "name"),
        Column(
            *("published_at", "Newest snapshot", _default("created_at")),
            order="default_created_at",
            has_gaps=True,
            begins_descending=True,
        ),
        *_FACTS,
        Column("behind", "", _behind),
        Column("refresh", "", "policy.sentence"),
    ),
    cells="catalog/_offer_entry.html",
    is_cards=True,
    matching=_matching,
    usual="name",
    form=TemplateFilterForm,
    reads=_READS,
    is_read_whole=True,
    dress=_offered,
    acts=(Build, PauseRefresh, ResumeRefresh),
    chips=(
        _FAILED,
        _BEHIND,
        Chip(label="Archived", query={"archived": "only"}),
        Chip(label="Mine", query={"owner": "{me}"}),
    ),
    page_size=20,
    quiet_below=7,
)

REFRESHES = Listing[Template](
    name="refreshes",
    one="template",
    many="templates",
    columns=(
        Column("name", "Template", "template.name", "name", is_unbroken=True),
        *_FACTS,
        Column("behind", "Behind", _behind),
        Column("policy", "Policy", "policy.sentence"),
    ),
    cells="catalog/_refresh_cells.html",
    matching=_matching,
    usual="name",
    form=TemplateFilterForm,
    reads=_READS,
    dress=_shown,
    acts=(PauseRefresh, ResumeRefresh),
    chips=(_FAILED, _BEHIND),
    quiet_below=7,
)
