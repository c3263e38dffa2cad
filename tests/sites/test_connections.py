"""What a test of a connection names: one fault of the lab after another."""

from __future__ import annotations

import json
import os
import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.engine.workers import AliveWorker
from provisioner.gateways import registry
from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts import mounts
from provisioner.gateways.hosts.build import BuildResult
from provisioner.gateways.hosts.mounts import Mount
from provisioner.gateways.ontap.types import ExportRule
from provisioner.sites.actions.sites import (
    perforce_server_test,
    site_save,
    site_test,
    site_try_out,
)
from provisioner.sites.connections import sandbox, trial
from provisioner.sites.connections.checklist import Check
from provisioner.sites.connections.hosts import check_from_host
from provisioner.sites.connections.ontap import check_ontap
from provisioner.sites.connections.perforce import check_perforce
from provisioner.sites.connections.trial import COMMENT, PREFIX, _Trial, try_out
from provisioner.sites.export_policies import policies_of
from provisioner.sites.models import ConnectionTest, PerforceServer, Site
from provisioner.sites.queries import connection_of
from tests.support.factories import SiteFactory
from tests.support.lab import Lab
from tests.support.lab_perforce import lab_server

AS_ROOT = os.geteuid() == 0


def named(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def failed(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if check.outcome == "failed"]


def only_failure(checks: list[Check]) -> Check:
    """Return the one that failed; what needs it was left out."""
    [name] = failed(checks)
    return named(checks)[name]


@pytest.fixture
def server(lab_site: Site) -> PerforceServer:
    return lab_site.perforce_server


# --- ONTAP


def test_all_is_well_with_the_labs_ontap(lab_site: Site) -> None:
    checks = check_ontap(lab_site)

    assert [c for c in checks if c.outcome != "passed"] == []
    assert "ONTAP 9." in named(checks)["ontap_sign_in"].sentence
    assert not any(c.advice for c in checks)


def test_a_failure_skips_the_checks_that_depend_on_it(
    lab_site: Site,
) -> None:
    lab_site.ontap_port = 9
    checks = check_ontap(lab_site)

    assert only_failure(checks).sentence.endswith("nothing listens on port 9.")
    assert [c.outcome for c in checks[2:]] == ["skipped"] * (len(checks) - 2)


ONTAP_FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "name": ({"ontap_host": "no\x00such"}, "ontap_address", "cannot be resolved"),
    "no file": ({"ontap_ca_file": "/no/ca.pem"}, "ontap_certificate", "is not there"),
    "no certificate": (
        {"ontap_ca_file": "/etc/passwd"},
        "ontap_certificate",
        "no certificate in PEM form",
    ),
    "another authority": (
        {"ontap_ca_file": ""},
        "ontap_certificate",
        "is not accepted: ",
    ),
    "svm": ({"svm": "svm_of_others"}, "svm", "It sees: svm"),
    "aggregate": ({"aggregate": "aggr9"}, "aggregate", "is not assigned to the SVM"),
}


@pytest.mark.parametrize("fault", ONTAP_FAULTS)
def test_what_is_wrong_in_a_sites_row_is_named(fault: str, lab_site: Site) -> None:
    fields, name, sentence = ONTAP_FAULTS[fault]
    for field, value in fields.items():
        setattr(lab_site, field, value)

    failure = only_failure(check_ontap(lab_site))

    assert failure.name == name
    assert sentence in failure.sentence
    assert failure.advice


def test_a_password_that_is_wrong_missing_or_in_a_lost_file_is_named(
    lab_site: Site, settings: Any
) -> None:
    settings.SITE_SECRET = lambda name, *, key: "wrong"
    failure = only_failure(check_ontap(lab_site))
    assert failure.name == "ontap_sign_in"
    assert "does not accept our user and password" in failure.sentence
    assert "wrong" not in failure.sentence + failure.advice

    settings.SITE_SECRET = lambda name, *, key: ""
    failure = only_failure(check_ontap(lab_site))
    assert failure.sentence == (
        "Neither ONTAP_PASSWORD_LAB nor ONTAP_PASSWORD is set for this process."
    )

    def lost(name: str, *, key: str) -> str:
        raise FileNotFoundError

    settings.SITE_SECRET = lost
    assert "cannot be read" in only_failure(check_ontap(lab_site)).sentence


def test_rules_that_are_not_the_rows_are_named_for_every_policy(
    lab_site: Site,
) -> None:
    lab_site.export_policy = f"exports_{uuid.uuid4().hex[:8]}"
    ontap, site = registry.ontap(lab_site), lab_site
    for name in (site.export_policy, site.frozen_policy, site.templates_policy):
        policy = ontap.create_export_policy(name, rules=policies_of(site)[name])
        ontap.set_export_rules(policy.id, rules=(ExportRule(clients=("0.0.0.0/0",)),))

        check = named(check_ontap(site))["export_policy"]
        assert check.outcome == "remarked"
        assert check.sentence == f"The rules of {name} are not those of this site."

        ontap.set_export_rules(policy.id, rules=policies_of(site)[name])
        assert named(check_ontap(site))["export_policy"].outcome == "passed"


def test_rights_that_our_account_lacks_are_named(lab_site: Site, lab: Lab) -> None:
    no_right = {"status": 403, "code": "6", "message": "not authorized"}
    lab.break_ontap(
        {"path": "/api/cluster/jobs*", **no_right},
        {"path": "/api/cluster/licensing/*", **no_right},
        {"path": "/api/storage/aggregates*", **no_right},
        {"path": "/api/svm/peers*", **no_right},
    )
    checks = named(check_ontap(lab_site))

    assert checks["rights"].outcome == "failed"
    assert "may not read /api/cluster/jobs:" in checks["rights"].sentence
    assert checks["flexclone"].outcome == checks["aggregate"].outcome == "remarked"
    assert checks["mirror_rights"].outcome == "remarked"
    assert "may not read /api/svm/peers." in checks["mirror_rights"].sentence


def test_a_certificate_that_is_out_of_date_is_named(lab_site: Site, lab: Lab) -> None:
    # One connection proves the port, the next one the certificate.
    lab.break_ontap({"expired_certificate": True, "times": 2})

    assert "has expired" in only_failure(check_ontap(lab_site)).sentence
    assert failed(check_ontap(lab_site)) == []


@pytest.mark.parametrize("user", ["vsadmin", "leastadmin", "fsxadmin"])
def test_an_account_without_the_cluster_is_enough(user: str, lab_site: Site) -> None:
    lab_site.ontap_user = user

    checks = check_ontap(lab_site)

    assert failed(checks) == []
    for check in checks:
        if check.outcome == "remarked":
            assert "/api/" in check.advice, check


# --- Perforce


def test_all_is_well_with_the_labs_perforce(server: PerforceServer) -> None:
    checks = check_perforce(server)

    assert failed(checks) == []
    assert named(checks)["perforce_level"].sentence.endswith("is super.")
    assert "writeable" in named(checks)["perforce_clients"].sentence


PERFORCE_FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "closed": ({"p4port": "127.0.0.1:9"}, "perforce_address", "nothing listens"),
    "no address": ({"p4port": "perforce"}, "perforce_address", "host:port"),
    "nobody": ({"p4user": "nobody"}, "perforce_sign_in", "nobody"),
    "charset": ({"p4charset": "utf8"}, "perforce_names", "not in unicode mode"),
}


@pytest.mark.parametrize("fault", PERFORCE_FAULTS)
def test_what_is_wrong_in_a_servers_row_is_named(
    fault: str, server: PerforceServer
) -> None:
    fields, name, sentence = PERFORCE_FAULTS[fault]
    for field, value in fields.items():
        setattr(server, field, value)

    failure = only_failure(check_perforce(server))

    assert failure.name == name
    assert sentence in failure.sentence
    assert failure.advice


def test_a_wrong_password_and_an_ended_ticket_are_named(
    server: PerforceServer, lab: Lab, settings: Any
) -> None:
    settings.SITE_SECRET = lambda name, *, key: "wrong"
    failure = only_failure(check_perforce(server))
    assert "password of" in failure.sentence
    assert "P4PASSWD_LAB" in failure.advice

    settings.SITE_SECRET = lambda name, *, key: "0" * 32
    assert only_failure(check_perforce(server)).name == "perforce_sign_in"

    p4 = lab.as_admin()
    try:
        ticket = p4.run_login("-p", "-a", password=lab.perforce["password"])[0]
    finally:
        p4.disconnect()
    settings.SITE_SECRET = lambda name, *, key: ticket
    found = named(check_perforce(server))["perforce_sign_in"]
    assert "with a ticket" in found.sentence
    lab.break_perforce({"command": "*", "expire_tickets": True, "times": 1})
    failure = only_failure(check_perforce(server))
    assert "has expired" in failure.sentence


def test_a_key_that_is_unknown_or_was_changed_is_named(
    server: PerforceServer, tmp_path: Path, settings: Any
) -> None:
    with lab_server(tmp_path, prefix="ssl:") as running:
        server.p4port = f"ssl:127.0.0.1:{running.port}"
        settings.SITE_SECRET = lambda name, *, key: running.password
        failure = only_failure(check_perforce(server))
        assert failure.name == "perforce_fingerprint"
        assert running.fingerprint in failure.sentence

        server.fingerprint = running.fingerprint
        assert failed(check_perforce(server)) == []

        faults = json.dumps({"changed_fingerprint": True})
        (running.root / "faults.json").write_text(faults)
        failure = only_failure(check_perforce(server))
        assert running.fingerprint in failure.sentence
        assert "someone may be intercepting" in failure.advice


def test_limits_of_the_groups_of_our_account_are_named(
    server: PerforceServer, lab: Lab
) -> None:
    """Those of groups that it is in by way of another count, too."""
    p4 = lab.as_admin()
    try:
        inner = {"Group": "robots", "Users": [server.p4user]}
        p4.input = inner | {"MaxResults": "unlimited", "MaxScanRows": "unset"}
        p4.run("group", "-i")
        p4.input = {"Group": "all", "Subgroups": ["robots"], "MaxScanRows": "50000"}
        p4.run("group", "-i")
        found = named(check_perforce(server))["perforce_limits"]
    finally:
        for name in ("robots", "all"):
            p4.run("group", "-d", name)
        p4.disconnect()
    assert found.outcome == "remarked"
    assert "limit MaxScanRows to 50,000" in found.sentence
    assert "MaxResults" not in found.sentence
    assert "unlimited" in found.advice


@pytest.mark.parametrize(
    ("prefix", "outcome"),
    [("cy-", "failed"), ("c", "failed"), ("cy-main", "failed"), ("ci-", "passed")],
)
def test_a_server_that_sends_our_clients_no_files_is_named(
    prefix: str, outcome: str, server: PerforceServer, lab: Lab
) -> None:
    p4 = lab.as_admin()
    try:
        p4.run("configure", "set", f"zerosyncPrefix={prefix}")
        found = named(check_perforce(server))["perforce_settings"]
    finally:
        p4.run("configure", "unset", "zerosyncPrefix")
        p4.disconnect()
    assert found.outcome == outcome, found


def test_an_account_without_rights_is_named(
    server: PerforceServer, settings: Any
) -> None:
    server.p4user = "carol"
    settings.SITE_SECRET = lambda name, *, key: "lab-password"

    failure = only_failure(check_perforce(server))

    assert failure.name == "perforce_level"
    assert "has no more than" in failure.sentence


# --- a host


def test_a_host_of_the_lab_has_what_it_needs(lab_site: Site) -> None:
    checks = check_from_host(lab_site)

    assert failed(checks) == []
    assert "the lab's namespace" in named(checks)["namespace"].sentence
    assert named(checks)["ontap_sign_in"].outcome == "passed"
    assert named(checks)["perforce_sign_in"].outcome == "passed"


def test_a_host_says_what_holds_commands_and_what_does_not(
    lab_site: Site, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = named(check_from_host(lab_site))["sandbox"]
    assert told.outcome in ("passed", "remarked")
    if AS_ROOT:
        assert told.outcome == "passed"
        assert "their own processes" in told.sentence
    assert settings.SANDBOX_MEMORY_MB > 0, "by default half of what there is"
    assert "Bounded: memory to " in told.sentence
    assert "Not bounded: processors" in told.sentence

    settings.SANDBOX_MEMORY_MB = 0
    told = named(check_from_host(lab_site))["sandbox"]
    assert "Not bounded: memory, processors" in told.sentence

    settings.SANDBOX_CGROUP, settings.SANDBOX_MEMORY_MB = "/nowhere", 512
    settings.SANDBOX_CPUS = 2
    told = named(check_from_host(lab_site))["sandbox"]
    assert told.outcome == "remarked"
    assert "bounded processors (the controller is not enabled)" in told.sentence
    assert "memory to 512 MiB, checked every second" in told.sentence
    if AS_ROOT:
        assert "SANDBOX_CGROUP" in told.advice

    without = {"processes": "Operation not permitted"}
    monkeypatch.setattr(
        sandbox,
        "run_build",
        lambda **asked: BuildResult(
            exit_code=0,
            seconds=0,
            timed_out=False,
            log_bytes=0,
            missing=without,
        ),
    )
    told = named(check_from_host(lab_site))["sandbox"]
    assert told.outcome == "remarked"
    assert "their own processes (Operation not permitted)" in told.sentence
    assert "CAP_SYS_ADMIN" in told.advice


def test_a_host_without_mount_and_rescue_area_says_what_to_do(
    lab_site: Site, lab: Lab
) -> None:
    lab_site.mount_root, lab_site.rescue_root = "/nonexistent/a", "/nonexistent/b"
    checks = named(check_from_host(lab_site))

    assert "mount -t nfs" in checks["mount_root"].advice
    assert checks["namespace"].outcome == "skipped"
    assert checks["rescue_root"].outcome == "failed"
    lab_site.ontap_host, lab_site.ontap_ca_file = "ontap.example", ""
    lab_site.mount_root, lab_site.rescue_root = str(lab.root), ""
    checks = named(check_from_host(lab_site))
    assert "of this host's own" in checks["namespace"].sentence
    assert checks["rescue_root"].outcome == "remarked"


def test_what_is_mounted_instead_of_the_namespace_is_named(tmp_path: Path) -> None:
    """No NFS is mounted here: the rules are tried on what the kernel would list."""
    from provisioner.sites.connections.hosts import _Checks

    site = SiteFactory.build(ontap_host="ontap.example", mount_root="/clones")

    def found(source: str, *options: str) -> tuple[str, str]:
        mount = Mount(
            mount_point=Path("/clones"),
            root="/",
            fs_type="nfs4",
            source=source,
            options=options,
        )
        looks = _Checks(site, nfs_addresses=["127.0.0.1"], mount=mount)
        said = []
        for look in (looks.namespace, looks.mount_options):
            try:
                said.append(look())
            except Exception as error:
                said.append(f"!{error}")
        return said[0], said[1]

    well = found("127.0.0.1:/", "rw", "hard", "nosuid", "nodev")
    assert not any(said.startswith("!") for said in well)
    assert "without nosuid and nodev" in found("127.0.0.1:/", "rw", "hard")[1]
    assert "not an address of the SVM" in found("127.0.0.9:/", "rw")[0]
    assert "not the root of a namespace" in found("127.0.0.1:/vol1", "rw")[0]
    assert "close-to-open" in found("127.0.0.1:/", "rw", "nocto")[1]
    assert "read-only" in found("127.0.0.1:/", "ro")[1]


# --- asking


def test_workers_check_too_once_somebody_asks(
    lab_site: Site, admin: User, run_jobs: Callable[[], None]
) -> None:
    site_test(by=admin, site=lab_site)
    everywhere = [AliveWorker(**WORKER, queues=None)]
    before = connection_of(lab_site, workers=everywhere)
    assert before.health == "looking"
    unserved = connection_of(lab_site, workers=[])
    assert unserved.health == "failed"
    assert "storage" in unserved.first_failure

    run_jobs()
    perforce_server_test(by=admin, server=lab_site.perforce_server)
    run_jobs()

    after = connection_of(Site.objects.get(), workers=[])
    assert after.health == "well", after.first_failure
    assert [report.place for report in after.reports] == ["web", "worker", "host"]
    server = PerforceServer.objects.get()
    assert connection_of(server, workers=[]).health == "well"

    site_save(by=admin, site=lab_site)
    assert list(ConnectionTest.objects.filter(site=lab_site)) == []


def test_a_trial_proves_everything_and_leaves_nothing(
    lab_site: Site, admin: User, run_jobs: Callable[[], None]
) -> None:
    site_try_out(by=admin, site=lab_site)
    run_jobs()

    [report] = connection_of(lab_site, workers=[]).reports
    assert report.place == "trial"
    assert report.failures == []
    assert "2 volumes removed" in report.lines[-1].sentence
    assert registry.ontap(lab_site).list_volumes(comment_prefix=COMMENT) == []


def test_a_trial_leaves_those_of_other_installations_alone(lab_site: Site) -> None:
    """One that is under way on the same SVM, and what it counts as its own."""
    with trial_of_another(lab_site) as volume:
        removed = named(try_out(lab_site))["trial_removed"]

        assert "2 volumes removed" in removed.sentence
        assert registry.ontap(lab_site).find_volume(volume) is not None


@contextmanager
def trial_of_another(site: Site) -> Iterator[str]:
    """Create the trial volume of another installation at the same SVM."""
    with override_settings(SECRET_KEY="of another installation"):
        other = _Trial(
            site=site,
            ontap=registry.ontap(site),
            name=f"{PREFIX}_{secrets.token_hex(4)}",
        )
        other.trial_volume()
    yield other.name
    with override_settings(SECRET_KEY="of another installation"):
        assert other.trial_removed() == "Nothing is left of it (1 volumes removed)."


@pytest.mark.parametrize("shows", [True, False])
def test_a_trial_shows_snapshots_as_the_site_does(
    shows: bool, lab_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab_site.shows_snapshots = shows
    ontap, appeared = registry.ontap(lab_site), mounts.wait_until_visible
    showing: list[str] = []

    def looked(path: Path, *, timeout_seconds: float) -> None:
        appeared(path, timeout_seconds=timeout_seconds)
        showing.extend(
            ontap.list_showing_snapshots(comment_prefix=COMMENT, shows_snapshots=True)
        )

    monkeypatch.setattr(mounts, "wait_until_visible", looked)

    assert failed(try_out(lab_site)) == []
    assert len(showing) == (2 if shows else 0)


def test_a_trial_names_what_it_could_not_do(
    lab_site: Site, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "SEEN_WITHIN_SECONDS", 0.1)
    lab_site.mount_root = str(lab.root / "rescue")
    failure = only_failure(try_out(lab_site))
    assert failure.name == "trial_seen"
    assert "did not appear on this host" in failure.sentence

    no_right = {"status": 403, "code": "6", "message": "not authorized"}
    lab.break_ontap({"method": "POST", "path": "/api/storage/*", **no_right})
    failure = only_failure(try_out(lab_site))
    assert failure.name == "trial_volume"
    assert "not permitted to do this" in failure.sentence
    lab.break_ontap()
    assert registry.ontap(lab_site).list_volumes(comment_prefix=COMMENT) == []


WORKER: dict[str, Any] = {
    "host": "host7",
    "process_id": os.getpid(),
    "started_at": None,
    "heard_at": None,
}


@pytest.mark.parametrize(
    ("clients", "workers", "shares"),
    [
        (["10.0.0.0/24"], [], True),
        (["10.0.0.5", "10.0.0.6"], [], True),
        (["@studio"], [], True),
        (["10.0.0.5"], [], False),  # one host does everything
        (["10.0.0.0/24"], ["10.0.0.5"], False),
    ],
)
def test_a_site_that_shares_its_templates_says_so(
    lab_site: Site,
    as_admin: Client,
    clients: list[str],
    workers: list[str],
    shares: bool,
) -> None:
    lab_site.export_clients, lab_site.worker_clients = clients, workers
    lab_site.save()

    check = named(check_ontap(lab_site))["worker_clients"]
    page = as_admin.get(f"/sites/{lab_site.pk}/").text

    assert (check.outcome == "remarked") == shares
    assert ("hosts are not named." in page) == shares
    assert (">Name the workers" in page) == shares


def test_no_password_goes_to_a_host_that_is_not_named(
    lab_site: Site, settings: Settings
) -> None:
    server = lab_site.perforce_server
    settings.SECRET_HOSTS = ["ONTAP.example.com"]
    for ask in (registry.ontap_account, registry.ontap):
        with pytest.raises(Refused, match="SECRET_HOSTS does not name it"):
            ask(lab_site)
    with pytest.raises(Refused, match="SECRET_HOSTS does not name it"):
        registry.perforce(server)
    lab_site.ontap_host = "ontap.EXAMPLE.com"
    assert registry.ontap_account(lab_site).password

    settings.SECRET_HOSTS = ["127.0.0.1", "localhost"]
    assert registry.perforce(server).clients.types()


def test_a_test_says_that_a_host_gets_no_password(
    lab_site: Site, settings: Settings
) -> None:
    settings.SECRET_HOSTS = ["ontap.example.com"]

    of_ontap = named(check_ontap(lab_site))
    of_perforce = named(check_perforce(lab_site.perforce_server))

    assert of_ontap["ontap_password"].outcome == "failed"
    assert "SECRET_HOSTS" in of_ontap["ontap_password"].advice
    assert of_ontap["ontap_sign_in"].outcome == "skipped"
    assert of_perforce["perforce_password"].outcome == "failed"
    assert of_perforce["perforce_sign_in"].outcome in ("failed", "skipped")
