"""The context of a step: its rows, its gateways, and its progress."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from provisioner.engine import loads, slots, states
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import AnyResult, find_result
from provisioner.gateways import registry
from provisioner.gateways.errors import AuthFailed, Busy
from provisioner.gateways.fence import require_leave
from provisioner.gateways.hosts import mounts
from provisioner.gateways.hosts.log_files import begin_log
from provisioner.gateways.hosts.namespace import require_namespace
from provisioner.gateways.hosts.trees.run import WalkReport
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import FlushPlace, FlushWatch, LockUse
from provisioner.lib.databases import unless_database_is_away

Used = TypeVar("Used")

PROGRESS_EVERY_SECONDS = 0.25
VISIBLE_WITHIN_SECONDS = 30.0
FAILURES_NAMED = 10
# Of a pause for others, and of all pauses of an attempt: a comparison has four hours,
# and however many directories there are, it has to come to its end.
LONGEST_REST_SECONDS = 60.0
RESTS_AT_MOST_SECONDS = 2 * 3600.0
LOOKS_EVERY_SECONDS = 1.0


class StepRun:
    """One attempt at one step."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.operation: Operation = step.operation
        self.site: Any = step.operation.site
        step.when_done = ()
        self._began_at = time.monotonic()
        self._progress_shown_at = 0.0
        self._phase_shown = ""
        self._rested_seconds = 0.0

    @property
    def ontap(self) -> OntapGateway:
        """The gateway to the site's SVM; ids of ONTAP's jobs are kept in the step."""
        return registry.ontap(self.site).recording_jobs(self._remember_ontap_job)

    @property
    def perforce(self) -> PerforceGateway:
        return registry.perforce(self.server)

    @property
    def server(self) -> Any:
        """The row of the Perforce server that it uses."""
        return self.operation.subject.row.perforce_server

    def perforce_of(self, user: str, *, host: str = "") -> PerforceGateway | None:
        """Return a gateway that may act as this user; None if ours may not.

        `host` is the Host of the client to be used, "" for most.
        """
        ours = dataclasses.replace(self.perforce.account, host=host)
        if user == ours.user:
            return registry.perforce_as(ours)
        ticket = self.perforce.user_ticket(user)
        if ticket is None:
            return None
        return registry.perforce_as(
            dataclasses.replace(ours, user=user, password=ticket)
        )

    def as_user(
        self, user: str, use: Callable[[PerforceGateway], Used], *, host: str = ""
    ) -> Used | None:
        """Return the result of `use` with a gateway that may act as this user.

        None if there is no such gateway. If a ticket has expired, `use` is called again
        with a new one, so it must be safe to repeat.
        """
        gateway = self.perforce_of(user, host=host)
        if gateway is None:
            return None
        try:
            return use(gateway)
        except AuthFailed:
            gateway = self.perforce_of(user, host=host)
            if gateway is None or user == self.perforce.account.user:
                raise
            return use(gateway)

    def perforce_for(self, client: str) -> PerforceGateway:
        """Return the gateway to its server, as seen from a client's Host."""
        return registry.perforce_for(self.server, client=client)

    @property
    def seconds(self) -> float:
        """How long this attempt has been running."""
        return time.monotonic() - self._began_at

    def visible_root(self, junction_path: str) -> Path:
        """Return where this host sees a junction, once it appears and is safe.

        Where a site mounts each volume, it is mounted here first.

        Raises: Unreachable if it does not appear, Refused if it leads elsewhere.
        """
        if self.site.mounts_each:
            mount = self.site.volume_mount(junction_path)
            mount.ensure(addresses=partial(registry.nfs_addresses, self.site))
            return Path(mount.directory)
        mounts.wait_until_visible(
            self.site.path_of(junction_path), timeout_seconds=VISIBLE_WITHIN_SECONDS
        )
        mount_root = self.site.path_of("/").resolve()
        root = mounts.path_below(mount_root, junction_path=junction_path)
        require_namespace(
            mount_root,
            root,
            addresses=partial(registry.nfs_addresses, self.site),
            is_lab=self.site.is_of_the_lab,
        )
        return root

    def leave_root(self, junction_path: str) -> None:
        """Unmount a junction on this host, where a site mounts each volume.

        Raises: Busy while somebody uses it.
        """
        if self.site.mounts_each:
            self.site.volume_mount(junction_path).remove()

    def progress(
        self,
        text: str = "",
        *,
        done: int = 0,
        total: int = 0,
        unit: str = "",
        phase: str = "",
        figures: Mapping[str, float | None] | None = None,
    ) -> None:
        """Show progress, at most four times a second; 0 of 0 shows the text alone.

        Completion and a new phase are always shown. `figures` say for scripts what the
        text says for people.
        """
        now = time.monotonic()
        has_changed = 0 < total <= done or phase != self._phase_shown
        if not has_changed and now - self._progress_shown_at < PROGRESS_EVERY_SECONDS:
            return
        self._progress_shown_at, self._phase_shown = now, phase
        shown: dict[str, Any] = {"text": text}
        if total or done:
            shown |= {"done": done, "total": total, "unit": unit}
        if phase:
            shown["phase"] = phase
        shown |= figures or {}
        states.record_progress(self.step, shown)

    def progress_of_command(self, text: str) -> None:
        """Report progress of work too expensive to restart while the database is away.

        Another worker may take over the step meanwhile; the tree lock makes it wait.
        """
        with unless_database_is_away():
            self.progress(text)

    def note_exit_code(self, exit_code: int) -> None:
        """Record how a command ended, unless the database is away."""
        with unless_database_is_away():
            states.note_exit_code(self.step, exit_code)

    def writing(self) -> AbstractContextManager[None]:
        """Write rows in one transaction, during which no other attempt can start.

        Raises: StepCutShort if one has started.
        """
        return states.holding(self.step)

    def when_done(self, write: Callable[[], object]) -> None:
        """Write rows in the transaction that ends this attempt as done.

        For what only later steps and pages read. `write` may be called again if the
        database was away.
        """
        self.step.when_done += (write,)

    def command_ended(self, use: LockUse | None) -> None:
        """Record what a command at the server waited for, if that is known.

        Raises: Busy if maintenance has begun there. The step then waits for a slot, and
        does the rest when it gets one.
        """
        self._consider_others(use)

    def _consider_others(self, use: LockUse | None) -> str:
        """Do what `command_ended` does; return whom a next command would hold up."""
        server_id = self.step.perforce_server_id
        if server_id is None:
            return ""
        if use is not None:
            slots.observe(self.step, use)
        found = loads.consider(server_id)
        if found.why_stop:
            raise Busy(
                found.why_stop, system="perforce", operation="wait for maintenance"
            )
        return found.why_rest

    def flush_watch(self) -> FlushWatch:
        """Return how a flush in batches gives way to others and is gone on with.

        It begins where an earlier attempt of this step ended.
        """
        place = self.step.flush_place
        return FlushWatch(
            on_command=self.rest_for_others,
            on_place=self._flushed_as_far_as,
            place=FlushPlace(**place) if place else None,
        )

    def _flushed_as_far_as(self, place: FlushPlace) -> None:
        if place.total > 1:
            states.record_flush_place(self.step, dataclasses.asdict(place))
            self.progress(
                "flushing", done=place.done, total=place.total, unit="directories"
            )

    def rest_for_others(self, use: LockUse | None) -> bool:
        """Pause after a command while others wait; return whether they did.

        For a minute at most, and two hours in all. The rest is as in `command_ended`.
        """
        server_id, why = self.step.perforce_server_id, self._consider_others(use)
        if server_id is None or not why:
            return False
        began, progress = time.monotonic(), self.step.progress
        may_rest = RESTS_AT_MOST_SECONDS - self._rested_seconds
        ends_at = began + min(LONGEST_REST_SECONDS, may_rest)
        has_rested = False
        while why and time.monotonic() < ends_at:
            has_rested = True
            self.progress(why, phase="resting")
            time.sleep(LOOKS_EVERY_SECONDS)
            require_leave()
            why = loads.why_rest(server_id)
        if has_rested:
            self._rested_seconds += time.monotonic() - began
            states.record_progress(self.step, progress)
            self._phase_shown = progress.get("phase", "")
            self.command_ended(None)
        return True

    def _remember_ontap_job(self, ontap_job_uuid: str) -> None:
        states.remember_ontap_job(self.step, ontap_job_uuid)

    def result_of(self, of: type[AnyResult]) -> AnyResult:
        """Return what an earlier step of this operation handed on."""
        result = self.find_result(of)
        assert result is not None
        return result

    def find_result(self, of: type[AnyResult]) -> AnyResult | None:
        """Return what an earlier step handed on; None if the operation has no such
        step.
        """
        return find_result(self.operation, of)

    def keep_failures(self, report: WalkReport) -> str:
        """List every entry that failed in the step's log, and name a few.

        A file with more of them than the report itself has is moved there.
        """
        log_path = self.step.log_path
        with begin_log(log_path) as log:
            if report.failures_file is None:
                log.writelines(f"{failure}\n".encode() for failure in report.failures)
            else:
                with report.failures_file.open("rb") as names:
                    shutil.copyfileobj(names, log)
                report.failures_file.unlink()
        few = "; ".join(str(failure) for failure in report.failures[:FAILURES_NAMED])
        return f"{few}. Every one is named in {log_path}."
