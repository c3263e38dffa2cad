"""Notices and actions on a template's page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from django.urls import reverse
from django.utils.html import format_html

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import BuildParameters, Template, TemplateOperation
from provisioner.catalog.obstacles import Obstacle, known_obstacles
from provisioner.catalog.overviews import SnapshotLine, TemplateOverview
from provisioner.engine.models import Operation
from provisioner.lib.sizes import size_text
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.templatetags.cloneyard import ago, count

SNAPSHOTS_SHOWN = 10
_FAILED = {
    "test_failed": "The test failed. The snapshot is marked.",
    "canceled": "The build was stopped. Nothing was published.",
    "volume_lost": "Its volume is gone.",
}


@dataclass(frozen=True, kw_only=True)
class BuildLine:
    """A build; `failure` says why it failed, "" if it did not."""

    build: Operation
    asked: BuildParameters
    failure: str
    actions: list[Action]


@dataclass(frozen=True, kw_only=True)
class TemplatePage:
    """A template as one reader sees it."""

    overview: TemplateOverview
    user: User
    shows_all_snapshots: bool = False
    shows_more: bool = False

    @property
    def template(self) -> Template:
        return self.overview.template

    @cached_property
    def obstacle(self) -> Obstacle | None:
        """The obstacle to a workspace of its default snapshot, if any."""
        default = self.overview.default
        if default is None or self.template.is_archived:
            return None
        return known_obstacles(self.user, [default]).get(default.pk)

    @property
    def snapshots(self) -> list[SnapshotLine]:
        """The newest snapshots and the default, or all if requested."""
        return [
            line
            for number, line in enumerate(self.overview.snapshots)
            if self.shows_all_snapshots
            or number < SNAPSHOTS_SHOWN
            or line.pins.is_default
        ]

    @property
    def has_more_snapshots(self) -> bool:
        return len(self.snapshots) < len(self.overview.snapshots)

    @property
    def actions(self) -> list[Action]:
        """Actions on the whole template, most common first."""
        return [*self._for_users(), *self._for_managers(), *self._for_owners()]

    @property
    def notices(self) -> list[Notice]:
        """Notices, most important first."""
        return [
            *self._archived(),
            *self._obstacle(),
            *self._failed(),
            *self._filling(),
            *self._held(),
            *self._no_default(),
            *self._not_refreshed(),
        ]

    @property
    def needs_sentence(self) -> str:
        """What the last build of the whole or parts of it added to the volume."""
        for line in self.overview.snapshots:
            grew = line.snapshot.grew_bytes
            if grew is not None and not line.snapshot.is_clean:
                return f"The last build added {size_text(grew)}."
        return "What a build adds was not measured yet."

    @property
    def shows_size_advice(self) -> bool:
        """Whether its reader may give it the proposed size."""
        return self.user.is_administrator and not self.template.is_archived

    @property
    def may_change(self) -> bool:
        return permissions.can_change_template(self.user, self.template)

    @property
    def builds(self) -> list[BuildLine]:
        """Its builds, newest first. One that failed last can be rolled back."""
        failed, last = Operation.State.FAILED, self._failed_build
        return [
            BuildLine(
                build=build,
                asked=BuildParameters.of(build),
                failure=build.status_message if build.state == failed else "",
                actions=self._roll_back if build.pk == last else [],
            )
            for build in self.overview.builds
        ]

    @property
    def grown_bytes(self) -> int | None:
        """The size of its volume if that has grown, else None."""
        now = self.template.clone_size_bytes
        return now if now != self.template.volume_size_bytes else None

    @property
    def resize(self) -> Operation | None:
        """The change of its volume that runs, or failed to give it its size."""
        if self.grown_bytes is None:
            return None
        change = self.overview.volume_change
        states = (Operation.State.RUNNING, Operation.State.FAILED)
        return change if change is not None and change.state in states else None

    @property
    def resize_sentence(self) -> str:
        assert self.resize is not None
        if self.resize.state == Operation.State.RUNNING:
            return "Being resized."
        return f"Not resized: {self.resize.status_message} The next build tries again."

    @property
    def _failed_build(self) -> int | None:
        """The newest build, if it failed."""
        newest = self.overview.newest
        failed = newest is not None and newest.state == Operation.State.FAILED
        return newest.pk if newest is not None and failed else None

    @property
    def _roll_back(self) -> list[Action]:
        """The action that holds the last good snapshot, in one click."""
        before = self.overview.roll_back_to
        if before is None or not self.may_change:
            return []
        return [
            Action(
                label=f"Roll back to change {before.change}",
                url=self._url("template-roll-back"),
                is_post=True,
                sends={"build": str(self._failed_build)},
            )
        ]

    @property
    def freshness(self) -> str:
        """How far the default snapshot is behind the depot."""
        freshness = self.overview.freshness
        if self.template.is_archived:
            return "Not tracked while archived"
        if freshness is None:
            is_known_soon = self.overview.has_default
            return (
                "Not known yet" if is_known_soon else "Counted from the first snapshot"
            )
        if not freshness.changes:
            return "No change under its view since the default snapshot"
        return format_html(
            "{} behind, the first submitted {}, by {}"
            '<br><span class="aside">The newest is change '
            '<span class="change">{}</span>.</span>',
            count(freshness.changes, "change", "changes"),
            *(ago(freshness.since), freshness.by, freshness.newest),
        )

    def _url(self, name: str) -> str:
        return reverse(name, args=[self.template.pk])

    def _for_users(self) -> Iterator[Action]:
        if not self.overview.has_available or self.user.uid is None:
            return
        if self.template.is_archived:
            return
        against = self.obstacle
        yield Action(
            label=against.button if against else "Get a workspace",
            url=self._url("workspace-create"),
            look="" if against else "primary",
        )
        yield Action(
            label="Find a bad change", url=self._url("bisection-create"), look="link"
        )

    def _obstacle(self) -> Iterator[Notice]:
        if self.obstacle is not None:
            yield Notice(level=Level.WARNING, texts=(self.obstacle.sentence,))

    def _for_managers(self) -> Iterator[Action]:
        is_building = self.overview.running is not None
        if is_building or not permissions.can_manage_templates(self.user):
            return
        if self.template.is_archived:
            return
        build = self._url("template-build")
        yield Action(
            label="Build the newest change", url=build, is_post=True, icon="build"
        )
        yield Action(label="Edit", url=self._url("template-edit"))
        yield Action(label="Build with options…", url=build, look="link")
        if self.template.volume_uuid and self.user.is_administrator:
            move = self._url("template-move")
            yield Action(label="Move to another aggregate…", url=move, look="link")
        if self.user.is_administrator:
            settings = self._url("volume-policy-template")
            yield Action(label="Settings of its volume…", url=settings, look="link")

    def _for_owners(self) -> Iterator[Action]:
        if not self.may_change or self._is_going:
            return
        yield Action(label="Rename", url=self._url("template-rename"), look="link")
        yield Action(label="Change owner", url=self._url("template-owner"), look="link")
        if not self.template.is_archived:
            archive = self._url("template-archive")
            yield Action(label="Archive…", url=archive, look="link")
        if permissions.can_manage_templates(self.user):
            delete = self._url("template-delete")
            yield Action(label="Delete…", url=delete, look="quiet-danger")

    @property
    def _is_going(self) -> bool:
        """Whether it is deleted, or being deleted."""
        State = Template.State
        return self.template.state in (State.DELETING, State.DELETED)

    def _archived(self) -> Iterator[Notice]:
        template = self.template
        if template.archived_by is None:
            return
        by = template.archived_by.username
        if template.state == Template.State.DELETED:
            yield Notice(
                level=Level.INFO,
                title="This template was deleted",
                texts=("Its builds and their logs are kept.",),
            )
            return
        unarchive = Action(
            label="Unarchive", url=self._url("template-unarchive"), is_post=True
        )
        yield Notice(
            level=Level.INFO,
            title=format_html("Archived by {} {}", by, ago(template.archived_at)),
            texts=(
                *filter(None, (template.archive_reason,)),
                "It gives no new workspaces. Existing ones stay.",
            ),
            actions=(unarchive,) if self.may_change and not self._is_going else (),
        )

    def _failed(self) -> Iterator[Notice]:
        template, newest = self.template, self.overview.newest
        if template.state != Template.State.FAILED:
            return
        if newest is not None and newest.kind == TemplateOperation.DELETE:
            yield Notice(
                level=Level.ERROR,
                title="It could not be deleted",
                texts=(template.status_message,),
                actions=self._again,
                is_urgent=True,
            )
            return
        actions = []
        if newest is not None:
            url = reverse("operation-log", args=[newest.pk])
            actions.append(Action(label="Read the log", url=url))
        actions += self._roll_back
        yield Notice(
            level=Level.ERROR,
            title=_FAILED.get(
                template.status_code, "The last build failed. Nothing was published."
            ),
            texts=(template.status_message,),
            actions=tuple(actions),
            is_urgent=True,
        )

    @property
    def _again(self) -> tuple[Action, ...]:
        if not permissions.can_manage_templates(self.user):
            return ()
        return (Action(label="Delete it again…", url=self._url("template-delete")),)

    def _filling(self) -> Iterator[Notice]:
        fullness = self.template.fullness
        if fullness is None or not fullness.is_short or self.template.is_archived:
            return
        yield Notice(
            level=Level.ERROR if fullness.is_urgent else Level.WARNING,
            title=fullness.title,
            texts=(
                f"It is {fullness.sentence}",
                "Without room builds fail. Keep fewer snapshots, or give it a larger "
                "volume.",
            ),
        )

    def _held(self) -> Iterator[Notice]:
        held = next(
            (line for line in self.overview.snapshots if line.snapshot.is_held), None
        )
        if held is None or self.template.is_archived:
            return
        snapshot = held.snapshot
        release = Action(
            label="Release",
            url=reverse("snapshot-release", args=[snapshot.pk]),
            is_post=True,
        )
        yield Notice(
            level=Level.INFO,
            title=f"New workspaces get change {snapshot.change} until it is released",
            texts=(snapshot.hold_reason,),
            actions=(release,) if self.may_change else (),
        )

    def _no_default(self) -> Iterator[Notice]:
        if self.overview.has_available and not self.overview.has_default:
            yield Notice(
                level=Level.WARNING,
                title=f"No snapshot is {self.template.wanted_quality}",
                texts=("People must choose a snapshot for new workspaces.",),
            )

    def _not_refreshed(self) -> Iterator[Notice]:
        if self.template.is_archived:
            return
        # A pause of the server stands above, with what follows for workspaces.
        is_said = self.obstacle is not None and self.obstacle.is_pause
        server_pause = "" if is_said else self.overview.server_pause
        for pause in filter(None, [*self.overview.pauses, server_pause]):
            yield Notice(level=Level.WARNING, texts=(pause,))
        if self.overview.watch_error:
            yield Notice(
                level=Level.WARNING,
                title="Perforce could not be polled for new changes",
                texts=(self.overview.watch_error,),
            )
