"""What would surprise the owner of a clone."""

from __future__ import annotations

import json
import os
from pathlib import Path

from provisioner.gateways.hosts.tree_remarks import remarks_on_tree


def kinds(root: Path) -> list[tuple[str, str]]:
    return sorted((finding.kind, finding.path) for finding in remarks_on_tree(root))


def test_a_plain_tree_has_no_findings(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.c").touch()
    (tmp_path / "src" / "link").symlink_to("main.c")
    (tmp_path / "up").symlink_to("../elsewhere")

    assert remarks_on_tree(tmp_path) == []


def test_p4config_files_are_found_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".p4config").touch()
    (tmp_path / "a" / "b" / ".p4config").touch()

    assert kinds(tmp_path) == [("p4config", ".p4config"), ("p4config", "a/b/.p4config")]


def test_absolute_links_are_found_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".p4config").touch()
    root = tmp_path / "root"
    root.mkdir()
    (root / "to-outside").symlink_to(outside)
    (root / "dangling").symlink_to("/no/such/place")

    findings = {finding.path: str(finding) for finding in remarks_on_tree(root)}

    assert set(findings) == {"to-outside", "dangling"}
    assert "/no/such/place" in findings["dangling"]


def test_names_that_differ_in_case_only_are_found(tmp_path: Path) -> None:
    for name in ("Readme", "README", "readme", "other"):
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "OTHER").touch()

    assert [kind for kind, _ in kinds(tmp_path)] == ["case_clash"] * 2


def test_of_a_kind_twenty_are_kept_and_the_rest_is_counted(tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"link{number}").symlink_to("/")
    (tmp_path / ".p4config").touch()

    findings = remarks_on_tree(tmp_path)

    assert len(findings) == 22
    assert findings[-1].sentence == "absolute_symlink: 5 more."


def test_names_that_are_no_text_can_be_stored(tmp_path: Path) -> None:
    os.symlink("/ä", bytes(tmp_path) + b"/\xff")
    os.symlink(b"/\xfe", bytes(tmp_path) + b"/\xfd")

    findings = remarks_on_tree(tmp_path)

    assert len(findings) == 2
    for finding in findings:
        json.dumps(str(finding), ensure_ascii=False).encode()
        finding.path.encode()
