"""How provisioning went: durations and results of its steps, or its failure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from provisioner.catalog.models import Snapshot
from provisioner.demo.company.operations import Course
from provisioner.demo.company.studio import Studio
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.provision import Clone, Flushed

FLUSHED_A_SECOND = 2500
OWNED_A_SECOND = 4200
RARELY = 0.1
TROUBLES = (
    (
        "access",
        "not_readable",
        "{user} may not read //depot/aurora/console/Source/Platform/... in Perforce, "
        "which is part of this template. Ask an administrator of Perforce for read "
        "access, then try again; or choose a template without it.",
    ),
    (
        "access",
        "p4_user_unknown",
        "Perforce does not know the user {user}. Create it, or correct the Perforce "
        "name of the account. Then retry.",
    ),
    (
        "clone",
        "ontap_refused",
        "ONTAP refused to create the clone (917536): There is not enough space in "
        "aggregate aggr1.",
    ),
    (
        "owner",
        "ownership_incomplete",
        "3 entries could not be given to their owner: "
        "'Intermediate/Build/.lock': Operation not permitted.",
    ),
    (
        "flush",
        "perforce_unreachable",
        "Perforce did not answer within 60 seconds (sync -k). It was tried for 1,800 "
        "seconds.",
    ),
)


class Provisioning:
    """Courses of operations that make workspaces."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self.haves: dict[int, dict[str, Any]] = {}

    def course(self, workspace: Workspace) -> Course:
        """Return how it went, given the workspace's current state."""
        seconds = self._seconds(workspace.snapshot)
        results = {
            Clone.step: asdict(Clone(workspace.volume_uuid)),
            Flushed.step: self._have_of(workspace.snapshot),
        }
        if workspace.state == Workspace.State.PROVISIONING:
            return Course(stands_at="access", seconds=seconds)
        if workspace.state == Workspace.State.FAILED:
            step, code, message = self._studio.chance.choice(TROUBLES[-3:])
            if self._studio.happens(RARELY):
                step, code, message = self._studio.chance.choice(TROUBLES[:2])
            if step == "flush" and not workspace.client_name:
                step = "owner"
            return Course(
                seconds=seconds,
                results=results,
                fails_at=step,
                code=code,
                message=message.format(user=workspace.p4_user),
            )
        return Course(seconds=seconds, results=results)

    def settle(self, snapshots: list[Snapshot]) -> None:
        """Update the flush results of these snapshots to their final pins."""
        for snapshot in snapshots:
            if snapshot.pk in self.haves:
                self.haves[snapshot.pk] |= _have(snapshot)

    def _seconds(self, snapshot: Snapshot) -> dict[str, float]:
        return {
            "clone": self._studio.chance.uniform(0.8, 2.6),
            "owner": 0.4 + snapshot.have_count / OWNED_A_SECOND,
            "flush": 0.3 + snapshot.have_count / FLUSHED_A_SECOND,
        }

    def _have_of(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return one object for all flushes of a snapshot: its pin may come later."""
        return self.haves.setdefault(snapshot.pk, _have(snapshot))


def _have(snapshot: Snapshot) -> dict[str, Any]:
    have = Flushed(have_count=snapshot.have_count, have_digest=snapshot.have_digest)
    return asdict(have)
