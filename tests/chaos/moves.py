"""The volume of a template that others clone goes to another aggregate and back."""

from __future__ import annotations

import threading
import time
from typing import Any

from django.db.models import QuerySet

from provisioner.catalog.models import MOVING_TEMPLATES, Template
from provisioner.engine.models import Operation
from provisioner.lib.names import tag_in
from provisioner.limits.sweeps import measure_site
from provisioner.moves.models import Move, MoveOperation, TemplatePlace
from provisioner.moves.sweeps import measure_places
from provisioner.moves.workflows import MOVE, PAUSE_MOVE, STOP_MOVE
from provisioner.sites.models import AggregateSpace
from tests.chaos.disturbing import Disturbed, Link
from tests.chaos.freezing import Place
from tests.chaos.judge import Fault, orphan
from tests.chaos.patience import from_database
from tests.chaos.sweeping import sweep_now
from tests.chaos.trial import SETTLED_WITHIN_SECONDS, Stuck, World

APART = 70_000_000
AGGREGATES = ("aggr1", "aggr2")
STEPS: dict[str, list[Place]] = {
    str(kind): [(str(kind), spec.name) for spec in steps]
    for kind, steps in (
        (MoveOperation.MOVE, MOVE),
        (MoveOperation.STOP, STOP_MOVE),
        (MoveOperation.PAUSE, PAUSE_MOVE),
    )
}
TRIED = 8
MEASURED_EVERY_SECONDS = 1.0
# One volume goes one way at a time.
_turn = threading.Lock()


class MoveTrial(Disturbed):
    """A move, at times stopped or paused, until the volume is where it was to go."""

    busy = ("volume_busy", "template_busy")
    steps = STEPS

    def __init__(self, world: World, *, link: Link, seed: int, template: str) -> None:
        super().__init__(world, link=link, key=APART + seed)
        rows = Template.objects.select_related("site")
        self.template = from_database(lambda: rows.get(name=template))

    def run(self) -> list[Fault]:
        """Move it, and insist on that."""
        try:
            with _turn:
                self._measure()
                self._move()
        except Stuck as stuck:
            self._blame(Fault(kind="stuck", what=str(stuck)))
        finally:
            self.world.board.end(self.key)
        return self.faults

    def _move(self) -> None:
        path = f"/templates/{self.template.pk}/move"
        [goal] = {*AGGREGATES} - {self._there()["aggregates"][0]["name"]}
        meanwhile = self.rng.choice(("", "", "stop", "pause"))
        self._disturb(
            MoveOperation.MOVE,
            "POST",
            path,
            {"aggregate": goal},
            interruption=("POST", f"{path}/{meanwhile}") if meanwhile else None,
        )
        for _ in range(TRIED):
            if self._aggregate_in_row() == goal and self._is_there(goal):
                self.world.outcomes["move: has arrived"] += 1
                return
            self._measure()
            self._ask("POST", path, {"aggregate": goal})
            self._settle()
            self._judge("move again")
        raise Stuck(f"not moved to {goal}: {self._state()}")

    def _measure(self) -> None:
        """Wait until it is known where it is, and what room there is.

        Raises: Stuck.
        """
        site_id = self.template.site_id
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while not self._is_measured():
            if time.monotonic() > ends:
                raise Stuck("the place of a template is not measured")
            sweep_now(measure_site, site_id=site_id)
            sweep_now(measure_places, site_id=site_id)
            time.sleep(MEASURED_EVERY_SECONDS)

    def _is_measured(self) -> bool:
        spaces = AggregateSpace.objects.filter(site=self.template.site_id)
        places = TemplatePlace.objects.filter(template=self.template.pk)
        is_known = from_database(
            lambda: spaces.count() == len(AGGREGATES) and places.exists()
        )
        return is_known and self._is_there(self._aggregate_in_row())

    def _aggregate_in_row(self) -> str:
        self._is_at_rest()
        return self.template.aggregate

    def _there(self) -> dict[str, Any]:
        tag = tag_in(self.template.volume_comment)
        [volume] = self.world.judge.ontap.volumes(tag=tag)
        return volume

    def _is_there(self, aggregate: str) -> bool:
        return bool(self._there()["aggregates"][0]["name"] == aggregate)

    # --- its row

    def _operations(self) -> QuerySet[Operation]:
        return Operation.objects.filter(
            subject__template=self.template.pk, kind__in=MoveOperation.values
        )

    def _is_at_rest(self) -> bool:
        fields = ["state", "aggregate", "volume_uuid"]
        from_database(lambda: self.template.refresh_from_db(fields=fields))
        running = self._operations().filter(state=Operation.State.RUNNING)
        return self.template.state not in MOVING_TEMPLATES and not from_database(
            running.exists
        )

    def _state(self) -> str:
        last = from_database(self._operations().order_by("-pk").first)
        return f"{last.kind} {last.state} {last.status_code}".strip() if last else ""

    def _look(self) -> list[Fault]:
        """Return what of the template is wrong, and where its row and ONTAP differ."""
        found = self.world.judge.check_template(self.template)
        last = from_database(self._operations().order_by("-pk").first)
        volume = self._there()
        state = volume.get("movement", {}).get("state")
        is_moving = state in (
            *("queued", "replicating", "cutover", "cutover_wait", "cutover_pending"),
        )
        if last is not None and last.state == Operation.State.SUCCEEDED:
            where = volume["aggregates"][0]["name"]
            if is_moving:
                found.append(orphan(f"{last.kind} is over, and it is being moved"))
            known = Move.objects.filter(template=self.template.pk)
            paused = known.filter(paused_at__isnull=False)
            if (state == "paused") != from_database(paused.exists):
                found.append(orphan(f"{last.kind}: in ONTAP the move is {state}"))
            if where != self.template.aggregate:
                found.append(orphan(f"in {where}, not in {self.template.aggregate}"))
        elif last is not None and not last.status_message:
            found.append(Fault(kind="stuck", what=f"{last.kind} ended without reason"))
        return found
