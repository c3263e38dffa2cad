"""Half a year of builds: most succeed, some fail until somebody fixes the cause."""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass, replace

from provisioner.accounts.models import User
from provisioner.catalog.models import (
    BuildParameters,
    Quality,
    Snapshot,
    Template,
    TemplateOperation,
)
from provisioner.catalog.pins import Pin
from provisioner.catalog.steps.commands import Built as BuildDone
from provisioner.catalog.steps.commands import Tested
from provisioner.catalog.steps.contents import Synced
from provisioner.catalog.steps.publishing import Published, Verified
from provisioner.catalog.steps.volume import TemplateVolume
from provisioner.demo.company.build_logs import log_of, test_log_of
from provisioner.demo.company.changes import Change, History
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Course, Engine, Ran
from provisioner.demo.company.people import People
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built, fake_digest
from provisioner.engine.logs.excerpt import excerpt_of
from provisioner.engine.models import Operation, Step

BREAKS, IS_MENDED = 0.055, 0.5
LOGS_KEPT = 3
CLEAN_TAKES = 4.5
SYNCING = {
    "text": "1.9 GiB of 2.6 GiB, 214 files and 61 MiB a second, about 12 s left",
    "done": 2860,
    "total": 3914,
    "unit": "files",
}
EXIT_CODES = {"unreal": 6, "make": 2, "msvc": 1, "maven": 1, "python": 1}


@dataclass(frozen=True, kw_only=True)
class Request:
    """A build that somebody, or a schedule, requests."""

    at: dt.datetime
    built: Built
    by: User
    is_clean: bool = False
    is_last: bool = False


class Builder:
    """Builds what was requested, in order."""

    def __init__(
        self,
        studio: Studio,
        *,
        engine: Engine,
        log: Log,
        people: People,
        history: History,
    ) -> None:
        self._studio, self._engine, self._log = studio, engine, log
        self._people, self._history = people, history

    def build_all(self, templates: list[Built]) -> None:
        """Make all builds of half a year, and write the logs that are still there."""
        wanted = [
            request
            for built in templates
            if built.plan.standing != "new"
            for request in self._requests(built)
        ]
        for request in sorted(wanted, key=lambda each: each.at):
            self._build(request)
        for built in templates:
            self._write_logs(built)

    def _requests(self, built: Built) -> Iterator[Request]:
        calendar, system = self._studio.calendar, self._people.system
        first = calendar.began + dt.timedelta(hours=2)
        yield Request(at=first, built=built, by=self._people.admin, is_clean=True)
        times = list(self._times(built))
        for at in times:
            by = system
            if built.plan.policy == "manual" or self._studio.happens(0.04):
                by = self._studio.chance.choice(self._people.administrators)
            is_clean = self._studio.happens(0.01)
            yield Request(at=at, built=built, by=by, is_clean=is_clean)
        if built.is_cleaned_weekly:
            for at in self._daily(weekdays=(5,), hour=3, minute=30):
                yield Request(at=at, built=built, by=system, is_clean=True)
        if built.plan.standing == "building":
            at = calendar.ago(minutes=self._studio.chance.uniform(9, 25))
            yield Request(at=at, built=built, by=system, is_last=True)
        elif built.plan.policy == "on_change" or built.plan.standing == "failed":
            at = calendar.ago(minutes=self._studio.chance.uniform(130, 170))
            yield Request(at=at, built=built, by=system, is_last=True)

    def _times(self, built: Built) -> Iterator[dt.datetime]:
        calendar, share = self._studio.calendar, self._studio.size.build_share
        if built.plan.policy == "nightly":
            yield from self._daily(weekdays=range(5), hour=2, minute=0)
            return
        a_day = 2.3 if built.plan.policy == "on_change" else 0.16
        yield from calendar.moments(
            int(a_day * calendar.days * share),
            after=calendar.began + dt.timedelta(hours=12),
            before=calendar.ago(hours=9),
        )

    def _daily(
        self, *, weekdays: Container[int], hour: int, minute: int
    ) -> Iterator[dt.datetime]:
        """Yield when a schedule was due, always including the last time."""
        calendar, share = self._studio.calendar, self._studio.size.build_share
        days = (calendar.ago(days=ago) for ago in range(calendar.days - 1))
        due = [day.replace(hour=hour, minute=minute, second=20) for day in days]
        past = [at for at in due if at.weekday() in weekdays and at < calendar.now]
        for place, at in enumerate(past):
            if place == 0 or self._studio.happens(share):
                yield at + calendar.seconds(8)

    def _build(self, request: Request) -> None:
        """Build at the newest change, unless it is being built or was built already."""
        built, at = request.built, request.at
        change = self._history.newest(built.plan.name, at=at)
        if change is None or (built.busy_until and at <= built.busy_until):
            return
        last = built.snapshots[-1].change if built.snapshots else 0
        by_itself = request.by == self._people.system
        is_forced = request.is_last and built.plan.standing != "ready"
        is_forced = is_forced or request.is_clean
        if by_itself and not is_forced and change.number <= last:
            return
        self._weather(built, request)
        course = self._course(request, change)
        template = built.template
        if by_itself:
            changes = self._studio.chance.randrange(1, 9)
            self._log.tell(
                template,
                "template_refresh",
                f"{changes} changes were submitted, and it has been quiet since.",
                at=at,
                by=request.by,
                task="sweep_refresh",
                data={"change": change.number, "changes": changes},
            )
        what = " clean" if request.is_clean else ""
        self._log.tell(
            template,
            "template_building",
            f"Asked to build it{what} at change {change.number}.",
            at=at + dt.timedelta(milliseconds=3),
            by=request.by,
            task="sweep_refresh",
        )
        ran = self._engine.run(
            TemplateOperation.BUILD,
            template,
            by=request.by,
            at=at + dt.timedelta(milliseconds=5),
            course=course,
            is_numbered=True,
        )
        template.last_build = ran.operation
        if request.is_clean:
            template.clean_build_at = ran.operation.created_at
        built.builds.append(ran)
        built.busy_until = ran.operation.ended_at or self._studio.now
        self._settle(request, ran, change)

    def _weather(self, built: Built, request: Request) -> None:
        """Decide whether the submitted changes break the build, or fix it."""
        chance, plan = self._studio.chance, built.plan
        if request.is_last:
            built.broken_by = "build" if plan.standing == "failed" else ""
        elif request.at > self._studio.calendar.ago(days=3):
            built.broken_by = ""
        elif built.broken_by:
            if chance.random() < IS_MENDED:
                built.broken_by = ""
        elif built.snapshots and chance.random() < BREAKS:
            kinds = ["build"] * 7 + ["sync"] + ["test"] * (2 if plan.has_test else 0)
            built.broken_by = chance.choice(kinds)

    def _course(self, request: Request, change: Change) -> Course:
        built, chance = request.built, self._studio.chance
        slowness = CLEAN_TAKES if request.is_clean else chance.choice((0.4, 1, 1.3))
        if request.is_last:
            slowness = 0.6
        minutes = built.plan.minutes * slowness
        seconds = {
            "clean": 40.0,
            "sync": built.plan.files / 90 * (6 if not built.snapshots else 0.12),
            "build": minutes * 60,
            "test": minutes * 14,
            "verify": 4 + built.plan.files / 700,
            "prune": 1.2,
        }
        pin = Pin(
            change=change.number, parts=[], client_spec=built.client_spec, tree=None
        )
        results = {
            TemplateVolume.step: asdict(TemplateVolume(built.template.volume_uuid)),
            Pin.step: asdict(pin),
        }
        parameters = BuildParameters(change=change.number, clean=request.is_clean)
        course = Course(seconds=seconds, results=results, parameters=parameters)
        if request.is_last and built.plan.standing == "building":
            if built.plan.is_abroad:
                return replace(course, stands_at="sync")
            return replace(course, stands_at="sync", step_state=Step.State.RUNNING)
        if not built.broken_by:
            return course
        fails_at = {"build": "build", "sync": "sync", "test": "outcome"}
        return replace(course, fails_at=fails_at[built.broken_by])

    def _settle(self, request: Request, ran: Ran, change: Change) -> None:
        """Publish the result of a build, and record on the template how it ended."""
        built, template = request.built, request.built.template
        template.status_code = template.status_message = ""
        if ran.operation.state == Operation.State.RUNNING:
            template.state = Template.State.BUILDING
            ran.steps["sync"].progress = SYNCING
            return
        if ran.steps["snapshot"].state == Step.State.DONE:
            self._publish(built, ran, change, is_clean=request.is_clean)
        template.state, message = Template.State.READY, "Ready."
        if ran.operation.state == Operation.State.FAILED:
            code, message = self._why(built, ran, change)
            ran.fail(code=code, message=message)
            template.state = Template.State.FAILED
            template.status_code, template.status_message = code, message
        self._log.tell(template, f"template_{template.state}", message, at=ran.ended_at)

    def _publish(
        self, built: Built, ran: Ran, change: Change, *, is_clean: bool
    ) -> None:
        steps, uuid = ran.steps, str(self._studio.uuid())
        tested = self._tested(built, steps.get("test"))
        published_at = steps["snapshot"].ended_at
        assert published_at is not None
        snapshot = self._studio.rows.add(
            Snapshot(
                template=built.template,
                name=f"c{change.number}.b{ran.operation.pk}",
                ontap_uuid=uuid,
                change=change.number,
                client_spec=built.client_spec,
                have_count=built.plan.files,
                have_digest=fake_digest(built, change.number),
                quality=tested.quality if tested else Quality.BUILT,
                is_clean=is_clean,
                sync_seconds=steps["sync"].seconds or 0,
                build_seconds=steps["build"].seconds or 0,
                test_seconds=tested.seconds if tested else 0,
                operation=ran.operation,
                created_at=published_at,
            )
        )
        built.snapshots.append(snapshot)
        have = Verified(
            have_count=snapshot.have_count, have_digest=snapshot.have_digest, remarks=[]
        )
        for result in (
            Synced(snapshot.sync_seconds),
            BuildDone(snapshot.build_seconds),
            have,
            Published(snapshot.name),
        ):
            steps[result.step].result = asdict(result)

    def _tested(self, built: Built, test: Step | None) -> Tested | None:
        """Return the outcome of a build's test; None if it has none."""
        if test is None:
            return None
        reason = ""
        if built.broken_by == "test":
            _write(test, test_log_of(built.plan, self._studio.chance, fails=True))
            test.exit_code = 1
            reason = f"The test ended with exit code 1.\n{excerpt_of(test)}"
        tested = Tested(seconds=test.seconds or 0, reason=reason)
        test.result, test.has_rejected = asdict(tested), tested.has_rejected
        return tested

    def _why(self, built: Built, ran: Ran, change: Change) -> tuple[str, str]:
        """Return code and sentence of a failure, with the first error logged."""
        chance, plan = self._studio.chance, built.plan
        if built.broken_by == "sync":
            return (
                "perforce_unreachable",
                "Perforce did not answer within 60 seconds (sync). It was tried for "
                "1,800 seconds.",
            )
        if built.broken_by == "build":
            step, exit_code = ran.steps["build"], EXIT_CODES[plan.tool]
            step.exit_code = exit_code
            _write(step, log_of(plan, chance, change=change.number, fails=True))
            return (
                "build_failed",
                f"The build ended with exit code {exit_code}. Nothing was published; "
                f"the log is kept.\n{excerpt_of(step)}",
            )
        reason = ran.steps["test"].result["reason"]
        name = built.snapshots[-1].name
        return (
            "test_failed",
            f"The snapshot {name} is marked: nobody gets it without choosing it. The "
            f"next build is tried as usual. {reason}",
        )

    def _write_logs(self, built: Built) -> None:
        """Write the logs of the last builds that did not fail."""
        for ran in built.builds[-LOGS_KEPT:]:
            if ran.operation.state == Operation.State.SUCCEEDED:
                text = log_of(
                    built.plan,
                    self._studio.chance,
                    change=int(ran.operation.parameters["change"]),
                    fails=False,
                )
                ran.steps["build"].exit_code = 0
                _write(ran.steps["build"], text)


def _write(step: Step, text: str) -> None:
    step.log_path.parent.mkdir(parents=True, exist_ok=True)
    step.log_path.write_text(text)
