"""Submitting to the lab as one of its people."""

from __future__ import annotations

import shutil

from provisioner.demo import depot
from tests.support.lab import Lab


def submit(lab: Lab, *, path: str, text: str = "x\n", user: str = "alice") -> int:
    """Submit a new revision of a depot path (//depot/…); return the change."""
    account = depot.DepotAccount(
        port=lab.perforce["port"], user=user, password="lab-password"
    )
    client = f"submitting-{user}"
    root = lab.root / client
    p4 = depot.connect(account, client=client, scratch=lab.root)
    try:
        form = p4.fetch_client()
        form["Root"], form["Host"] = str(root), ""
        form["View"] = [f"//depot/... //{client}/..."]
        p4.save_client(form)
        file = root / path.removeprefix("//depot/")
        file.parent.mkdir(parents=True, exist_ok=True)
        with p4.at_exception_level(1):
            p4.run("sync", "-f", path)
        if file.exists():
            p4.run("edit", path)
            file.write_text(file.read_text() + text)
        else:
            file.write_text(text)
            p4.run("add", str(file))
        answers = p4.run("submit", "-d", f"Change {path}\n\nWith more to say.")
    finally:
        p4.disconnect()
        shutil.rmtree(root, ignore_errors=True)
    return next(int(a["submittedChange"]) for a in answers if "submittedChange" in a)
