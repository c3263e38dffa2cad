"""RCS archives: every revision comes back byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.lab.perforce import rcs
from tests.support.rcs_archives import archive

TEXT = st.lists(
    st.sampled_from([b"a", b"b", b"@", b"@@", b"\r", b"", b"1.1", b"d1 1", b"x;y:"]),
    max_size=6,
).map(b"\n".join)


@given(st.lists(TEXT, min_size=1, max_size=5))
def test_every_revision_is_what_was_stored(texts: list[bytes]) -> None:
    found = dict(rcs.revisions(archive(texts)))

    assert found == {f"1.{index + 1}": text for index, text in enumerate(texts)}


def test_what_is_no_archive_is_refused() -> None:
    with pytest.raises(rcs.RcsError):
        list(rcs.revisions(b"hello\n"))
    with pytest.raises(rcs.RcsError):
        list(rcs.revisions(b"head 1.1;\n1.1\nnext ;\ndesc\n@@\n"))
