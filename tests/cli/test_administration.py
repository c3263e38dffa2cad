"""`cloneyard snapshot-policies`, `processes` and `upload-log`, for administrators."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.catalog.models import Template
from provisioner.cli import cloneyard
from provisioner.insight.models import ProcessEnding
from provisioner.server_log.models import LogUpload
from provisioner.server_log.sweeps import read_log_upload
from provisioner.workspace_snapshots.models import SnapshotPolicy
from tests.server_log.logs import MIXED
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import (
    PerforceServerFactory,
    ProcessFactory,
    TemplateFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def as_admin(command_line: CommandLine, admin: User) -> CommandLine:
    _, secret = token_create(by=admin)
    command_line.environment["CLONEYARD_TOKEN"] = secret
    return command_line


@pytest.mark.parametrize("command", ["snapshot-policies", "processes"])
def test_they_are_for_administrators(command: str, command_line: CommandLine) -> None:
    hers = command_line.run(command)
    ended_with(hers, cloneyard.REFUSED, saying="You may not do this")


def test_a_policy_is_set_changed_and_deleted(as_admin: CommandLine) -> None:
    template: Template = TemplateFactory.create()
    site = template.site.name
    assert "No policies" in as_admin.run("snapshot-policies").stderr

    [made] = printed(
        as_admin.run(
            *("snapshot-policies", site, "--template", template.name),
            *("--purpose", "development", "--hourly", "6", "--json"),
        )
    )

    assert (made["template"], made["purpose"]) == (template.pk, "development")
    assert (made["hourly"], made["daily"], made["max_percent"]) == (6, 7, 0)
    of_template = ("snapshot-policies", site, "--template", template.name)
    as_admin.run(*of_template, "--purpose", "development", "--max-percent", "80")
    as_admin.run(*of_template, "--purpose", "development", "--daily", "3")
    shown = as_admin.run("snapshot-policies").stdout.splitlines()[1].split()
    assert shown[1:6] == [site, str(template.pk), "development", "6", "3"]
    assert shown[6:] == ["80", "%"]
    assert "No policies" in as_admin.run("snapshot-policies", "elsewhere").stderr
    of_what = as_admin.run("snapshot-policies", site, "--purpose", "development")
    ended_with(of_what, cloneyard.USAGE, saying="Say what is kept")
    gone = as_admin.run("snapshot-policies", "--delete", str(made["id"]))
    assert (gone.returncode, SnapshotPolicy.objects.count()) == (0, 0)
    of_none = as_admin.run("snapshot-policies", "--daily", "3")
    ended_with(of_none, cloneyard.USAGE, saying="Name the site")
    wrong = as_admin.run("snapshot-policies", site, "--hourly", "1000")
    ended_with(wrong, cloneyard.REFUSED, saying="hourly")


def test_processes_are_listed_and_ended(as_admin: CommandLine) -> None:
    process = ProcessFactory.create()
    own = ProcessFactory.create(server=process.server, command="pull", user="svc")

    listed = as_admin.run("processes", "--user", "alice", "--at-least", "10m").stdout
    assert str(process.number) in listed
    assert "pull" not in listed
    assert "No processes." in as_admin.run("processes", "--at-least", "2h").stderr
    ended = as_admin.run("processes", "--end", str(process.pk))

    assert f"Process {process.number} at {process.server.name}, sync of alice" in (
        ended.stdout
    )
    assert ProcessEnding.objects.get().number == process.number
    refused = as_admin.run("processes", "--end", str(own.pk))
    ended_with(refused, cloneyard.REFUSED, saying="belongs to the server itself")


def test_a_log_is_sent_and_its_outcome_is_told(
    as_admin: CommandLine, tmp_path: Path, settings: Any
) -> None:
    settings.LOG_DIR = tmp_path / "logs"
    settings.SERVER_LOG_DAYS = 20_000
    server = PerforceServerFactory.create().name
    log, other = tmp_path / "log.gz", tmp_path / "other"
    log.write_bytes(gzip.compress(os.fsencode(MIXED)))
    other.write_text("x\n" * 500)

    sent = as_admin.run("upload-log", server, str(log), "--no-wait")
    no_log = as_admin.run("upload-log", server, str(other))
    missing = as_admin.run("upload-log", server, str(tmp_path / "none"))
    [upload] = LogUpload.objects.all()
    read_log_upload(upload.pk)

    assert "log.gz is uploaded" in sent.stdout
    ended_with(no_log, cloneyard.REFUSED, saying="not the log of a Perforce server")
    ended_with(missing, cloneyard.USAGE, saying="No such file")
    upload.refresh_from_db()
    assert upload.message == (
        "Read 5 commands (1 not ended yet) and 1 error. 1 text that is not UTF-8."
    )
