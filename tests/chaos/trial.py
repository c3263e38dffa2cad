"""One trial: what a person asks for, what breaks meanwhile, what must hold after."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.models import Unsubmitted, Workspace
from tests.chaos import faultboard
from tests.chaos.edits import Desk
from tests.chaos.faultboard import FaultBoard
from tests.chaos.freezing import SLOW, Freezer, Place, steps_of
from tests.chaos.judge import Fault, Judge
from tests.chaos.lookout import Lookout, Moment
from tests.chaos.patience import from_database
from tests.chaos.people import Person
from tests.chaos.servers import Servers
from tests.chaos.witness import Perforce

W = Workspace.State
FREEZE = "freeze"
MAKES = ("create", "transfer", "clone", "recover")
ERRANDS = ("check", "split")
WHAT_CHANGES = (
    *("state", "status_code", "status_message", "ready_at"),
    *("split_at", "expires_at", "keep_reason"),
)
# Others kill what it needs, too, again and again, on a machine that is busy.
SETTLED_WITHIN_SECONDS = 300.0
MOMENT_WITHIN_SECONDS = 12.0
# A fault may meet the requests of other trials as well; none stays for long.
REMOVALS_TRIED = 12
# How many ask for an older snapshot, so that their work can be transferred.
OLDER = 0.4
# How often each is killed or stopped: a database takes everybody's work down with it.
WEIGHTS = {
    **{"worker-1": 6, "worker-2": 6, FREEZE: 3},
    **{"cut": 1, "clock": 1},
    **{"web": 2, "ontap": 3, "perforce": 3, "backend": 1, "database": 1, "restart": 1},
}


@dataclass(frozen=True, kw_only=True)
class World:
    """What all trials share."""

    servers: Servers
    board: FaultBoard
    judge: Judge
    lookout: Lookout
    freezer: Freezer
    templates: tuple[str, ...]
    admin: Person
    outcomes: Counter[str]


Errand = Callable[["Trial", int], list[Fault]]
"""What a trial has done beside its own story, counted from 1."""
NONE: Mapping[str, Errand] = {}


class Stuck(Exception):
    """Something does not settle; the sentence says what is known of it."""


class Trial:
    """A person's workspace from its beginning to its end."""

    def __init__(
        self,
        world: World,
        *,
        seed: int,
        person: Person,
        p4: Perforce,
        errands: Mapping[str, Errand] = NONE,
    ) -> None:
        self.world = world
        self.errands = errands
        self.seed = seed
        self.person = person
        self.p4 = p4
        self.rng = random.Random(seed)
        self.name = f"chaos-{seed}"
        self.workspace: Workspace | None = None
        self.desk: Desk | None = None
        self.history: list[str] = []
        self.faults: list[Fault] = []
        self._errands_run = 0

    def run(self) -> list[Fault]:
        """Do everything; return what was found wrong."""
        try:
            self._make()
            self._work()
            for _ in range(self.rng.randint(1, 4)):
                request = self._next_request()
                if request is None:
                    break
                if request[0] in self.errands:
                    self._run_errand(request[0])
                else:
                    self._disturbed(*request)
            self._remove()
        except Stuck as stuck:
            self._blame(Fault(kind="stuck", what=str(stuck)))
        finally:
            self.world.board.end(self.seed)
        return self.faults

    def _blame(self, *faults: Fault) -> None:
        said = "; ".join(self.history)
        self.faults += [
            Fault(kind=fault.kind, what=f"{fault.what} [{said}]") for fault in faults
        ]

    # --- the story

    def _make(self) -> None:
        rng = self.rng
        body = {
            "template": rng.choice(self.world.templates),
            "name": self.name,
            "purpose": "build" if rng.random() < 0.12 else "development",
            "reconcile": rng.random() < 0.2,
        }
        if rng.random() < OLDER:
            body |= self._older()
        self._disturbed("create", "POST", "/workspaces", body)

    def _older(self) -> dict[str, str]:
        """Return what asks for a snapshot that has a newer one, for transfers."""
        newest = Snapshot.objects.there().order_by("-pk")
        built = newest.filter(template__name=self.world.templates[-1])
        names = from_database(lambda: list(built.values_list("name", flat=True)[:2]))
        if len(names) < 2:
            return {}
        return {"template": self.world.templates[-1], "snapshot": names[1]}

    def _work(self) -> None:
        """Leave sentinel edits, once there is something to work in."""
        workspace = self._reloaded()
        if (
            self.desk is not None
            or workspace.state != W.READY
            or not workspace.client_name
        ):
            return
        with self.world.servers.calm.at_work():
            desk = Desk(self.person, workspace, p4=self.p4, seed=self.seed)
            desk.work()
        self.desk = desk
        self._judge("work")

    def _next_request(self) -> tuple[str, str, str, Any] | None:
        """Return what to ask for next, given how things stand."""
        workspace, rng = self._reloaded(), self.rng
        path = f"/workspaces/{workspace.pk}"
        restore = ("restore", "POST", f"{path}/restore", None)
        retry = ("retry", "POST", f"{path}/retry", None)
        choices: dict[str, list[tuple[str, str, str, Any]]] = {
            W.READY: [self._retirement(), self._retirement(), *self._errands()],
            W.TRASHED: [restore, restore, ("purge", "POST", f"{path}/purge", None)],
            W.FAILED: [retry, retry, self._retirement()],
        }
        if workspace.state == W.FAILED and workspace.ready_at is not None:
            choices[W.FAILED].append(restore)
        possible = choices.get(workspace.state)
        return rng.choice(possible) if possible else None

    def _errands(self) -> list[tuple[str, str, str, Any]]:
        """Return what leaves a workspace with work in it as it is."""
        path = f"/workspaces/{self._id}"
        if self.desk is None:
            return []
        names = (*ERRANDS, *self.errands)
        return [(name, "POST", f"{path}/{name}", None) for name in names]

    def _run_errand(self, name: str) -> None:
        """Have what has a story of its own; this one stays as it is."""
        self._errands_run += 1
        self.history.append(name)
        self._blame(*self.errands[name](self, self._errands_run))
        self._judge(name)

    def _retirement(self, *, settles: bool = False) -> tuple[str, str, str, Any]:
        """Return a retirement. One that `settles` is not refused for what it finds."""
        rng = self.rng
        choices = [
            Unsubmitted.RESCUE,
            Unsubmitted.RESCUE,
            Unsubmitted.RESCUE,
            Unsubmitted.DISCARD,
        ]
        if not settles:
            choices.append(Unsubmitted.REFUSE)
        unsubmitted, purge = rng.choice(choices), rng.random() < 0.3
        query = f"unsubmitted={unsubmitted}&purge={str(purge).lower()}"
        path = f"/workspaces/{self._id}?{query}"
        name = f"retire {unsubmitted}{' and purge' if purge else ''}"
        return (name, "DELETE", path, None)

    def _remove(self) -> None:
        """Remove it as its owner would: that works always, sooner or later."""
        for _ in range(REMOVALS_TRIED):
            workspace = self._reloaded()
            if workspace.state == W.RETIRED:
                return
            path = f"/workspaces/{workspace.pk}"
            request = {
                W.TRASHED: ("purge", "POST", f"{path}/purge", None),
                W.FAILED: self.rng.choice(
                    [
                        ("retry", "POST", f"{path}/retry", None),
                        self._retirement(settles=True),
                    ]
                ),
            }.get(W(workspace.state), self._retirement(settles=True))
            self._ask(*request)
            self._settle()
            self._judge(f"remove by {request[0]}")
        workspace = self._reloaded()
        if workspace.state != W.RETIRED:
            raise Stuck(
                f"not removed in {REMOVALS_TRIED} tries: {workspace.state}, "
                f"{workspace.status_message}"
            )

    # --- one request and its trouble

    def _disturbed(self, name: str, method: str, path: str, body: Any) -> None:
        """Ask for something, break something meanwhile, wait, judge."""
        rng = self.rng
        before = self._last_operation_id()
        trouble = rng.choice(("kill", "kill", "fault", "fault", "both", "both", "none"))
        kind = rng.choice(faultboard.KINDS)
        fault = faultboard.draw(kind, rng)
        victim = rng.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        down_seconds = rng.choice((0.0, 0.3, 1.5))
        place, is_done = rng.choice(steps_of(name)), rng.random() < 0.5
        begins_with_fault = rng.random() < 0.5
        # A request that is canceled while it is made leaves nothing to work in.
        share = 0.12 if name in MAKES else 0.25
        interruption = self._interruption(name) if rng.random() < share else None
        has_fault, has_kill = trouble in ("fault", "both"), trouble in ("kill", "both")

        freezes = has_kill and victim == FREEZE
        if freezes:
            place, is_done = self.world.freezer.next_of(steps_of(name)), False
            has_fault = False
            self.world.board.put(self.seed, SLOW)
        step = place[1]
        self.history.append(name)
        if has_fault and begins_with_fault:
            self._note(f"{kind} from the start")
            self.world.board.put(self.seed, fault)
        self._ask(name, method, path, body, times=2 if rng.random() < 0.2 else 1)
        when = f"{'after' if is_done else 'in'} {step}"
        if self.workspace is None:
            self._note("there is nothing newer")
            self.world.board.end(self.seed)
            return
        if has_kill or interruption or (has_fault and not begins_with_fault):
            self._wait_for(step, is_done=is_done, later_than=before)
        if has_fault and not begins_with_fault:
            self._note(f"{kind} {when}")
            self.world.board.put(self.seed, fault)
        if freezes:
            self._freeze(place, later_than=before)
        elif has_kill:
            self._note(f"kill {victim} {when}, down {down_seconds} s")
            self.world.servers.kill(victim, down_seconds=down_seconds)
        if interruption is not None:
            self._note(f"{interruption[0]} {when}")
            self._ask(*interruption)
        self._settle()
        self.world.board.end(self.seed)
        self._judge(name)

    def _freeze(self, place: Place, *, later_than: int) -> None:
        """Stop the worker that is at a step of ours."""
        kind, name = place
        steps = Step.objects.filter(
            operation__subject__workspace=self._id,
            operation_id__gt=later_than,
            operation__kind=kind,
            name=name,
        )
        who = self.world.freezer.freeze_in(steps, place=place)
        self.world.board.end(self.seed)
        self._note(f"freeze {who or 'nobody'} in {': '.join(place)}")

    def _note(self, what: str) -> None:
        self.history.append(f"({what})")

    def _interruption(self, name: str) -> tuple[str, str, str, Any] | None:
        """Return a request that crosses the one under way: a change of mind."""
        if name in ("create", "clone", "recover"):
            return ("cancel", "DELETE", "", None)
        if name == "check":
            return self._retirement()
        path = f"/workspaces/{self._id}"
        if name == "split" and self.rng.random() < 0.7:
            return ("stop split", "POST", f"{path}/split/stop", None)
        if name == "split":
            return self._retirement()
        if name.startswith("retire"):
            return ("restore", "POST", f"{path}/restore", None)
        if name == "restore":
            return self._retirement()
        return ("retry", "POST", f"{path}/retry", None)

    def _ask(
        self, name: str, method: str, path: str, body: Any, *, times: int = 1
    ) -> None:
        if name == "cancel":
            path = f"/workspaces/{self._id}"
        answer = self._asker(name).ask(
            method,
            path,
            body,
            key=f"{name}-{self.seed}-{len(body)}" if body else "",
            times=times,
        )
        if name in MAKES:
            if name == "transfer" and answer.status == 409:
                return
            if "snapshot" in body and answer.status in (404, 409):
                return self._ask(name, method, path, _without_snapshot(body))
            # 201: it was asked for again, and made meanwhile.
            if answer.status not in (200, 201, 202):
                raise Stuck(f"asked for a workspace: {answer.status} {answer.body}")
            self.workspace = from_database(
                lambda: Workspace.objects.select_related(
                    "site", "template", "snapshot", "owner"
                ).get(pk=answer.body["id"])
            )

    def _asker(self, name: str) -> Person:
        return self.person

    @property
    def _id(self) -> int:
        assert self.workspace is not None
        return int(self.workspace.pk)

    def _reloaded(self) -> Workspace:
        workspace = self.workspace
        assert workspace is not None
        # The rows that it refers to stay at hand, even where the database is not.
        from_database(lambda: workspace.refresh_from_db(fields=WHAT_CHANGES))
        return workspace

    # --- waiting

    def _last_operation_id(self) -> int:
        if self.workspace is None:
            return 0
        last = from_database(
            lambda: (
                Operation.objects.filter(subject__workspace=self._id)
                .order_by("-pk")
                .values_list("pk", flat=True)
                .first()
            )
        )
        return last or 0

    def _wait_for(self, name: str, *, is_done: bool, later_than: int) -> None:
        """Wait until a step begins or has ended, or the workspace stands still."""
        moment = Moment(
            workspace_id=self._id, step=name, is_done=is_done, later_than=later_than
        )
        self.world.lookout.wait_for_moment(moment, seconds=MOMENT_WITHIN_SECONDS)

    def _settle(self) -> None:
        """Wait until nothing moves.

        Raises: Stuck where that takes too long.
        """
        if not self.world.lookout.wait_until_settled(
            self._id, seconds=SETTLED_WITHIN_SECONDS
        ):
            raise Stuck(self._why_stuck())

    def _why_stuck(self) -> str:
        steps = from_database(
            lambda: list(
                Step.objects.filter(operation__subject__workspace=self._id)
                .exclude(state__in=(Step.State.DONE, Step.State.SKIPPED))
                .values_list(
                    "operation__kind", "name", "state", "attempt", "error_message"
                )
            )
        )
        return f"{self._reloaded().state} for long; steps: {steps}"

    def _judge(self, after: str) -> None:
        workspace = self._reloaded()
        state = f"{after.partition(' by ')[0]}: {workspace.state}"
        if workspace.state == W.FAILED:
            state += f" ({workspace.status_code})"
        self.world.outcomes[state] += 1
        self.history.append(f"-> {workspace.state} {workspace.status_code}".strip())
        with self.world.servers.calm.at_work():
            self._blame(*self.world.judge.check_at(workspace, self.desk))


def _without_snapshot(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request without its snapshot, which has been deleted."""
    return {key: value for key, value in body.items() if key != "snapshot"}
