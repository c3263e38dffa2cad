"""What rules say of Perforce servers and their processes, for pages and the API."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.insight.configuration import facts_of
from provisioner.insight.models import OrphanRule, Process, ServerConfiguration
from provisioner.insight.orphans import orphans_of, rule_of
from provisioner.insight.queries import servers_with_orphan_rules
from provisioner.insight.rules import Outcome, judged

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
