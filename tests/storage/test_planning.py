"""The lightest plan that frees enough, against every plan there is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from provisioner.storage.planning import Held, Holder, Kind, plan

WEIGHTS = st.sampled_from([None, 1, 2, 10])


@st.composite
def snapshots_of_few(draw: st.DrawFn) -> list[Held]:
    """At most three snapshots, which at most five workspaces need."""
    keys = itertools.count(1)
    owners = draw(st.lists(st.integers(0, 2), max_size=5))
    return [
        Held(
            key=None if number == 0 else number,
            frees_bytes=draw(st.integers(0, 30)),
            is_kept=draw(st.booleans()),
            holders=tuple(
                Holder(
                    key=next(keys),
                    own_bytes=draw(st.integers(0, 20)),
                    retire_weight=draw(WEIGHTS),
                    split_bytes=draw(st.integers(0, 20)),
                    split_weight=draw(st.sampled_from([None, 3])),
                )
                for _ in range(owners.count(number))
            ),
        )
        for number in range(3)
    ]


def every_plan(snapshots: list[Held]) -> Iterator[tuple[int, int]]:
    """Yield weight and freed bytes of all that could be done."""
    holders = [(each, holder) for each in snapshots for holder in each.holders]
    alone = [
        each
        for each in snapshots
        if each.key is not None and not each.is_kept and not each.holders
    ]
    ways: list[list[str]] = [
        [
            "keep",
            *(["retire"] if holder.retire_weight is not None else []),
            *(["split"] if holder.split_weight is not None else []),
        ]
        for _, holder in holders
    ]
    for chosen in itertools.product(*ways, *(["keep", "prune"] for _ in alone)):
        weight = freed = 0
        kept = set()
        for (snapshot, holder), way in zip(holders, chosen, strict=False):
            if way == "retire":
                weight, freed = (
                    weight + (holder.retire_weight or 0),
                    (freed + holder.own_bytes),
                )
            elif way == "split":
                weight, freed = (
                    weight + (holder.split_weight or 0),
                    (freed - holder.split_bytes),
                )
            else:
                kept.add(snapshot.key)
        for snapshot in snapshots:
            is_held = snapshot.is_kept or snapshot.key is None
            if snapshot.holders and not is_held and snapshot.key not in kept:
                freed += snapshot.frees_bytes
        for snapshot, way in zip(alone, chosen[len(holders) :], strict=True):
            if way == "prune":
                weight, freed = weight + 1, freed + snapshot.frees_bytes
        yield weight, freed


@given(snapshots_of_few(), st.integers(1, 80))
def test_no_plan_is_lighter_and_of_those_none_frees_more(
    snapshots: list[Held], wanted: int
) -> None:
    found = plan(snapshots, wanted_bytes=wanted)

    everything = list(every_plan(snapshots))
    enough = [(weight, -freed) for weight, freed in everything if freed >= wanted]
    assert found.is_enough == bool(enough)
    if enough:
        assert (found.weight, -found.frees_bytes) == min(enough)
    else:
        assert found.frees_bytes == max(freed for _, freed in everything)
    keys = [(act.kind is Kind.PRUNE, act.key) for act in found.acts]
    assert len(set(keys)) == len(keys)


def test_a_split_goes_with_what_it_frees() -> None:
    used = Holder(key=2, own_bytes=9, retire_weight=None, split_bytes=5, split_weight=3)
    abandoned = Holder(key=1, own_bytes=1, retire_weight=1)
    snapshot = Held(key=7, frees_bytes=50, is_kept=False, holders=(abandoned, used))

    found = plan([snapshot], wanted_bytes=40)

    assert [(act.kind, act.key) for act in found.acts] == [
        (Kind.RETIRE, 1),
        (Kind.SPLIT, 2),
    ]
    assert (found.frees_bytes, found.weight) == (46, 4)


def test_thousands_are_planned_in_seconds() -> None:
    snapshots = [
        Held(
            key=number,
            frees_bytes=number * 7 % 101,
            is_kept=number % 3 == 0,
            holders=tuple(
                Holder(
                    key=number * 100 + place,
                    own_bytes=place * 13 % 17,
                    retire_weight=(1, 2, 10)[place % 3],
                    split_bytes=3,
                    split_weight=3,
                )
                for place in range(20)
            ),
        )
        for number in range(150)
    ]
    began = time.thread_time()  # however busy the machine is

    assert plan(snapshots, wanted_bytes=4_000).is_enough

    assert time.thread_time() - began < 10
