"""Which protocol for which role, by the scores, a reader's weights and their facts.

Pure: a total is the sum of weights times scores. An unknown score counts as bad for the
order, and as best for what a protocol could reach. So what is recommended is never
better by a guess, and whether it could be beaten is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from provisioner.advice.kinds import (
    BLOCK,
    NAS,
    SAN,
    Criterion,
    Doubt,
    Protocol,
    Role,
)
from provisioner.advice.scores import APPLIES, BAD, BEST, Score, score_of
from provisioner.advice.sources import (
    FILESYSTEM,
    LARGE_VOLUMES,
    MULTI_SITE,
    NFS5,
    OURS,
    REQUIREMENTS,
    SHARED_ARCHIVES,
    TR,
    Source,
)
from provisioner.insight.rules import BYTES_PER_USER
from provisioner.lib.sizes import size_text

MOST_WEIGHT = 10
DEFAULT_WEIGHTS: Mapping[Criterion, int] = {
    Criterion.PERFORMANCE: 8,
    Criterion.ACCESS: 2,
    Criterion.MANAGEABILITY: 3,
    Criterion.COST: 2,
    Criterion.BACKUP: 4,
}
PUBLISHED_COMMANDS_A_DAY = 4_100_000
LARGEST_PLAIN_VOLUME = 100 << 40
YEARS_AHEAD = 3

Weights = Mapping[Criterion, int]


@dataclass(frozen=True, kw_only=True)
class ReaderFacts:
    """What a reader says of their installation; None is not said, and not guessed."""

    commands_a_day: int | None = None
    users: int | None = None
    db_bytes: int | None = None
    archive_bytes: int | None = None
    growth_percent: int | None = None
    is_distributed: bool = False
    shares_archives: bool = False


@dataclass(frozen=True, kw_only=True)
class Said:
    """A sentence, and whose it is; None: it follows from the scores."""

    text: str
    source: Source | None = None


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one criterion adds to a total."""

    criterion: Criterion
    weight: int
    score: Score

    @property
    def low(self) -> int:
        return self.weight * self.score.low

    @property
    def high(self) -> int:
        return self.weight * self.score.high


@dataclass(frozen=True, kw_only=True)
class Rated:
    """A protocol with its total; `high` is more if a score is not known.

    `excluded` says why it cannot be chosen, None if it can.
    """

    protocol: Protocol
    lines: tuple[Line, ...]
    excluded: Said | None = None

    @property
    def low(self) -> int:
        return sum(line.low for line in self.lines)

    @property
    def high(self) -> int:
        return sum(line.high for line in self.lines)

    @property
    def total_text(self) -> str:
        low, high = self.low, self.high
        return str(low) if low == high else f"{low} to {high}"


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The best protocol for a role, with the order of the others.

    `best` is None if no weight counts for the role. `is_certain` is whether none could
    beat it, whatever the unknown scores are.
    """

    role: Role
    most: int
    ranked: tuple[Rated, ...]
    excluded: tuple[Rated, ...]
    best: Rated | None
    is_certain: bool
    reasons: tuple[Said, ...]
    doubts: tuple[Said, ...]

    def rated(self, protocol: Protocol) -> Rated:
        [found] = [r for r in (*self.ranked, *self.excluded) if r.protocol == protocol]
        return found


def recommend(role: Role, *, weights: Weights, facts: ReaderFacts) -> Recommendation:
    """Return what to use for a role. Ties go to the protocol that is named first."""
    criteria = APPLIES[role]
    rated = [
        Rated(
            protocol=protocol,
            lines=tuple(
                Line(
                    criterion=criterion,
                    weight=weights[criterion],
                    score=score_of(role, protocol, criterion),
                )
                for criterion in criteria
            ),
            excluded=_exclusion(role, protocol, facts),
        )
        for protocol in Protocol
    ]
    # Sorting is stable, so ties stay in the order of Protocol.
    ranked = sorted((r for r in rated if not r.excluded), key=lambda r: -r.low)
    most = BEST * sum(weights[criterion] for criterion in criteria)
    best = ranked[0] if most else None
    others = ranked[1:]
    return Recommendation(
        role=role,
        most=most,
        ranked=tuple(ranked),
        excluded=tuple(r for r in rated if r.excluded),
        best=best,
        is_certain=best is not None and all(r.high <= best.low for r in others),
        reasons=tuple(_reasons(role, best, others)) if best else (),
        doubts=tuple(_doubts(role, best, others, facts)) if best else (),
    )


def recommend_all(weights: Weights, facts: ReaderFacts) -> list[Recommendation]:
    return [recommend(role, weights=weights, facts=facts) for role in Role]


def _exclusion(role: Role, protocol: Protocol, facts: ReaderFacts) -> Said | None:
    if role == Role.WORKSPACES and protocol in BLOCK:
        return Said(
            text="Workspaces are clones of volumes, which hosts mount as files.",
            source=OURS,
        )
    if role == Role.DEPOTS and facts.shares_archives and protocol in BLOCK:
        return Said(
            text="Replicas on other hosts share the archives, and "
            "only one host has this.",
            source=SHARED_ARCHIVES,
        )
    return None


def _reasons(role: Role, best: Rated, others: list[Rated]) -> Iterator[Said]:
    second = others[0] if others else None
    for line in best.lines:
        if not line.weight:
            continue
        against = ""
        if second is not None:
            [theirs] = [x for x in second.lines if x.criterion == line.criterion]
            if theirs.low < line.low:
                against = f" {second.protocol.label}: {theirs.score.word}."
        yield Said(
            text=f"{line.criterion.label}: {line.score.word}. {line.score.why}."
            f"{against}",
            source=line.score.source,
        )


def _doubts(
    role: Role, best: Rated, others: list[Rated], facts: ReaderFacts
) -> Iterator[Said]:
    for other in others:
        if other.high > best.low:
            unknown = [x for x in other.lines if x.weight and x.score.value is None]
            yield Said(
                text=f"{other.protocol.label} could reach {other.high} where this has "
                f"{best.low}: its {_criteria(unknown)} is not known."
            )
        elif other.low == best.low:
            yield Said(
                text=f"{other.protocol.label} has as much. Choose by what you know of "
                "it."
            )
    for doubt, said in (
        (Doubt.INFERRED, "Inferred from sources"),
        (Doubt.UNVERIFIED, "Our judgment, without a source"),
    ):
        lines = [x for x in best.lines if x.weight and x.score.doubt == doubt]
        if lines:
            yield Said(text=f"{said}: {_criteria(lines)}.")
    bad = [x for x in best.lines if x.weight and x.score.value == BAD]
    if bad:
        yield Said(text=f"It is bad by {_criteria(bad)}: your weights outvote that.")
    yield from _doubts_of_protocol(role, best.protocol)
    yield from _doubts_of_facts(role, best.protocol, facts)


def _criteria(lines: Iterable[Line]) -> str:
    return ", ".join(line.criterion.label.lower() for line in lines)


def _doubts_of_protocol(role: Role, protocol: Protocol) -> Iterator[Said]:
    if role == Role.DB and protocol in NAS:
        yield Said(
            text="Perforce supports a database over NFS only where flock works, and "
            "recommends local disks or a SAN.",
            source=FILESYSTEM,
        )
    if role == Role.DB and protocol == Protocol.NFS3:
        yield Said(
            text="If one host alone mounts it, nocto and local_lock=all speed it up. "
            "With two hosts they can corrupt files.",
            source=TR,
        )
    if role == Role.DB and protocol == Protocol.NFS41:
        yield Said(
            text="Its locks always go to the storage: local_lock is for NFSv3.",
            source=NFS5,
        )
    if role in (Role.DB, Role.JOURNAL, Role.DEPOTS) and protocol in BLOCK:
        kind = "LUNs" if protocol in SAN else "local disks"
        yield Said(
            text=f"Cloneyard makes no sandboxes, checkpoints or drills of {kind}.",
            source=OURS,
        )


def _doubts_of_facts(
    role: Role, protocol: Protocol, facts: ReaderFacts
) -> Iterator[Said]:
    if (
        role in (Role.DB, Role.JOURNAL, Role.LOG)
        and facts.commands_a_day is not None
        and facts.commands_a_day > PUBLISHED_COMMANDS_A_DAY
    ):
        yield Said(
            text=f"{facts.commands_a_day:,} commands a day are more than any published "
            f"installation has that we know ({PUBLISHED_COMMANDS_A_DAY:,}, on SAN). "
            "Measure first.",
            source=MULTI_SITE,
        )
    if role == Role.DEPOTS and protocol not in (Protocol.LOCAL,):
        size = archive_bytes_ahead(facts)
        if size is not None and size > LARGEST_PLAIN_VOLUME:
            yield Said(
                text=f"In {YEARS_AHEAD} years archives take {size_text(size)}: more "
                "than a volume of ONTAP holds unless it is made for it. Spread depots "
                "over volumes.",
                source=LARGE_VOLUMES,
            )
        elif facts.archive_bytes is not None and facts.growth_percent is None:
            yield Said(text="The growth of archives was not given, so it is left out.")


def archive_bytes_ahead(facts: ReaderFacts) -> int | None:
    """Return how large archives are in three years; None if it is not known."""
    if facts.archive_bytes is None or facts.growth_percent is None:
        return None
    size = facts.archive_bytes
    for _ in range(YEARS_AHEAD):
        size += size * facts.growth_percent // 100
    return size


def remarks(facts: ReaderFacts) -> list[Said]:
    """Return what the facts say of all roles together."""
    found = []
    if facts.commands_a_day is not None and (
        facts.commands_a_day <= PUBLISHED_COMMANDS_A_DAY
    ):
        found.append(
            Said(
                text=f"{facts.commands_a_day:,} commands a day are within what NetApp "
                f"published of its own server ({PUBLISHED_COMMANDS_A_DAY:,}): it had "
                "database, journal and log on SAN.",
                source=MULTI_SITE,
            )
        )
    if facts.users is not None:
        memory = facts.users * BYTES_PER_USER
        fits = ""
        if facts.db_bytes is not None:
            fits = (
                " The database fits into that, so storage serves mainly writes."
                if facts.db_bytes <= memory
                else " The database is larger, so reads reach the storage, too."
            )
        found.append(
            Said(
                text=f"{facts.users:,} users take {size_text(memory)} of memory.{fits}",
                source=REQUIREMENTS,
            )
        )
    ahead = archive_bytes_ahead(facts)
    if ahead is not None:
        found.append(
            Said(text=f"Archives take {size_text(ahead)} in {YEARS_AHEAD} years.")
        )
    if facts.is_distributed:
        found.append(
            Said(
                text="Each edge server and replica has a database, a journal and a log "
                "of its own: what is recommended here is for each of them.",
                source=MULTI_SITE,
            )
        )
    return found
