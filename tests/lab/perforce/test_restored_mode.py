"""The kind of server that wrote a checkpoint, told by its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.lab.perforce.journal import records
from provisioner.lab.perforce.restored_mode import RestoredMode
from provisioner.lab.perforce.state import PerforceConfig
from tests.support.checkpoints import users

UNICODE = "@pv@ 1 @db.counters@ @unicode@ @1@ \n"


@pytest.mark.parametrize(
    ("rows", "option", "warned"),
    [
        (users("aa", "AX"), "", "server that ignores case, and this one does not"),
        (users("aa", "AX"), "ignores_case", ""),
        (users("AX", "aa"), "ignores_case", "server on which case matters, and this"),
        (users("AX", "aa"), "", ""),
        (users("aa", "AX", "aa", "BX"), "", ""),  # a journal is in no order
        (users("aa", "ab"), "ignores_case", ""),
        (UNICODE, "", "server in Unicode mode, and this one is not"),
        (UNICODE, "is_unicode", ""),
        (users("aa"), "is_unicode", "not in Unicode mode, and this one is"),
    ],
)
def test_another_kind_of_server_is_warned_of(
    rows: str, option: str, warned: str, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(rows)
    config = PerforceConfig(
        root=tmp_path,
        ignores_case=option == "ignores_case",
        is_unicode=option == "is_unicode",
    )
    mode = RestoredMode()

    for record in records(path):
        mode.see(record)

    warnings = mode.warnings(config)
    assert len(warnings) == bool(warned), warnings
    assert warned in "".join(warnings)
