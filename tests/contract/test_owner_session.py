"""What the demo's owner does first in a workspace, whatever the files are called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from provisioner.gateways.perforce.library import as_text
from tests.support.perforce_scene import PerforceScene, ignore_progress

LATIN = as_text("caf\u00e9/\u00e9t\u00e9.txt".encode("latin-1"))


def test_an_owner_edits_and_reverts_a_file_whose_name_is_not_utf8(
    lab_perforce: PerforceScene,
) -> None:
    """It is the only text of the client, so the session picks it."""
    scene, uid = lab_perforce, os.geteuid()
    change = scene.submit({LATIN: b"1\n", "other": b"1\n"})
    client = scene.make_client()
    scene.gateway.files.sync(client.name, change=change, on_progress=ignore_progress)
    root = Path(client.root)
    (root / ".p4config").write_text(
        f"P4CLIENT={client.name}\nP4PORT={scene.account.port}\n"
        f"P4USER={scene.account.user}\nP4IGNORE=.p4ignore\n"
    )
    (root / ".p4ignore").write_text(".p4*\n")
    os.chmod(root / LATIN, 0o444)
    request = {"root": client.root, "password": scene.account.password}

    done = subprocess.run(
        [sys.executable, "-m", "provisioner.demo.owner_session"],
        input=json.dumps(request | {"uid": uid, "gid": os.getegid()}).encode(),
        capture_output=True,
        cwd=settings.BASE_DIR,
        env={"P4CONFIG": ".p4config", "PATH": os.environ["PATH"]},
        check=False,
    )

    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert seen["edited"] == {
        "path": str(root / LATIN),
        "was_opened": True,
        "was_written": True,
        "is_as_before": True,
    }
    assert seen["differing"] == seen["differing_after_revert"] == []
