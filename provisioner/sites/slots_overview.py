"""Slots at Perforce servers: running and waiting steps, for administrators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.engine import loads, slots, subjects, workflow
from provisioner.engine.models import LockWait, SlotBudget, Step
from provisioner.engine.workers import alive_workers
from provisioner.lib.rows import with_words
from provisioner.sites.models import PerforceServer
from provisioner.sites.queries import Connection, connection_of
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.templatetags.cloneyard import ago

WAITING_SHOWN = 20
WAITS_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class SlotLine:
    """A step that has a slot, or waits for it."""

    step: Step
    has_slot: bool

    @property
    def title(self) -> str:
        return workflow.title_of(self.step)

    @property
    def subject(self) -> Any:
        """The row of a feature that the step is about."""
        return self.step.operation.subject.row

    @property
    def subject_ids(self) -> dict[str, int]:
        return self.step.operation.subject_ids

    @property
    def asked_by(self) -> str:
        return self.step.operation.requested_by.get_username()

    @property
    def is_of_machine(self) -> bool:
        return self.step.operation.requested_by.is_service

    @property
    def standing(self) -> SafeString:
        """Since when it runs or waits, and for what."""
        if not self.has_slot:
            return format_html("Waiting, queued {}", ago(self.step.queued_at))
        if not self.has_begun:
            return SafeString("Has a slot, waits for a worker")
        return format_html("Began {}", ago(self.step.started_at))

    @property
    def has_begun(self) -> bool:
        """Whether a worker runs it; if not, it has a slot and waits for a worker."""
        return self.step.state == Step.State.RUNNING


@dataclass(frozen=True, kw_only=True)
class ServerSlots:
    """A Perforce server: its running and waiting steps, and how many may run.

    `waiting` are the first of those that wait. `maintenance` and `others` are sentences
    about what keeps ours from running, "" if nothing does.
    """

    server: PerforceServer
    pause: SlotBudget | None
    limit: int
    present_limit: int
    lock_waits: list[LockWait]
    running: list[SlotLine]
    waiting: list[SlotLine]
    people_waiting: int
    machines_waiting: int
    maintenance: str = ""
    others: str = ""

    @property
    def is_paused(self) -> bool:
        return self.pause is not None

    @property
    def lines(self) -> list[SlotLine]:
        """What runs, and the first of those that wait."""
        return [*self.running, *self.waiting]

    @property
    def shows_all(self) -> bool:
        return self.waiting_count == len(self.waiting)

    @property
    def is_backed_off(self) -> bool:
        return self.present_limit < self.limit

    @property
    def limit_reason(self) -> str:
        """Return why this many may run."""
        if self.maintenance:
            return f"{self.maintenance} None may run until that ends."
        if self.others:
            return (
                f"{self.others} Meanwhile {self.present_limit} of {self.limit} may run "
                "at a time, and one more each minute once nobody waits."
            )
        if not self.is_backed_off:
            return f"{self.limit} may run at a time, as set for the server."
        return (
            f"{self.present_limit} may run at a time and not {self.limit}, because a "
            "command waited long for a lock. The number rises by one each minute."
        )

    @property
    def waiting_count(self) -> int:
        return self.people_waiting + self.machines_waiting


def slots_for(user: User) -> list[ServerSlots]:
    """Return the slots of each Perforce server.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    servers = PerforceServer.objects.select_related(
        *("slot_budget__paused_by", "load", "upstream", "position")
    )
    return [slots_of(server) for server in servers.order_by("name")]


def pause_notices(slots: ServerSlots) -> list[Notice]:
    """Return notices that a server is paused, and how to resume it."""
    pause = slots.pause
    if pause is None:
        return []
    by = f" by {pause.paused_by.username}" if pause.paused_by else ""
    resume = Action(
        label="Resume",
        url=reverse("perforce-server-resume", args=[slots.server.pk]),
        is_post=True,
    )
    said = format_html("Paused {}{}: {}", ago(pause.paused_at), by, pause.paused_reason)
    return [Notice(level=Level.WARNING, texts=(said,), actions=(resume,))]


def slots_of(server: PerforceServer) -> ServerSlots:
    """Return the slots of one server."""
    pause = getattr(server, "slot_budget", None)
    waiting = slots.waiting().filter(perforce_server=server)
    is_machine = Q(operation__requested_by__is_service=True)
    now = timezone.now()
    counts = waiting.order_by().aggregate(
        people=Count("pk", filter=~is_machine), machines=Count("pk", filter=is_machine)
    )
    return ServerSlots(
        server=server,
        pause=pause if pause is not None and pause.is_paused else None,
        limit=server.flush_limit,
        present_limit=slots.present_limit(server, pause, now=now),
        maintenance=loads.maintenance_of(server, now=now),
        others=loads.others_wait_at(server, now=now),
        lock_waits=list(
            LockWait.objects.filter(server=server).order_by("-at", "-pk")[:WAITS_SHOWN]
        ),
        running=_lines(
            slots.at_work().filter(perforce_server=server).order_by("queued_at", "pk"),
            have_slots=True,
        ),
        waiting=_lines(slots.in_order(waiting)[:WAITING_SHOWN], have_slots=False),
        people_waiting=counts["people"],
        machines_waiting=counts["machines"],
    )


def _lines(steps: QuerySet[Step], *, have_slots: bool) -> list[SlotLine]:
    loaded = steps.select_related(
        *subjects.paths(by="operation__"), "operation__requested_by"
    )
    return [SlotLine(step=step, has_slot=have_slots) for step in loaded]


@dataclass(frozen=True, kw_only=True)
class ServerLine:
    """A Perforce server in a list: its health, load, and latest submitted change.

    `pause` is None unless it is paused. `watch` is what the catalog has seen submitted
    there, None before the first poll.
    """

    server: PerforceServer
    connection: Connection
    pause: SlotBudget | None
    watch: Any
    present_limit: int
    running: int
    waiting: int


def servers_matching(user: User, *, text: str = "") -> QuerySet[PerforceServer]:
    """Return the servers that match every word of a text.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    servers = PerforceServer.objects.select_related(
        *("slot_budget__paused_by", "load", "watch", "upstream")
    )
    known = servers.prefetch_related("connection_tests__checks")
    return with_words(known, text, "name", "p4port", "p4user", "server_id")


def server_lines(servers: Iterable[PerforceServer]) -> list[ServerLine]:
    """Return the lines of servers from `servers_matching`. Three queries."""
    now, workers = timezone.now(), alive_workers()
    running, waiting = _by_server(slots.at_work()), _by_server(slots.waiting())
    return [
        ServerLine(
            server=server,
            connection=connection_of(server, workers=workers),
            pause=known if known is not None and known.is_paused else None,
            watch=getattr(server, "watch", None),
            present_limit=slots.present_limit(server, known, now=now),
            running=running.get(server.pk, 0),
            waiting=waiting.get(server.pk, 0),
        )
        for server in servers
        for known in [getattr(server, "slot_budget", None)]
    ]


def _by_server(steps: QuerySet[Step]) -> dict[int, int]:
    return dict(steps.order_by().values_list("perforce_server").annotate(Count("pk")))
