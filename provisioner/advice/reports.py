"""Advice as pages and the API show it: recommendations beside what is in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from provisioner.advice.deviations import Fit, Held, InUse, hold_all
from provisioner.advice.kinds import Criterion
from provisioner.advice.overviews import places_in_use
from provisioner.advice.queries import servers_with_storage
from provisioner.advice.recommending import (
    Line,
    Rated,
    ReaderFacts,
    Recommendation,
    Weights,
    recommend_all,
)
from provisioner.insight.models import ServerConfiguration
from provisioner.sites.models import PerforceServer, ServerKind

FIT_LABELS = {
    Fit.DEVIATES: "Deviates",
    Fit.UNKNOWN: "Not known",
    Fit.FITS: "Fits",
}
# The marks of states that pages have.
FIT_MARKS = {Fit.DEVIATES: "advised", Fit.UNKNOWN: "skipped", Fit.FITS: "passed"}


@dataclass(frozen=True, kw_only=True)
class ShownPlace:
    """A place in use, with the label and mark of what is said of it."""

    held: Held

    @property
    def place(self) -> InUse:
        return self.held.place

    @property
    def label(self) -> str:
        return FIT_LABELS[self.held.fit]

    @property
    def mark(self) -> str:
        return FIT_MARKS[self.held.fit]


@dataclass(frozen=True, kw_only=True)
class ShownRating:
    """A protocol's row of the table of scores."""

    rated: Rated
    is_best: bool
    cells: tuple[Line | None, ...]


@dataclass(frozen=True, kw_only=True)
class ShownAdvice:
    """A role's recommendation; `criteria` are the columns of its scores."""

    found: Recommendation
    criteria: tuple[Criterion, ...]

    @property
    def mark(self) -> str:
        if self.found.best is None:
            return "skipped"
        return "passed" if self.found.is_certain else "advised"

    @property
    def label(self) -> str:
        if self.found.best is None:
            return "No weight"
        return "Clear" if self.found.is_certain else "Close call"

    @property
    def rows(self) -> list[ShownRating]:
        best = self.found.best
        return [
            ShownRating(rated=r, is_best=r is best, cells=r.lines)
            for r in (*self.found.ranked, *self.found.excluded)
        ]


def shown_advice(weights: Weights, facts: ReaderFacts) -> list[ShownAdvice]:
    return [
        ShownAdvice(
            found=found,
            criteria=tuple(line.criterion for line in found.ranked[0].lines),
        )
        for found in recommend_all(weights, facts)
    ]


def shown_places(advice: Sequence[ShownAdvice]) -> list[ShownPlace]:
    """Return what is in use, held against the advice: what deviates first."""
    found = {each.found.role: each.found for each in advice}
    return [ShownPlace(held=held) for held in hold_all(places_in_use(), found)]


@dataclass(frozen=True, kw_only=True)
class KnownFacts:
    """What Cloneyard knows of a server, as a part of an address."""

    server: str
    said: str
    query: str


def known_facts() -> list[KnownFacts]:
    """Return the facts of each server that says how many users it has."""
    servers = list(servers_with_storage())
    is_distributed = any(each.kind != ServerKind.COMMIT for each in servers)
    found = []
    for server in servers:
        users = _users(server)
        if server.kind == ServerKind.COMMIT and users is not None:
            query: dict[str, object] = {"users": users}
            if is_distributed:
                query["is_distributed"] = "on"
            found.append(
                KnownFacts(
                    server=server.name,
                    said=f"{users:,} users",
                    query=urlencode(query),
                )
            )
    return found


def _users(server: PerforceServer) -> int | None:
    read: ServerConfiguration | None = getattr(server, "configuration", None)
    return read.users if read is not None else None
