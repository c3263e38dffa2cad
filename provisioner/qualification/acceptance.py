"""The acceptance of an installation: what holds at a site and its Perforce server.

It asks what the tests of connections ask, makes and removes a trial volume and its
clone, and times what a workspace is made of. Nothing stays behind but an empty client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.limits.queries import limits_of_sites
from provisioner.limits.tallies import Tallies
from provisioner.sites.connections.checklist import Check
from provisioner.sites.connections.ontap import check_ontap
from provisioner.sites.connections.perforce import check_perforce
from provisioner.sites.connections.trial import try_out
from provisioner.sites.models import ConnectionCheck, PerforceServer, Site

Outcome = ConnectionCheck.Outcome
CLIENT = "cloneyard-qualify"
# Commands that read, with what people would call them.
_TIMED = (
    ("Round trip (p4 info)", ("info",)),
    ("Newest change (p4 changes -m 1)", ("changes", "-m", "1")),
    ("Preview of a flush (p4 flush -n)", ("flush", "-n")),
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one check found, and how many seconds that took; None: not told."""

    part: str
    check: Check
    seconds: float | None = None

    @property
    def holds(self) -> bool:
        return self.check.outcome not in (Outcome.FAILED, Outcome.SKIPPED)

    @property
    def text(self) -> str:
        took = "" if self.seconds is None else f" ({self.seconds:.2f} s)"
        advice = f" {self.check.advice}" if self.check.advice else ""
        outcome = Outcome(self.check.outcome).label
        return f"{outcome:<9} {self.check.name}: {self.check.sentence}{took}{advice}"


def accept(site: Site, server: PerforceServer, *, tries: bool) -> Iterator[Line]:
    """Check everything, and yield what was found as it is found.

    `tries` makes and removes a volume and its clone. No transaction may be open.
    """
    yield from _lines("ONTAP", lambda: check_ontap(site))
    yield from _lines("Perforce", lambda: check_perforce(server))
    yield from _limits(site)
    yield from _timings(server)
    if tries:
        yield from _lines("Trial", lambda: try_out(site))


def what_else(site: Site, server: PerforceServer) -> list[str]:
    """Return what this cannot do by itself, with the commands that do it.

    The contract tests come with the source, not with what is installed.
    """
    return [
        "",
        "The contract tests ask more of both systems. They make small volumes, clients "
        "and changes, and remove them. From a checkout, with ONTAP_TEST_PASSWORD and "
        "PERFORCE_TEST_PASSWORD set:",
        f"  ONTAP_TEST_HOST={site.ontap_host} ONTAP_TEST_PORT={site.ontap_port} "
        f"ONTAP_TEST_USER={site.ontap_user} ONTAP_TEST_SVM={site.svm} "
        f"ONTAP_TEST_AGGREGATE={site.aggregate} "
        f"ONTAP_TEST_CA_FILE={site.ontap_ca_file} "
        f"PERFORCE_TEST_PORT={server.p4port} PERFORCE_TEST_USER={server.p4user} "
        'make test ARGS="-m real tests/contract"',
        "A trace has both conversations, without names and secrets. The lab replays "
        "it and says where it answers otherwise (docs/traces.md):",
        f"  manage.py record_trace trace.jsonl -- qualify --site {site.name} "
        f"--server {server.name}",
    ]


def _lines(part: str, look: Callable[[], list[Check]]) -> Iterator[Line]:
    for check in look():
        yield Line(part=part, check=check, seconds=check.seconds)


def _limits(site: Site) -> Iterator[Line]:
    of_site = next(each for each in limits_of_sites(Tallies()) if each.site == site)
    for limit in of_site.limits:
        outcome = Outcome.FAILED if limit.is_reached else Outcome.PASSED
        if limit.is_near and not limit.is_reached:
            outcome = Outcome.REMARKED
        said = f"{limit.title}: {limit.used_text} of {limit.allowed_text}."
        check = Check(name=limit.code, outcome=outcome, sentence=said)
        yield Line(part="Limits", check=check)


def _timings(server: PerforceServer) -> Iterator[Line]:
    for title, command in _TIMED:
        began = time.monotonic()
        try:
            timing = registry.perforce(server).timing
            timing.ensure_client(CLIENT)
            seconds = timing.seconds_of(command, client=CLIENT)
        except GatewayError as error:
            found = Check(
                name="timing", outcome=Outcome.FAILED, sentence=error.sentence
            )
            yield Line(part="Timings", check=found, seconds=time.monotonic() - began)
            return
        found = Check(name="timing", outcome=Outcome.PASSED, sentence=f"{title}.")
        yield Line(part="Timings", check=found, seconds=seconds)
