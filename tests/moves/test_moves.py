"""A template's volume goes to another aggregate, by a real worker on the lab."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.actions.lifecycle import template_delete
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.drift.models import FarSide, Finding
from provisioner.drift.sweeps.checks import run_drift_check
from provisioner.engine.models import Operation, Step
from provisioner.gateways import registry
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.polling import wait_until
from provisioner.lib.refusals import ActionRefused
from provisioner.limits import sweeps as limit_sweeps
from provisioner.moves.actions import (
    template_move,
    template_move_pause,
    template_move_resume,
    template_move_stop,
)
from provisioner.moves.models import TemplatePlace
from provisioner.moves.sweeps import measure, measure_places, sweep_places
from provisioner.sites.models import AggregateSpace
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.models import Workspace
from tests.support.drift_scene import long_ago, resolve
from tests.support.factories import UserFactory
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.ontap_scene import LabControl
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)

AWAY, HOME = "aggr2", "aggr1"


@pytest.fixture
def root(transactional_db: None) -> User:
    return UserFactory.create(username="root-admin", is_staff=True)


@pytest.fixture
def template(published_template: Template, control: LabControl) -> Iterator[Template]:
    """A template that was measured; it is back where it was afterwards."""
    before = control.settings()
    limit_sweeps.measure(published_template.site)
    measure(published_template.site)
    published_template.refresh_from_db()
    yield published_template
    control.set_settings(**before)
    ontap_of(published_template).start_move(
        published_template.volume_uuid, aggregate=HOME
    )
    wait_until(
        lambda: is_in(published_template, HOME) or None,
        limit_seconds=60,
    )


def ontap_of(template: Template) -> OntapGateway:
    return registry.ontap(template.site)


def is_in(template: Template, aggregate: str) -> bool:
    seen = ontap_of(template).get_move(template.volume_uuid)
    return seen.aggregate == aggregate and not seen.is_moving


def while_it_is_moved(template: Template, act: Callable[[], object]) -> None:
    """Act once ONTAP moves the volume, while a worker follows that to its end."""

    def meanwhile() -> None:
        uuid = template.volume_uuid
        wait_until(
            lambda: ontap_of(template).get_move(uuid).is_moving or None,
            limit_seconds=60,
        )
        act()

    acting = threading.Thread(target=meanwhile)
    acting.start()
    settle(template)
    acting.join()


def failure_of(operation: Operation) -> str:
    """Return the code with which an operation fails."""
    settle(operation.subject.template)
    operation.refresh_from_db()
    assert operation.state == Operation.State.FAILED
    return operation.status_code


def refusal(act: Callable[..., object], **arguments: object) -> str:
    with pytest.raises(ActionRefused) as refused:
        act(**arguments)
    return refused.value.code


def test_a_template_moves_and_its_clones_stay(template: Template, root: User) -> None:
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    old = settle(workspace_create(by=alice, template=template))
    before = sorted(path.name for path in old.path.iterdir())
    place = TemplatePlace.objects.get(template=template)
    assert place.aggregate == HOME
    limit_sweeps.measure(template.site)
    others = template.snapshots.get().clones_of_others  # left by earlier tests
    # The lab may measure the volume once more while it is moved.
    footprints = {place.footprint_bytes}

    operation = template_move(by=root, template=template, aggregate=AWAY)
    assert template_move(by=root, template=template, aggregate=AWAY) == operation
    assert refusal(template_build, by=root, template=template) == "template_busy"
    assert refusal(template_delete, by=root, template=template) == "template_busy"
    settle(template)

    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert is_in(template, AWAY)
    place = TemplatePlace.objects.get(template=template)
    assert (place.aggregate, place.tiering_policy) == (AWAY, "none")
    assert template.moves.get().needed_bytes in footprints | {place.footprint_bytes}
    kinds = Event.objects.filter(template=template).values_list("kind", flat=True)
    assert {"template_move_requested", "template_moved"} <= set(kinds)
    assert sorted(path.name for path in old.path.iterdir()) == before
    new = settle(workspace_create(by=alice, template=template))
    assert new.state == Workspace.State.READY, new.status_message
    volumes = {v.uuid: v.aggregate for v in ontap_of(template).list_volumes()}
    assert (volumes[old.volume_uuid], volumes[new.volume_uuid]) == (HOME, AWAY)
    limit_sweeps.measure(template.site)
    assert template.snapshots.get().clones_of_others <= others
    for row, aggregate in ((template, AWAY), (new, AWAY), (old, HOME)):
        row.refresh_from_db()
        assert row.aggregate == aggregate
    spaces = AggregateSpace.objects.filter(site=template.site)
    assert all(each.node_volumes and each.provisioned_bytes for each in spaces)
    spaces.filter(name=AWAY).update(available_bytes=0)
    with pytest.raises(ActionRefused, match=f"The aggregate {AWAY} of the site"):
        workspace_create(by=alice, template=template)
    its_tag_is_put_back(old, by=root)
    workspace_retire(by=alice, workspace=old, unsubmitted="discard")
    assert settle(old).state == Workspace.State.TRASHED, old.status_message
    workspace_restore(by=alice, workspace=old)
    assert settle(old).state == Workspace.State.READY, old.status_message
    workspace_retire(by=alice, workspace=old, unsubmitted="discard")
    settle(old)
    workspace_purge(by=alice, workspace=old)
    assert settle(old).state == Workspace.State.RETIRED, old.status_message
    again = {"by": root, "template": template, "aggregate": AWAY}
    assert refusal(template_move, **again) == "same_aggregate"


def its_tag_is_put_back(workspace: Workspace, *, by: User) -> None:
    """The volume that the move has left as its parent is in no list of ONTAP."""
    ontap = registry.ontap(workspace.site)
    ontap.set_volume_comment(workspace.volume_uuid, comment="")
    long_ago()
    run_drift_check(workspace.site, system=FarSide.ONTAP)
    found = Finding.objects.get(
        workspace=workspace, kind=Finding.Kind.VOLUME_UNTAGGED, resolved_at=None
    )
    resolve(found, by)
    seen = ontap.get_volume(workspace.volume_uuid)
    assert seen.comment == workspace.volume_comment


def test_a_lost_reply_and_a_killed_worker_move_once(
    template: Template, root: User, lab: Lab
) -> None:
    lab.break_ontap(
        {
            "method": "PATCH",
            "path": "/api/storage/volumes*",
            "drop": True,
            "when": "after",
            "times": 1,
        }
    )
    operation = template_move(by=root, template=template, aggregate=AWAY)
    settle(template)
    lab.break_ontap()

    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    step = Step.objects.get(name="move", operation=operation)
    assert step.attempt == 2
    for again in Step.objects.filter(operation=operation):
        perform_again(again)


def test_a_move_is_stopped_and_begins_again(
    template: Template, root: User, control: LabControl
) -> None:
    control.set_settings(move_seconds=120.0)
    of_it = {"by": root, "template": template}
    assert refusal(template_move_stop, **of_it) == "no_move_to_stop"
    operation = template_move(by=root, template=template, aggregate=AWAY)

    while_it_is_moved(template, lambda: template_move_stop(by=root, template=template))

    settle(template)
    operation.refresh_from_db()
    assert operation.state == Operation.State.CANCELED
    assert is_in(template, HOME)
    assert Event.objects.filter(kind="template_move_stopped").exists()
    control.set_settings(move_seconds=0.1)
    template_move(by=root, template=template, aggregate=AWAY)
    settle(template)
    assert is_in(template, AWAY)


def test_a_move_is_paused_resumed_and_stopped_while_paused(
    template: Template, root: User, control: LabControl
) -> None:
    control.set_settings(move_seconds=120.0)
    assert (
        refusal(template_move_pause, by=root, template=template) == "no_move_to_pause"
    )
    assert (
        refusal(template_move_resume, by=root, template=template) == "no_move_to_resume"
    )
    template_move(by=root, template=template, aggregate=AWAY)

    while_it_is_moved(template, lambda: template_move_pause(by=root, template=template))

    settle(template)
    ontap, uuid = ontap_of(template), template.volume_uuid
    copied = ontap.get_move(uuid)
    assert copied.is_paused
    assert template.moves.get().paused_at is not None
    assert (
        refusal(template_move, by=root, template=template, aggregate="aggr9")
        == "move_is_paused"
    )
    for again in Step.objects.filter(operation__kind="template_move_pause"):
        perform_again(again)

    template_move_resume(by=root, template=template)
    while_it_is_moved(template, lambda: template_move_pause(by=root, template=template))
    settle(template)
    seen = ontap.get_move(uuid)
    assert (seen.is_paused, seen.started_at) == (True, copied.started_at)
    template_move_stop(by=root, template=template)
    settle(template)
    assert ontap.get_move(uuid).move_state == "aborted"
    assert not template.moves.filter(paused_at__isnull=False).exists()
    control.set_settings(move_seconds=0.1)
    template_move(by=root, template=template, aggregate=AWAY)
    settle(template)
    assert is_in(template, AWAY)


@pytest.mark.parametrize(
    ("state", "code"), [("paused", "move_paused"), ("aborted", "move_aborted")]
)
def test_what_somebody_does_in_ontap_is_said_and_goes_on(
    state: str, code: str, template: Template, root: User, control: LabControl
) -> None:
    control.set_settings(move_seconds=120.0)
    ontap, uuid = ontap_of(template), template.volume_uuid
    operation = template_move(by=root, template=template, aggregate=AWAY)

    while_it_is_moved(
        template,
        lambda: ontap._write(
            "PATCH", f"/storage/volumes/{uuid}", body={"movement": {"state": state}}
        ),
    )

    operation.refresh_from_db()
    assert operation.status_code == code
    assert Event.objects.filter(kind="template_move_failed").exists()
    control.set_settings(move_seconds=0.1)
    template_move(by=root, template=template, aggregate=AWAY)
    settle(template)
    assert is_in(template, AWAY)


@pytest.mark.parametrize(
    ("ends", "code"),
    [("failed", "move_failed"), ("full", "no_room_to_move")],
)
def test_a_move_that_ontap_cannot_do_leaves_all_as_it_was(
    ends: str,
    code: str,
    template: Template,
    root: User,
    control: LabControl,
) -> None:
    if ends == "full":  # since it was measured
        control.set_settings(aggregate_bytes={AWAY: 1 << 10})
    else:
        control.set_settings(move_seconds=0.1, move_ends=ends)

    operation = template_move(by=root, template=template, aggregate=AWAY)

    assert failure_of(operation) == code
    template.refresh_from_db()
    assert template.state == Template.State.READY, template.status_message
    assert is_in(template, HOME)


def test_what_is_known_refuses_at_once(template: Template, root: User) -> None:
    move = {"by": root, "template": template}
    assert refusal(template_move, **move, aggregate="aggr9") == "aggregate_not_usable"
    AggregateSpace.objects.filter(name=AWAY).update(available_bytes=0)
    assert refusal(template_move, **move, aggregate=AWAY) == "no_room_to_move"
    limit_sweeps.measure(template.site)
    measure_places(template.site_id)
    Template.objects.filter(pk=template.pk).update(state=Template.State.BUILDING)
    assert refusal(template_move, **move, aggregate=AWAY) == "volume_busy"
    TemplatePlace.objects.all().delete()
    assert refusal(template_move, **move, aggregate=AWAY) == "nothing_to_move"
    Template.objects.filter(pk=template.pk).update(state=Template.State.READY)
    sweep_places(timestamp=0)


def test_a_volume_that_is_not_ours_stays_where_it_is(
    template: Template, root: User
) -> None:
    ontap, uuid = ontap_of(template), template.volume_uuid
    comment = ontap.get_volume(uuid).comment
    ontap.set_volume_comment(uuid, comment="")
    operation = template_move(by=root, template=template, aggregate=AWAY)

    assert failure_of(operation) == "volume_is_not_ours"

    ontap.set_volume_comment(uuid, comment=comment)
    assert is_in(template, HOME)
