"""What rules say of Perforce servers and their processes, for pages and the API."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from provisioner.insight.clients import MOST_OPENED
from provisioner.insight.configuration import facts_of
from provisioner.insight.models import (
    AdviceRule,
    ClientListing,
    OrphanRule,
    Process,
    ProgramRelease,
    ServerConfiguration,
)
from provisioner.insight.orphans import orphans_of, rule_of
from provisioner.insight.queries import (
    servers_with_clients,
    servers_with_orphan_rules,
    servers_with_programs,
    with_client_counts,
)
from provisioner.insight.releases import MAILS_AT_ONCE, Person, people_to_ask
from provisioner.insight.rules import Facts, Outcome, judge_protections, judged
from provisioner.lib import clocks
from provisioner.sites.models import PerforceServer

_LABELS = {
    Outcome.ADVICE: "Advice",
    Outcome.UNKNOWN: "Not known",
    Outcome.GOOD: "Good",
}
# The marks of states that pages have.
_MARKS = {
    Outcome.ADVICE: "advised",
    Outcome.UNKNOWN: "skipped",
    Outcome.GOOD: "passed",
}


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """What one rule says of a server."""

    code: str
    title: str
    outcome: str
    label: str
    mark: str
    saw: str
    advice: str
    source: str


@dataclass(frozen=True, kw_only=True)
class ConfigurationOverview:
    """A server's configuration, with the judgment of every rule, advice first."""

    configuration: ServerConfiguration
    judgments: list[Judgment]

    @property
    def is_known(self) -> bool:
        return self.configuration.read_at is not None

    @property
    def tally(self) -> str:
        """Such as "2 with advice, 1 not known"."""
        counts = {
            said: sum(each.outcome == outcome for each in self.judgments)
            for outcome, said in (
                (Outcome.ADVICE, "with advice"),
                (Outcome.UNKNOWN, "not known"),
                (Outcome.GOOD, "good"),
            )
        }
        return ", ".join(f"{count} {said}" for said, count in counts.items() if count)


def overview_of(configuration: ServerConfiguration) -> ConfigurationOverview:
    """Judge a configuration; without a reading no rule is asked."""
    if configuration.read_at is None:
        return ConfigurationOverview(configuration=configuration, judgments=[])
    return ConfigurationOverview(
        configuration=configuration,
        judgments=[
            Judgment(
                code=rule.code,
                title=rule.title,
                outcome=verdict.outcome,
                label=_LABELS[verdict.outcome],
                mark=_MARKS[verdict.outcome],
                saw=verdict.saw,
                advice=verdict.advice,
                source=rule.source,
            )
            for rule, verdict in judged(facts_of(configuration))
        ],
    )


@dataclass(frozen=True, kw_only=True)
class OrphanOverview:
    """A server's rule for orphans, and the processes that are some now."""

    rule: OrphanRule
    orphans: list[Process]

    @property
    def sentence(self) -> str:
        """Which processes count, and what becomes of them."""
        ages = [
            f"{what} of {hours:,} hours"
            for what, hours in (
                ("commands", self.rule.command_hours),
                ("idle connections", self.rule.idle_hours),
            )
            if hours is not None
        ]
        if not ages:
            return "No process counts."
        where = " whose client's host is gone" if self.rule.only_gone_hosts else ""
        end = "Ended automatically" if self.rule.is_automatic else "Ended by hand"
        said = f"{' and '.join(ages)}{where} count. {end}."
        return said[0].upper() + said[1:]


def orphan_overview(rule: OrphanRule) -> OrphanOverview:
    return OrphanOverview(rule=rule, orphans=orphans_of(rule))


def orphan_overviews() -> list[OrphanOverview]:
    """Return the orphans of each server. One query, and one for each server."""
    rules = [rule_of(server) for server in servers_with_orphan_rules()]
    return [orphan_overview(rule) for rule in rules]


@dataclass(frozen=True, kw_only=True)
class ReleaseOverview:
    """Which releases a server's users should have, and who has older ones."""

    server: PerforceServer
    releases: list[ProgramRelease]
    people: list[Person]

    @cached_property
    def due(self) -> list[Person]:
        """Who would get a mail now, 200 people at most."""
        due = [person for person in self.people if person.is_due]
        return due[:MAILS_AT_ONCE]

    @cached_property
    def shown(self) -> list[Person]:
        """Who is listed, 200 people at most: those who would get a mail now first."""
        return sorted(self.people, key=lambda each: not each.is_due)[:MAILS_AT_ONCE]

    @property
    def more(self) -> int:
        return len(self.people) - len(self.shown)


def release_overview(server: PerforceServer) -> ReleaseOverview:
    releases = list(server.program_releases.all())
    people = people_to_ask(server) if releases else []
    return ReleaseOverview(server=server, releases=releases, people=people)


def release_overviews() -> list[ReleaseOverview]:
    """Return the overview of each server. Two queries, and two for each with rules."""
    return [release_overview(server) for server in servers_with_programs()]


@dataclass(frozen=True, kw_only=True)
class ClientsOverview:
    """What is known of a server's clients: `clients` in all, `views` of so many.

    `protections` and `protections_advice` are what the rule says of the protections,
    "" as long as they are not known.
    """

    rule: AdviceRule
    listing: ClientListing | None
    clients: int
    views: int
    protections: str
    protections_advice: str

    @property
    def is_cut(self) -> bool:
        """Whether more files are opened than were counted."""
        return self.listing is not None and self.listing.opened_files >= MOST_OPENED

    @property
    def sentence(self) -> str:
        return (
            f"Unused from {self.rule.unused_days:,} days on, large syncs from "
            f"{self.rule.many_files:,} files on."
        )


def clients_overviews() -> list[ClientsOverview]:
    """Return what is known of each server's clients. One query."""
    return [
        _clients_overview(server)
        for server in with_client_counts(servers_with_clients())
    ]


def _clients_overview(server: Any) -> ClientsOverview:
    rule = AdviceRule.of(server)
    read: ServerConfiguration | None = getattr(server, "configuration", None)
    verdict = None
    if read is not None and read.protection_lines is not None:
        verdict = judge_protections(
            Facts(
                today=clocks.database_now().date(),
                protection_lines=read.protection_lines,
                wide_protections=read.wide_protections,
                wide_paths=tuple(read.wide_paths),
                many_protections=rule.many_protections,
            )
        )
    return ClientsOverview(
        rule=rule,
        listing=getattr(server, "client_listing", None),
        clients=server.clients,
        views=server.views,
        protections=verdict.saw if verdict else "",
        protections_advice=verdict.advice if verdict else "",
    )
