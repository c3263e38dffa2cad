"""Bisections as pages and the API show them: progress and steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.db.models import Prefetch, QuerySet
from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.accounts.permissions import Verb, may, own_or_of_team
from provisioner.bisect import search
from provisioner.bisect.models import (
    WAITS_FOR_VERDICT,
    Bisection,
    BisectionChange,
    BisectionOperation,
    BisectionStep,
    Verdict,
)
from provisioner.bisect.permissions import can_change_bisection
from provisioner.engine.models import Operation
from provisioner.web.notices import Action
from provisioner.workspaces.models import Workspace


@dataclass(frozen=True, kw_only=True)
class BisectionStepLine:
    """One step, with the submitted change that it tests."""

    step: BisectionStep
    submitted: BisectionChange | None
    operation_id: int | None

    @property
    def snapshot_change(self) -> int:
        """The change of the snapshot that was cloned."""
        return self.step.workspace.snapshot.change

    @property
    def path(self) -> str:
        """Where its workspace is, "" before it is ready."""
        workspace = self.step.workspace
        is_ready = workspace.state == Workspace.State.READY
        return str(workspace.path) if is_ready else ""

    @property
    def is_open(self) -> bool:
        return not self.step.verdict

    @property
    def state(self) -> str:
        """The verdict, or whether it is running or waits for one."""
        is_moving = self.step.workspace.is_moving
        return self.step.verdict or ("running" if is_moving else "waiting")

    @property
    def verdict_text(self) -> str:
        if self.step.verdict:
            return str(Verdict(self.step.verdict).label)
        return "Under way" if self.step.workspace.is_moving else "None yet"


class BisectionOverview:
    """A bisection with its steps in the order they were made."""

    def __init__(self, bisection: Bisection, *, user: User) -> None:
        self.bisection = bisection
        self.can_change = can_change_bisection(user, bisection)

    @cached_property
    def _numbers(self) -> list[int]:
        return list(self.bisection.changes.values_list("change", flat=True))

    @cached_property
    def _named(self) -> dict[int, BisectionChange]:
        """The changes that are shown by name, of up to thousands."""
        shown = {step.change for step in self.bisection.steps.all()}
        found = self.bisection.changes.filter(
            change__in=shown | {self.bisection.first_bad or 0}
        )
        return {each.change: each for each in found}

    @property
    def actions(self) -> list[Action]:
        """What its reader can do with it as a whole."""
        if not (self.can_change and self.bisection.is_running):
            return []
        url = reverse("bisection-stop", args=[self.bisection.pk])
        return [Action(label="Stop", url=url, is_post=True, look="quiet-danger")]

    @cached_property
    def _search(self) -> search.Search | None:
        if not self._numbers:
            return None
        verdicts = {t.change: t.verdict for t in self.bisection.steps.all()}
        return search.search(self._numbers, verdicts)

    @property
    def changes_count(self) -> int | None:
        """The number of changes to search; None until the server was asked."""
        return len(self._numbers) if self.bisection.changes_read_at else None

    @property
    def suspects_count(self) -> int | None:
        return len(self._search.suspects) if self._search else None

    @property
    def shows_suspects(self) -> bool:
        return self.bisection.is_running and self._search is not None

    @property
    def steps_left(self) -> int | None:
        """The maximum number of steps left, this one included, if none is skipped."""
        return self._search.steps_left if self._search else None

    @property
    def first_bad(self) -> BisectionChange | None:
        return self._named.get(self.bisection.first_bad or 0)

    @cached_property
    def steps(self) -> list[BisectionStepLine]:
        steps = list(self.bisection.steps.all())
        operations = dict(
            Operation.objects.filter(
                kind=BisectionOperation.STEP,
                subject__in=[step.workspace.subject_id for step in steps],
            )
            .order_by("pk")
            .values_list("subject", "pk")
        )
        return [
            BisectionStepLine(
                step=step,
                submitted=self._named.get(step.change),
                operation_id=operations.get(step.workspace.subject_id),
            )
            for step in steps
        ]

    @property
    def current(self) -> BisectionStepLine | None:
        """The step that is running or waits for a verdict."""
        if not self.bisection.is_running:
            return None
        return next((line for line in self.steps if line.is_open), None)

    @property
    def waits_for_verdict(self) -> bool:
        is_waiting = self.bisection.status_code == WAITS_FOR_VERDICT
        return self.bisection.is_running and is_waiting

    @property
    def headline(self) -> str:
        """Its progress, as a sentence."""
        bisection, current = self.bisection, self.current
        if not bisection.is_running or bisection.status_message:
            return bisection.status_message
        if bisection.changes_read_at is None:
            return "Reading the changes in between from Perforce."
        if current is None:
            return "The next step starts soon."
        return (
            f"Change {current.step.change} is being tested: one of "
            f"{self.suspects_count:,} suspects is the first bad one."
        )

    @property
    def announcement(self) -> str:
        """What a screen reader announces when it changes."""
        return f"{self.bisection.get_state_display()}. {self.headline}"


def find_bisection(user: User, *, pk: int) -> BisectionOverview | None:
    """Return a bisection that the person may see, or None."""
    bisection = bisections_visible_to(user).filter(pk=pk).first()
    return None if bisection is None else BisectionOverview(bisection, user=user)


def bisections_visible_to(user: User) -> QuerySet[Bisection]:
    """Return one's own and team mates' bisections, with their steps."""
    steps = BisectionStep.objects.select_related(
        "workspace__snapshot", "workspace__site", "decided_by"
    )
    bisections = Bisection.objects.select_related("owner", "template").prefetch_related(
        Prefetch("steps", queryset=steps.order_by("pk"))
    )
    sees_all = may(user, Verb.SEE_BISECTION)
    return bisections if sees_all else bisections.filter(own_or_of_team(user))
