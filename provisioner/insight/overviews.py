"""How a Perforce server is set up, with what the rules say, for pages and the API."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.insight.configuration import facts_of
from provisioner.insight.models import ServerConfiguration
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
