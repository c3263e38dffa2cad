"""Plan which acts free so much space: the lightest set. No row is read."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PRUNE_WEIGHT = 1


class Kind(enum.Enum):
    """What is done to free space."""

    RETIRE = "retire"
    SPLIT = "split"
    PRUNE = "prune"


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A workspace, by its key, as far as space is concerned.

    Retiring it frees `own_bytes` and weighs `retire_weight`; None: it is not to be
    retired. Splitting it takes `split_bytes` and weighs `split_weight`; None: it cannot
    be split.
    """

    key: int
    own_bytes: int
    retire_weight: int | None
    split_bytes: int = 0
    split_weight: int | None = None


@dataclass(frozen=True, kw_only=True)
class Held:
    """A snapshot, by its key, with the workspaces that need it.

    Once none of them does, it is deleted and frees `frees_bytes`, unless something else
    keeps it. Workspaces without a snapshot share one of key None.
    """

    key: int | None
    frees_bytes: int
    is_kept: bool
    holders: tuple[Holder, ...]


class Act(NamedTuple):
    """One thing to do: to a workspace, or for PRUNE to a snapshot, by its key.

    `frees_bytes` is negative for a split, which takes space. What a snapshot frees goes
    to the last act on those that need it.
    """

    kind: Kind
    key: int
    frees_bytes: int
    weight: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The acts that free at least `wanted_bytes`, or as much as can be freed."""

    wanted_bytes: int
    acts: tuple[Act, ...]

    @property
    def frees_bytes(self) -> int:
        return sum(act.frees_bytes for act in self.acts)

    @property
    def weight(self) -> int:
        return sum(act.weight for act in self.acts)

    @property
    def is_enough(self) -> bool:
        return self.frees_bytes >= self.wanted_bytes


class _Way(NamedTuple):
    """A set of acts by its weight, linked to the set that it adds to."""

    frees_bytes: int
    acts: tuple[Act, ...]
    before: _Way | None


_Ways = dict[int, _Way]
"""The ways that free most, by their weight."""

_NOTHING = _Way(0, (), None)


def plan(snapshots: Iterable[Held], *, wanted_bytes: int) -> Plan:
    """Return the plan of the least weight that frees enough; of such, what frees most.

    If nothing frees enough, it is the plan that frees most.

    A greedy plan bounds the weight. Below it, the best set of each weight is built up
    snapshot by snapshot, which is exact: only those that need one snapshot depend on
    each other. The time grows with that weight times the number of workspaces.
    """
    ways_of_each = [_best(_ways_with(each)) for each in snapshots]
    bound = _greedy_weight(ways_of_each, wanted_bytes=wanted_bytes)
    if bound is None:
        most = [max(ways.values(), key=lambda way: way[0]) for ways in ways_of_each]
        acts = tuple(act for way in most for act in _acts(way))
        return Plan(wanted_bytes=wanted_bytes, acts=acts)
    together: _Ways = {0: _NOTHING}
    for ways in ways_of_each:
        together = _best(_joined(together, ways, most=bound))
    weight = min(
        weight for weight, way in together.items() if way.frees_bytes >= wanted_bytes
    )
    return Plan(wanted_bytes=wanted_bytes, acts=tuple(_acts(together[weight])))


def _ways_with(snapshot: Held) -> _Ways:
    """Return the ways with the workspaces of one snapshot, by weight."""
    retire_some: _Ways = {0: _NOTHING}
    end_all: _Ways = {0: _NOTHING}
    for holder in snapshot.holders:
        choices = _choices(holder)
        retiring = [act for act in choices if act.kind is Kind.RETIRE]
        retire_some = _joined(retire_some, _as_ways(retiring), may_skip=True)
        end_all = _joined(end_all, _as_ways(choices), may_skip=False)
    if snapshot.is_kept or snapshot.key is None:
        return retire_some
    if not snapshot.holders:
        act = Act(Kind.PRUNE, snapshot.key, snapshot.frees_bytes, PRUNE_WEIGHT)
        return _joined(retire_some, _as_ways([act]), may_skip=True)
    freed = {
        weight: _with_last(way, more_bytes=snapshot.frees_bytes)
        for weight, way in end_all.items()
    }
    return _merged(retire_some, freed)


def _choices(holder: Holder) -> list[Act]:
    """Return what can be done with a workspace."""
    found = []
    if holder.retire_weight is not None:
        found.append(
            Act(Kind.RETIRE, holder.key, holder.own_bytes, holder.retire_weight)
        )
    if holder.split_weight is not None:
        found.append(
            Act(Kind.SPLIT, holder.key, -holder.split_bytes, holder.split_weight)
        )
    return found


def _as_ways(acts: Sequence[Act]) -> _Ways:
    """Return the best one of these acts, by weight."""
    ways: _Ways = {}
    for act in acts:
        ways = _merged(ways, {act.weight: _Way(act.frees_bytes, (act,), None)})
    return ways


def _with_last(way: _Way, *, more_bytes: int) -> _Way:
    """Return a way whose last act frees so much more."""
    *acts, last = way.acts
    freer = last._replace(frees_bytes=last.frees_bytes + more_bytes)
    return _Way(way.frees_bytes + more_bytes, (*acts, freer), way.before)


def _joined(
    some: _Ways, others: _Ways, *, most: int | None = None, may_skip: bool = True
) -> _Ways:
    """Return the ways of both sides together, up to a weight.

    With `may_skip`, also those with nothing of the others.
    """
    found = dict(some) if may_skip else {}
    added_ones = [
        (weight, way.frees_bytes, tuple(_acts(way))) for weight, way in others.items()
    ]
    for weight, way in some.items():
        for added, added_bytes, acts in added_ones:
            total, frees = weight + added, way.frees_bytes + added_bytes
            is_too_heavy = most is not None and total > most
            if is_too_heavy or (total in found and found[total].frees_bytes >= frees):
                continue
            found[total] = _Way(frees, acts, way)
    return found


def _merged(some: _Ways, others: _Ways) -> _Ways:
    """Return the better way of each weight."""
    found = dict(some)
    for weight, way in others.items():
        if weight not in found or found[weight].frees_bytes < way.frees_bytes:
            found[weight] = way
    return found


def _best(ways: _Ways) -> _Ways:
    """Return the ways that no lighter one equals, lightest first."""
    found: _Ways = {}
    most = -1
    for weight in sorted(ways):
        if ways[weight].frees_bytes > most:
            found[weight] = ways[weight]
            most = ways[weight].frees_bytes
    return found


def _greedy_weight(ways_of_each: Sequence[_Ways], *, wanted_bytes: int) -> int | None:
    """Return the weight of a plan that frees enough, None if there is none.

    Each time it takes what frees most for its weight.
    """
    taken = [0 for _ in ways_of_each]
    freed = weight = 0
    while freed < wanted_bytes:
        steps = [
            (
                (way.frees_bytes - ways[lighter].frees_bytes) / (heavier - lighter),
                number,
                heavier,
            )
            for number, (ways, lighter) in enumerate(
                zip(ways_of_each, taken, strict=True)
            )
            for heavier, way in ways.items()
            if heavier > lighter
        ]
        if not steps:
            return None
        _, number, heavier = max(steps)
        ways, lighter = ways_of_each[number], taken[number]
        freed += ways[heavier].frees_bytes - ways[lighter].frees_bytes
        weight += heavier - lighter
        taken[number] = heavier
    return weight


def _acts(way: _Way | None) -> Iterable[Act]:
    """Yield the acts of a way, those of the first snapshot first."""
    parts = []
    while way is not None:
        parts.append(way.acts)
        way = way.before
    for part in reversed(parts):
        yield from part
