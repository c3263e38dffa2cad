"""What lister and workers send each other arrives as it was."""

from __future__ import annotations

import mmap
import os
import socket

from hypothesis import given
from hypothesis import strategies as st

from provisioner.gateways.hosts.trees import wire

NAME = st.binary(min_size=1, max_size=255).filter(lambda b: not {0, 47} & set(b))
NUMBER = st.integers(0, 2**32 - 1)


@given(groups=st.lists(st.lists(NAME, min_size=1, max_size=8), min_size=1, max_size=16))
def test_batches_arrive_with_their_directories(groups: list[list[bytes]]) -> None:
    sending, receiving = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sending, receiving:
        wire.send_batch(
            sending,
            number=7,
            operation=wire.UNLINK,
            threads=48,
            links=3,
            directories=[
                (receiving.fileno(), [os.fsdecode(name) for name in names])
                for names in groups
            ],
        )
        batch = wire.receive_batch(receiving, mmap.mmap(-1, wire.MOST_BYTES))
        for descriptor, _ in batch.directories:
            assert os.path.samestat(os.fstat(descriptor), os.fstat(receiving.fileno()))
            os.close(descriptor)
    assert (batch.number, batch.operation) == (7, wire.UNLINK)
    assert (batch.threads, batch.links) == (48, 3)
    assert [names for _, names in batch.directories] == groups


@given(
    counts=st.tuples(NUMBER, NUMBER, NUMBER, NUMBER, NUMBER),
    waited=st.floats(0, 1e6, width=32),
    failed=st.lists(st.tuples(NUMBER, NUMBER)),
    skipped=st.lists(NUMBER),
    linked=st.lists(st.tuples(NUMBER, st.integers(0, 2**64 - 1), NUMBER)),
)
def test_outcomes_arrive_as_they_were(
    counts: tuple[int, int, int, int, int],
    waited: float,
    failed: list[tuple[int, int]],
    skipped: list[int],
    linked: list[tuple[int, int, int]],
) -> None:
    outcome = wire.Outcome(
        *counts,
        waited_seconds=waited,
        failed=failed,
        skipped=skipped,
        linked=linked,
    )
    assert wire.decode_outcome(wire.encode_outcome(outcome)) == outcome
