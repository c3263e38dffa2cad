"""Bisections: steps one after another, each in a clone."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.refusals import require_complete
from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.bisect import search
from provisioner.bisect.models import (
    INTERRUPTED,
    WAITS_FOR_VERDICT,
    Bisection,
    BisectionOperation,
    BisectionStep,
    Verdict,
)
from provisioner.bisect.permissions import can_change_bisection
from provisioner.bisect.refusals import (
    BisectionOver,
    NotBeingTried,
    TooManyBisections,
    TooManyCommands,
)
from provisioner.bisect.steps import Ran
from provisioner.catalog.models import Template
from provisioner.catalog.queries import snapshots_for_bisection
from provisioner.catalog.refusals import NoSnapshot, require_not_archived
from provisioner.engine.deferring import defer_once
from provisioner.engine.models import Operation
from provisioner.engine.queues import PERFORCE
from provisioner.engine.results import find_result
from provisioner.engine.starting import start_operation
from provisioner.leases.actions.leases import insert_with_usual_lease
from provisioner.lib import clocks
from provisioner.lib.databases import pass_one_by_one
from provisioner.lib.refusals import ActionRefused, InvalidRequest
from provisioner.limits.admission import check_admission
from provisioner.routing.kinds import Purpose as RoutedPurpose
from provisioner.workspaces.actions.making import (
    one_request_at_a_time,
    snapshot_to_clone,
)
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Unsubmitted, Workspace

PURPOSE = Workspace.Purpose.BUILD
LONGEST_COMMAND = 10_000
LARGEST_CHANGE = 2**31 - 1
# A command that takes its worker with it would do so each time.
CLONES_OF_ONE_CHANGE = 3

READ_CHANGES = "read_changes_to_bisect"


def bisection_start(
    *, by: User, template: Template, good: int, bad: int, command: str = ""
) -> Bisection:
    """Search for the first bad change after `good` and up to `bad`.

    The command runs in a clone for each step, as `by`; without one people give the
    verdicts. A repeated call returns the running search.

    Raises: InvalidRequest, OutOfScope, AccountIncomplete, TemplateArchived, NoSnapshot,
    TooManyBisections.
    """
    if not 0 < good < bad <= LARGEST_CHANGE:
        raise InvalidRequest.at("bad", "Give a change later than the good one.")
    if "\0" in command or len(command) > LONGEST_COMMAND:
        raise InvalidRequest(f"A command has up to {LONGEST_COMMAND:,} characters.")
    require_complete(by)
    permissions.require_in_scope(by, template=template, purpose=PURPOSE)
    require_not_archived(template)
    if not snapshots_for_bisection(template):
        raise NoSnapshot(template=template.name)
    asked = {
        "owner": by,
        "token": by.token,
        "template": template,
        "good": good,
        "bad": bad,
        "command": command.strip(),
    }
    with transaction.atomic():
        one_request_at_a_time(by)
        earlier = Bisection.objects.filter(**asked, state=Bisection.State.RUNNING)
        bisection = earlier.first()
        if bisection is None:
            _check_running(by)
            bisection = Bisection.objects.create(**asked)
            record_event(
                bisection,
                kind="bisection_requested",
                message="Started a search for the first bad change of "
                f"{template.name} between {good} and {bad}.",
                actor=by,
            )
            defer_reading(bisection)
    return bisection


def defer_reading(bisection: Bisection) -> None:
    """Queue reading the changes, unless it is queued; one at a time per person."""
    read = app.configure_task(
        READ_CHANGES,
        queue=PERFORCE,
        lock=f"{READ_CHANGES}.of.{bisection.owner_id}",
        queueing_lock=f"{READ_CHANGES}.{bisection.pk}",
    )
    defer_once(read, bisection_id=bisection.pk)


def _check_running(owner: User) -> None:
    """Raises: TooManyBisections."""
    running = Bisection.objects.filter(owner=owner, state=Bisection.State.RUNNING)
    found = list(running.select_related("template").order_by("pk"))
    allowed = settings.BISECTIONS_PER_PERSON
    if len(found) >= allowed:
        which = ", ".join(
            f"{each.pk} of {each.template.name} ({each.good} to {each.bad})"
            for each in found
        )
        raise TooManyBisections(
            owner=owner, running=len(found), allowed=allowed, which=which
        )


def bisection_verdict(
    *, by: User, bisection: Bisection, change: int, verdict: str
) -> Bisection:
    """Give a verdict on the current change, or test it again in a new clone.

    Repeating a verdict changes nothing.

    Raises: NotAllowed, InvalidRequest, BisectionOver, NotBeingTried.
    """
    permissions.require(can_change_bisection(by, bisection))
    if verdict not in Verdict.values:
        raise InvalidRequest(f"There is no verdict “{verdict}”.")
    with transaction.atomic():
        bisection = _locked(bisection.pk)
        step = bisection.steps.filter(verdict="").first()
        if step is None or step.change != change or not bisection.is_running:
            if bisection.steps.filter(change=change, verdict=verdict).exists():
                return bisection
            if not bisection.is_running:
                raise BisectionOver
            raise NotBeingTried(change=change)
        _decide(step, verdict, by=by, reason=f"{by} said so.")
        _try_next(bisection)
    return bisection


def bisection_stop(*, by: User, bisection: Bisection) -> Bisection:
    """Stop a bisection and delete its clone. One that has ended does not change.

    Raises: NotAllowed.
    """
    permissions.require(can_change_bisection(by, bisection))
    with transaction.atomic():
        bisection = _locked(bisection.pk)
        if bisection.is_running:
            end_bisection(
                bisection,
                Bisection.State.STOPPED,
                code="stopped",
                message=f"{by} stopped it.",
                by=by,
            )
    return bisection


def bisection_go_on(bisection_id: int) -> None:
    """Record the current step if it has ended, and start the next.

    Safe to repeat. Nothing happens before the changes have been read.
    """
    with transaction.atomic():
        bisection = _locked(bisection_id)
        if not bisection.is_running or bisection.changes_read_at is None:
            return
        step = bisection.steps.filter(verdict="").first()
        if step is None or _has_settled(bisection, step):
            _try_next(bisection)


def end_bisection(
    bisection: Bisection,
    to: Bisection.State,
    *,
    message: str,
    code: str = "",
    first_bad: int | None = None,
    by: User | None = None,
) -> None:
    """End a locked bisection with an event, and retire its clone."""
    bisection.state, bisection.first_bad = to, first_bad
    bisection.status_code, bisection.status_message = code, message
    bisection.ended_at = clocks.database_now()
    bisection.save()
    record_event(bisection, kind=f"bisection_{to.value}", message=message, actor=by)
    for step in bisection.steps.filter(verdict=""):
        _put_away(step)


def _locked(bisection_id: int) -> Bisection:
    return (
        Bisection.objects.select_for_update(of=("self",))
        .select_related("owner", "token", "template__site__perforce_server")
        .get(pk=bisection_id)
    )


def _has_settled(bisection: Bisection, step: BisectionStep) -> bool:
    """Record the verdict of a step that has ended, or why a person must decide."""
    operation = step.workspace.operations.filter(kind=BisectionOperation.STEP).first()
    if operation is None or operation.state == Operation.State.RUNNING:
        _say(bisection)
        return False
    ran = find_result(operation, Ran)
    if ran is not None and ran.verdict:
        _decide(step, ran.verdict, reason=ran.reason)
        return True
    if operation.status_code == INTERRUPTED:
        tried = bisection.steps.filter(change=step.change).count()
        if tried < CLONES_OF_ONE_CHANGE:
            _decide(step, Verdict.AGAIN, reason=operation.status_message)
            return True
    why = ran.reason if ran else operation.status_message
    if step.workspace.is_put_away:
        why = f"{why} Its clone is gone.".strip()
    _say(
        bisection,
        code=WAITS_FOR_VERDICT,
        message=f"Change {step.change} waits for a verdict. {why}".strip(),
    )
    return False


def _say(bisection: Bisection, *, code: str = "", message: str = "") -> None:
    if (bisection.status_code, bisection.status_message) != (code, message):
        bisection.status_code, bisection.status_message = code, message
        bisection.save(update_fields=["status_code", "status_message"])


def _decide(
    step: BisectionStep, verdict: str, *, reason: str, by: User | None = None
) -> None:
    step.verdict, step.reason, step.decided_by = verdict, reason, by
    step.decided_at = clocks.database_now()
    step.save()
    word = Verdict(verdict).label.lower()
    record_event(
        step.bisection,
        kind="bisection_step_decided",
        message=f"Change {step.change}: {word}. {reason}",
        actor=by,
        data={"change": step.change, "verdict": verdict},
    )
    _put_away(step)


def _put_away(step: BisectionStep) -> None:
    """Retire and purge the clone of a step, now or when its lease is checked.

    The clone holds no work, since nothing can be submitted from it.
    """
    workspace, owner = step.workspace, step.bisection.owner
    if workspace.is_put_away:
        return
    Workspace.objects.filter(pk=workspace.pk).update(expires_at=clocks.database_now())
    workspace_retire(
        by=owner if owner.is_active else system_user(),
        workspace=workspace,
        unsubmitted=Unsubmitted.DISCARD,
        purge=True,
        reason="Its step has ended.",
    )


def _try_next(bisection: Bisection) -> None:
    """Start the next step, or end the search if there is none."""
    changes = list(bisection.changes.values_list("change", flat=True))
    verdicts = dict(
        bisection.steps.exclude(verdict__in=("", Verdict.AGAIN)).values_list(
            "change", "verdict"
        )
    )
    found = search.search(changes, verdicts)
    if found.first_bad is not None:
        bad = bisection.changes.get(change=found.first_bad)
        end_bisection(
            bisection,
            Bisection.State.FOUND,
            message=f"First bad change {bad.change} by {bad.user}: {bad.title}",
            first_bad=found.first_bad,
        )
    elif found.next_change is None:
        suspects = ", ".join(map(str, found.suspects))
        end_bisection(
            bisection,
            Bisection.State.UNDECIDED,
            message=f"The first bad change is one of {suspects}: those before the last "
            "were skipped.",
        )
    else:
        try:
            with transaction.atomic():
                _begin(bisection, change=found.next_change)
        except ActionRefused as refusal:
            # Room, or a snapshot, may be there a moment later: the sweep tries again.
            _say(
                bisection,
                code=refusal.code,
                message=f"The next step waits. {refusal.sentence}",
            )
        else:
            _say(bisection)


def _check_commands(owner: User) -> None:
    """Refuse a command beyond the limit per person, as others use the same workers.

    Waiting searches are served in the order of request. A search that has begun
    continues before others of that person.

    Raises: TooManyCommands.
    """
    pass_one_by_one("bisection_commands", owner.pk)
    under_way = BisectionStep.objects.filter(
        bisection__owner=owner,
        verdict="",
        workspace__subject__operations__kind=BisectionOperation.STEP,
        workspace__subject__operations__state=Operation.State.RUNNING,
    ).exclude(bisection__command="")
    running, allowed = under_way.count(), settings.BISECTION_COMMANDS_PER_PERSON
    if running >= allowed:
        raise TooManyCommands(running=running, owner=owner, allowed=allowed)


def _begin(bisection: Bisection, *, change: int) -> None:
    """Request a clone of the nearest snapshot, updated to the change.

    Raises: NotAllowed, AccountIncomplete, NoSnapshot, SnapshotGone, NameTaken,
    LimitReached, TooManyCommands.
    """
    owner, template = bisection.owner, bisection.template
    owner.token = bisection.token
    permissions.require(owner.is_active)
    permissions.require_in_scope(owner, template=template, purpose=PURPOSE)
    require_complete(owner)
    nearest = search.nearest(snapshots_for_bisection(template), change=change)
    if nearest is None:
        raise NoSnapshot(template=template.name)
    site = template.site
    snapshot = snapshot_to_clone(template, nearest, site=site)
    check_admission(
        by=owner,
        template=template,
        snapshot=snapshot,
        site=site,
        purpose=PURPOSE,
    )
    if bisection.command:
        _check_commands(owner)
    workspace = insert_with_usual_lease(
        by=owner,
        owner=owner,
        token=bisection.token,
        template=template,
        snapshot=snapshot,
        site=site,
        name=f"bisect-{bisection.pk}-{bisection.steps.count() + 1}",
        purpose=PURPOSE,
        routed_as=RoutedPurpose.BISECTION,
    )
    BisectionStep.objects.create(
        bisection=bisection, workspace=workspace, change=change
    )
    record_event(
        workspace,
        kind="workspace_requested",
        message=f"Requested a clone of {template.name} at change {snapshot.change}, "
        f"to test change {change} in it.",
        actor=owner,
        data={"bisection": bisection.pk},
    )
    start_operation(BisectionOperation.STEP, by=owner, about=workspace)
