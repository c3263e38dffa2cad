"""The lab's servers, once per test process, and the rows that point at them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import tempfile
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build, template_create
from provisioner.catalog.models import Snapshot, Template
from provisioner.demo import depot
from provisioner.demo.management.commands.lab import Command as LabCommand
from provisioner.demo.processes import Child
from provisioner.gateways import registry
from provisioner.sites.models import PerforceServer, Site
from tests.support.factories import UserFactory, copy_of
from tests.support.jobs import settle
from tests.support.ontap_scene import LabControl

DEPOT = "tree"
# The lab keeps the clones of all tests.
CLONES_OF_ONE = 60
BUILD = "mkdir -p out && cat src/*.txt > out/all && echo built"


@dataclass(frozen=True, kw_only=True)
class Lab:
    """What `manage.py lab` said, and where its files are."""

    root: Path
    ontap: dict[str, Any]
    perforce: dict[str, Any]
    peer: dict[str, Any] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    def break_ontap(self, *rules: dict[str, Any]) -> None:
        """Put these faults into force, in place of those before; none heals it."""
        if not self._changes("ontap", rules):
            return
        account = f"{self.ontap['user']}:{self.ontap['password']}"
        request = urllib.request.Request(
            f"https://{self.ontap['host']}:{self.ontap['port']}/lab/faults",
            method="PUT",
            data=json.dumps({"rules": rules}).encode(),
            headers={
                "Authorization": f"Basic {base64.b64encode(account.encode()).decode()}",
                "Content-Type": "application/json",
            },
        )
        context = ssl.create_default_context(cafile=self.ontap["ca_file"])
        with urllib.request.urlopen(  # noqa: S310 - https, to the lab
            request, timeout=10, context=context
        ) as answer:
            assert answer.status == 200

    def break_perforce(self, *rules: dict[str, Any]) -> None:
        """Put these faults into force, in place of those before; none heals it."""
        if not self._changes("perforce", rules):
            return
        path = self.root / "perforce" / "faults.json"
        path.with_suffix(".new").write_text(json.dumps({"rules": rules}))
        path.with_suffix(".new").replace(path)

    def _changes(self, server: str, rules: tuple[dict[str, Any], ...]) -> bool:
        """Note who has faults; say whether that is anything new."""
        was_broken = server in self.broken
        (self.broken.add if rules else self.broken.discard)(server)
        return bool(rules) or was_broken

    def as_admin(self, *, client: str = "test-admin") -> Any:
        """Return a P4 connection of the lab's super user."""
        account = depot.DepotAccount(
            port=self.perforce["port"],
            user=self.perforce["user"],
            password=self.perforce["password"],
        )
        return depot.connect(account, client=client, scratch=self.root)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Both servers, with a small depot in them."""
    with running_lab() as lab:
        fill(lab)
        yield lab


@contextmanager
def running_lab(*options: str) -> Iterator[Lab]:
    """Run both servers on a root of their own, started as `manage.py lab` does."""
    # Below /var/tmp: other uids have to reach the namespace, and pytest's own
    # temporary directories are closed to them.
    root = Path(tempfile.mkdtemp(prefix="cloneyard-lab-", dir="/var/tmp"))
    root.chmod(0o755)
    command, children = LabCommand(), list[Child]()
    arguments = ["--root", str(root), "--ontap-port=0", "--perforce-port=0", *options]
    parsed = command.create_parser("manage.py", "lab").parse_args(arguments)
    try:
        said = command.start(children, root=root, options=vars(parsed))
        yield Lab(
            root=root,
            ontap=said["ontap"],
            perforce=said["perforce"],
            peer=said.get("peer", {}),
        )
    finally:
        for child in reversed(children):
            child.stop()
        assert not _mounted_below(root), "the lab left mounts behind"
        shutil.rmtree(root)


def _mounted_below(root: Path) -> list[str]:
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in mounts if f" {root}/" in line]


def fill(lab: Lab) -> None:
    """Fill a lab with a small depot and the people of tests."""
    source = lab.root / "source"
    (source / "src").mkdir(parents=True)
    for number in range(12):
        (source / "src" / f"file{number}.txt").write_text(f"line of {number}\n")
    (source / "Makefile").write_text("all:\n\ttrue\n")
    p4 = lab.as_admin()
    try:
        for user in ("alice", "bob", "carol", "admin", "ci"):
            depot.create_p4_user(p4, user=user, password="lab-password")
        depot.fill_depot(p4, source=source, name=DEPOT, scratch=lab.root)
    finally:
        p4.disconnect()


@pytest.fixture
def lab_site(db: None, lab: Lab, settings: Any) -> Site:
    """The site that is the lab."""
    lab.break_ontap()
    lab.break_perforce()
    secrets = {
        "ONTAP_PASSWORD": lab.ontap["password"],
        "P4PASSWD": lab.perforce["password"],
    }
    settings.SITE_SECRET = lambda name, *, key: secrets[name]
    settings.LOG_DIR = lab.root / "logs"
    settings.STEP_GIVE_UP_SECONDS = 20
    rescue_root = lab.root / "rescue"
    rescue_root.mkdir(exist_ok=True)
    rescue_root.chmod(0o755)
    server = PerforceServer.objects.create(
        name="lab", p4port=lab.perforce["port"], p4user=lab.perforce["user"]
    )
    return Site.objects.create(
        name="lab",
        perforce_server=server,
        ontap_host=lab.ontap["host"],
        ontap_port=lab.ontap["port"],
        ontap_user=lab.ontap["user"],
        ontap_ca_file=lab.ontap["ca_file"],
        svm=lab.ontap["svm"],
        aggregate=lab.ontap["aggregate"],
        mount_root=lab.ontap["mount_root"],
        export_clients=["127.0.0.1"],
        rescue_root=str(rescue_root),
        shows_snapshots=True,  # so that every walk of every test meets them
        template_uid=20000 if os.geteuid() == 0 else os.geteuid(),
        template_gid=20000 if os.geteuid() == 0 else os.getegid(),
    )


def _an_admin() -> User:
    admin = User.objects.filter(is_staff=True).first()
    return admin or UserFactory.create(username="template-admin", is_staff=True)


@pytest.fixture
def lab_template(lab_site: Site) -> Template:
    """A template of the lab's depot that was never built; its name is new each time."""
    return define_template(lab_site, name=f"t{uuid.uuid4().hex[:8]}")


def define_template(site: Site, *, name: str) -> Template:
    """Define a template of the lab's depot."""
    return template_create(
        by=_an_admin(),
        site=site,
        name=name,
        view=f"//depot/{DEPOT}/... //any/...",
        build_command=BUILD,
        build_timeout_seconds=60,
        ignore_patterns="out\n",
        volume_size_bytes=100 * 2**20,
    )


@pytest.fixture
def built_template(lab_template: Template, run_jobs: Callable[[], None]) -> Template:
    """The template, built and published."""
    return build(lab_template, run_jobs)


def build(template: Template, run_jobs: Callable[[], None]) -> Template:
    """Build and publish a template."""
    template_build(by=template.owner, template=template)
    run_jobs()
    settle(template)
    assert template.state == Template.State.READY, template.status_message
    return template


class Published:
    """A template that was built in the lab once, and rows of it for many tests."""

    def __init__(self) -> None:
        self._template: Template | None = None
        self._snapshot: Snapshot | None = None
        self._left = 0

    def forget(self) -> None:
        """Take it for gone: the next test builds another."""
        self._left = 0

    @property
    def template(self) -> Template | None:
        """What the next test gets, as it was built; None where it has to be built."""
        return self._template if self._left else None

    def keep(self, template: Template) -> None:
        self._template, self._snapshot = template, template.snapshots.get()
        self._left = CLONES_OF_ONE

    def rows_at(self, site: Site) -> Template | None:
        """Return it as of now built at this site; None where it has to be built."""
        if self._template is None or self._snapshot is None or not self._left:
            return None
        self._left -= 1
        template, snapshot = copy_of(self._template), copy_of(self._snapshot)
        template.last_build = template.clean_build_at = None
        template.site, template.owner = site, _an_admin()
        template.save(force_insert=True)
        snapshot.template, snapshot.operation = template, None
        snapshot.save(force_insert=True)
        return template


@pytest.fixture(scope="session")
def published() -> Published:
    return Published()


@pytest.fixture
def published_template(
    lab: Lab,
    lab_site: Site,
    jobs_emptied: None,
    published: Published,
    request: pytest.FixtureRequest,
) -> Iterator[Template]:
    """A template with its snapshot in the lab, for tests that change neither there."""
    template = published.rows_at(lab_site)
    if template is None:
        template = request.getfixturevalue("built_template")
        published.keep(template)
    yield template
    lab.break_ontap()
    ontap = registry.ontap(lab_site)
    for volume in ontap.list_volumes():
        # Their paths are the next test's, also those of clones whose rows are gone.
        if (volume.junction_path or "").startswith("/w-"):
            ontap.unmount_volume(volume.uuid)


@pytest.fixture
def control(lab_site: Site) -> Iterator[LabControl]:
    """The lab's switches; back where they were afterwards."""
    control = LabControl(account=registry.ontap_account(lab_site))
    before = control.settings()
    yield control
    control.set_settings(**before)
