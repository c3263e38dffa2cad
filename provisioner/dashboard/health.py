"""Check the health of everything that workspaces need."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from procrastinate.contrib.django.models import ProcrastinateWorker

from provisioner.engine.queues import DELIVERIES, PERFORCE, STORAGE
from provisioner.engine.workers import alive_workers, unserved
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.lib import clocks
from provisioner.lib.migrations import why_not_migrated
from provisioner.sites.models import PerforceServer, Site

log = structlog.get_logger(__name__)

SWEEPS = "sweeps"
ANSWER_WITHIN_SECONDS = 4.0
LOOKS_AT_A_TIME = 16


@dataclass(frozen=True, kw_only=True)
class HealthCheck:
    """The health of one part; `reason` says why it is not ok, else ""."""

    name: str
    ok: bool
    reason: str
    ms: int


@dataclass(frozen=True, kw_only=True)
class Readiness:
    checks: tuple[HealthCheck, ...]

    @property
    def ready(self) -> bool:
        return all(check.ok for check in self.checks)


class NotWell(Exception):
    """A check found something wrong; its text says what, as a sentence."""


Look = Callable[[], None]


_one_at_a_time = threading.Lock()
_last_found: list[Readiness] = []


def shared_readiness() -> Readiness | None:
    """Return the result of a check, or the last one while another is running.

    Anybody may ask without signing in, and a check of a silent system takes seconds:
    one thread is used for it, however many ask. None: no check has finished yet.
    """
    if not _one_at_a_time.acquire(blocking=False):
        return _last_found[-1] if _last_found else None
    try:
        found = readiness()
        _last_found[:] = [found]
        return found
    finally:
        _one_at_a_time.release()


def readiness() -> Readiness:
    """Check the database, our clock, the workers, and each site's ONTAP and Perforce.

    Remote systems are checked in parallel, each for at most ANSWER_WITHIN_SECONDS.
    """
    here = readiness_here()
    if not _can_be_asked(here):
        return here
    workers = _timed("worker", _check_workers)
    served = [
        _timed(f"workers:{site.name}", partial(_check_queues, site))
        for site in Site.objects.order_by("name")
    ]
    far_sides = _far_sides(_checks_far_sides())
    return Readiness(checks=(*here.checks, workers, *served, *far_sides))


def readiness_here() -> Readiness:
    """Check what this web server needs to answer at all: a proxy asks for that.

    Where ONTAP is away, no web server would be left if it asked for everything.
    """
    checks = [_timed("database", _check_database)]
    if checks[0].ok:
        checks.append(_timed("migrations", _check_migrations))
    if checks[-1].ok:
        checks.append(_timed("clock", _check_clock))
    return Readiness(checks=tuple(checks))


def _can_be_asked(here: Readiness) -> bool:
    """Return whether rows can be read: a wrong clock does not prevent that."""
    return here.ready or here.checks[-1].name == "clock"


def _timed(name: str, look: Look) -> HealthCheck:
    """Run a check once; an error becomes its reason."""
    began_at = time.monotonic()
    reason = ""
    try:
        look()
    except NotWell as finding:
        reason = str(finding)
    except GatewayError as error:
        reason = error.sentence
    except Exception:
        # Ours to fix, but no reason to keep silent about all other parts.
        log.exception("health_check_broke", check=name)
        reason = "The check failed in Cloneyard itself; its log says why."
    ms = round((time.monotonic() - began_at) * 1000)
    return HealthCheck(name=name, ok=not reason, reason=reason, ms=ms)


def _check_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        log.error("database_unreachable", error=str(error))
        raise NotWell("The database does not answer.") from error


def _check_migrations() -> None:
    if why := why_not_migrated():
        raise NotWell(why)


def _check_clock() -> None:
    ahead_seconds = clocks.seconds_ahead_here()
    if not clocks.is_right(ahead_seconds):
        raise NotWell(
            f"The clock of this web server is {clocks.off_text(ahead_seconds)}."
        )


def _check_workers() -> None:
    """Check that workers sent a heartbeat within the last seconds.

    Workers that wait for their clock are shown only on the overview, as long as others
    work.
    """
    newest = (
        ProcrastinateWorker.objects.order_by("-last_heartbeat")
        .values_list("last_heartbeat", flat=True)
        .first()
    )
    if newest is None:
        raise NotWell("No worker is running.")
    silent_seconds = (clocks.database_now() - newest).total_seconds()
    if silent_seconds > settings.WORKER_STALLED_SECONDS:
        raise NotWell(
            f"No worker has sent a heartbeat for {silent_seconds:,.0f} seconds."
        )
    workers = alive_workers()
    troubles = [worker.clock_trouble for worker in workers if worker.clock_trouble]
    if troubles and len(troubles) == len(workers):
        raise NotWell(" ".join(troubles))


def _check_queues(site: Site) -> None:
    """Check that each queue of a site is served by a worker."""
    own = (site.commands_queue, site.bisections_queue)
    needed = (STORAGE, PERFORCE, site.host_queue, *own, SWEEPS, DELIVERIES)
    missing = unserved(needed, alive_workers())
    if missing:
        raise NotWell(f"No running worker serves {', '.join(missing)}.")


def _checks_far_sides() -> dict[str, Look]:
    looks: dict[str, Look] = {}
    for site in Site.objects.order_by("name"):
        looks[f"ontap:{site.name}"] = partial(_check_ontap, site)
    for server in PerforceServer.objects.filter(site__isnull=False).distinct():
        looks[f"perforce:{server.name}"] = partial(_check_perforce, server)
    return looks


def _check_ontap(site: Site) -> None:
    registry.ontap(site).check_svm()


def _check_perforce(server: PerforceServer) -> None:
    registry.perforce(server).check_login()


class FarSides:
    """Running checks, at most one per remote system.

    Anybody may ask without signing in, so more requests must not cause more calls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[HealthCheck]] = {}
        self._threads = ThreadPoolExecutor(
            max_workers=LOOKS_AT_A_TIME, thread_name_prefix="health"
        )

    def look(self, name: str, *, look: Look) -> Future[HealthCheck]:
        with self._lock:
            under_way = self._under_way.get(name)
            if under_way is None or under_way.done():
                under_way = self._threads.submit(_timed, name, look)
                self._under_way[name] = under_way
            return under_way


_far = FarSides()


def _far_sides(looks: dict[str, Look]) -> list[HealthCheck]:
    answers = {name: _far.look(name, look=look) for name, look in looks.items()}
    wait(answers.values(), timeout=ANSWER_WITHIN_SECONDS)
    return [
        answer.result() if answer.done() else _no_answer(name)
        for name, answer in answers.items()
    ]


def _no_answer(name: str) -> HealthCheck:
    return HealthCheck(
        name=name,
        ok=False,
        reason=f"No answer within {ANSWER_WITHIN_SECONDS:.0f} seconds.",
        ms=round(ANSWER_WITHIN_SECONDS * 1000),
    )
