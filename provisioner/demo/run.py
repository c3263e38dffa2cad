"""The demo from start to stop: what `make demo` does, in order."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import django
from django.conf import settings
from django.core.management import call_command

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.catalog.queries import default_snapshot
from provisioner.copies.actions import copy_rule_set
from provisioner.demo import checks, depot, production, seed, spare
from provisioner.demo.company.opening import NotEmpty, ensure_company, point_abroad
from provisioner.demo.company.places import ABROAD
from provisioner.demo.ports import listen
from provisioner.demo.processes import Child, ProcessFailed, manage, started_anew
from provisioner.demo.production import Production
from provisioner.demo.spare import NotReplicated, ensure_spare
from provisioner.engine.models import Operation
from provisioner.engine.queues import SANDBOXES_PREFIX
from provisioner.mirrors.actions import mirror_create
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.sites.models import Site
from provisioner.workspace_requests.actions import workspace_create
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.queries import latest_operation

WEB_PORT = 8000
WEB_CONNECTIONS = "16"
LAB_WITHIN_SECONDS = 90.0
WEB_WITHIN_SECONDS = 30.0
WORKSPACE_WITHIN_SECONDS = 600.0
POLL_EVERY_SECONDS = 0.1
COPIED_EVERY_MINUTES = 15
BYTECODE = "*.pyc\n__pycache__\n"


class DemoFailed(Exception):
    """The demo cannot continue; the sentence says why and where to look."""


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """`source` None means the installed Django; `build` "" means byte-compilation.

    `has_company`: include half a year of a studio. `has_two_sites`: mirror the template
    to a second one.
    """

    source: Path | None = None
    build: str = ""
    ignore: str = ""
    btrfs: str = ""
    has_company: bool = False
    has_two_sites: bool = False


class Demo:
    """Everything that runs, and the steps that use it."""

    def __init__(self, options: DemoOptions, *, say: Callable[[str], None]) -> None:
        self.options = options
        self.say = say
        self.children: list[Child] = []
        self.log_dir = settings.VAR_DIR / "demo"
        self.lab: dict[str, Any] = {}
        self.url = ""
        self.has_two_sites = options.has_two_sites
        self.production: Production | None = None
        self.spare_site: Site | None = None

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for child in reversed(self.children):
            if child.name == "lab" and self.production is not None:
                # On the lab's volumes, with the database that the lab does not need.
                self.production.stop()
            child.stop()

    def start(self) -> Site:
        """Start the lab, the database, the worker and the web server; seed the rows."""
        self.log_dir.mkdir(parents=True, exist_ok=True)
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        self.say("The database is up to date.")
        seed.ensure_people()
        try:
            arguments = ensure_company(is_wanted=self.options.has_company, say=self.say)
        except NotEmpty as error:
            raise DemoFailed(str(error)) from error
        self.choose_sites()
        if self.has_two_sites:
            arguments = [*arguments, "--peer", "--peer-svm", seed.SVM_BANGALORE]
            arguments += ["--edge", seed.EDGE]
        self._start_lab(arguments)
        if self.has_two_sites:
            password = self.lab["peer"]["password"]
            os.environ[f"ONTAP_PASSWORD_{seed.BANGALORE.upper()}"] = password
            site = seed.ensure_two_sites(lab=self.lab)
        else:
            site = seed.ensure_site(lab=self.lab)
            point_abroad(self.lab)
        self._start_worker()
        self._start_web()
        return site

    def choose_sites(self) -> None:
        """Keep two sites that exist, even when they are no longer requested.

        Raises: DemoFailed if there is a demo with other sites.
        """
        if Site.objects.filter(
            name=seed.BANGALORE, perforce_server__name=seed.EDGE
        ).exists():
            self.has_two_sites = True
        elif self.has_two_sites and Site.objects.exists():
            raise DemoFailed(
                "There is already a demo with other sites. Delete it first: make clean."
            )

    def _start_lab(self, arguments: list[str]) -> None:
        if self.options.btrfs:
            arguments = [*arguments, "--btrfs", self.options.btrfs]
        command = manage("lab", *arguments)
        lab = Child("lab", command, log_dir=self.log_dir, reads_output=True)
        self.children.append(lab)
        self.lab = lab.read_json_line(timeout_seconds=LAB_WITHIN_SECONDS)
        for line in lab.log_path.read_text().splitlines():
            if "is taken" in line:
                self.say(line)
        # From here on this process and its children know the lab's passwords, the
        # way an installation does: from the environment.
        os.environ["ONTAP_PASSWORD"] = self.lab["ontap"]["password"]
        os.environ["P4PASSWD"] = self.lab["perforce"]["password"]
        copies = self.lab["ontap"]["copy_method"]
        self.say(
            f"The lab is up: ONTAP at port {self.lab['ontap']['port']}, Perforce at "
            f"{self.lab['perforce']['port']}; clones are made by {copies}, "
            f"junctions by {self.lab['ontap']['junction_method']}."
        )

    def _start_worker(self) -> None:
        self.children.append(Child("worker", manage("worker"), log_dir=self.log_dir))

    def _start_web(self) -> None:
        listener = listen(WEB_PORT)
        port = listener.getsockname()[1]
        if port != WEB_PORT:
            self.say(f"Port {WEB_PORT} is taken, using {port}.")
        self.url = f"http://127.0.0.1:{port}"
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            "python:provisioner.webserver",
            "--access-logfile",
            "-",
        ]
        with listener:
            web = self._web_server(command, listener.fileno())
        self.children.append(web)
        self._wait_until(
            lambda: _answers(f"{self.url}/healthz"),
            what="the web server answers",
            seconds=WEB_WITHIN_SECONDS,
        )

    def _web_server(self, command: list[str], listener: int) -> Child:
        """Start the web server on a socket that is already listening."""
        return Child(
            "web",
            command,
            log_dir=self.log_dir,
            environment={
                "DATABASE_POOL": WEB_CONNECTIONS,
                "WEB_BIND": f"fd://{listener}",
            },
            start=partial(started_anew, pass_fds=[listener]),
        )

    def fill_depot(self) -> str:
        """Submit the source tree if it is new; return the template's name."""
        scratch = settings.VAR_DIR / "demo"
        source = self.options.source or Path(django.__file__).parent
        name = seed.template_name_for(source)
        perforce = self.lab["perforce"]
        account = depot.DepotAccount(
            port=perforce["port"], user=perforce["user"], password=perforce["password"]
        )
        p4 = depot.connect(account, client="demo-admin", scratch=scratch)
        try:
            for person in seed.PEOPLE:
                depot.create_p4_user(p4, user=person.username, password=seed.PASSWORD)
            began = time.monotonic()
            # Its processes are a page, too.
            p4.run("configure", "set", "monitor=1")
            change = depot.fill_depot(p4, source=source, name=name, scratch=scratch)
        finally:
            p4.disconnect()
        seconds = time.monotonic() - began
        self.say(f"//depot/{name} is at change {change} ({seconds:.1f} s).")
        return name

    def open_production(self, site: Site) -> None:
        """Start a server that sandboxes can be made of, and the worker of their hosts.

        It plays hosts apart: nothing else tells them from this one. With another site,
        as the company has one, the server is replicated to that.

        Raises: DemoFailed.
        """
        password = self.lab["perforce"]["password"]
        self.production = Production(site, password=password)
        server = self.production.start()
        hosts = [production.HOST]
        others = Site.objects.filter(name__in=(seed.BANGALORE, ABROAD))
        self.spare_site = others.first()
        if self.spare_site is not None:
            try:
                ensure_spare(self.production, server=server, site=self.spare_site)
            except NotReplicated as error:
                raise DemoFailed(str(error)) from error
            hosts.append(spare.HOST)
        queues = ",".join(f"{SANDBOXES_PREFIX}{host}" for host in hosts)
        command = manage("worker", "--queues", queues)
        worker = Child("worker-sandboxes", command, log_dir=self.log_dir)
        self.children.append(worker)
        self.say("The server “production” is up: sandboxes can be made of it.")

    def build_template(
        self, site: Site, *, name: str
    ) -> tuple[Template, dict[str, Any]]:
        """Build a template; return it with the time that took."""
        build = self.options.build or _byte_compilation()
        template = seed.ensure_template(
            site=site,
            name=name,
            build=build,
            ignore=self.options.ignore or (BYTECODE if not self.options.build else ""),
        )
        if default_snapshot(template) is None:
            self.say(f"Building the template {name}: {build}")
            operation = template_build(
                by=User.objects.get(username="admin"), template=template
            )
            self._follow(operation)
        snapshot = default_snapshot(template)
        assert snapshot is not None
        last_build = latest_operation(template)
        return template, {
            "name": template.name,
            "change": snapshot.change,
            "files": snapshot.have_count,
            "snapshot": snapshot.name,
            "path": str(template.path),
            "remarks": snapshot.remarks,
            "steps": _step_times(last_build) if last_build else [],
        }

    def mirror(
        self, template: Template, *, copies_workspaces: bool = False
    ) -> dict[str, Any]:
        """Mirror a template to the second site; return its default snapshot there.

        With `copies_workspaces` a new mirror has its workspaces copied between the two
        sites from then on. A sweep does that, and nobody waits for it.
        """
        site = Site.objects.get(name=seed.BANGALORE)
        mirror = Mirror.objects.filter(template=template, site=site).first()
        if mirror is None:
            self.say(f"Mirroring the template {template.name} to {site.name}")
            mirror = mirror_create(
                by=User.objects.get(username="admin"), template=template, site=site
            )
            self._follow(mirror.operations.latest("pk"))
            self._follow(mirror.operations.latest("pk"))  # which the first has begun
            if copies_workspaces:
                self._copy_workspaces(mirror)
        mirrored = mirror.snapshots.select_related("snapshot").latest("arrived_at")
        return {
            "site": site.name,
            "snapshot": mirrored.snapshot.name,
            "state": mirrored.state,
            "bytes": mirrored.bytes,
            "transfer_seconds": round(mirrored.seconds, 3),
            "steps": _step_times(mirror.operations.latest("pk")),
        }

    def _copy_workspaces(self, mirror: Mirror) -> None:
        copy_rule_set(
            by=User.objects.get(username="admin"),
            mirror=mirror,
            every_minutes=COPIED_EVERY_MINUTES,
            purposes=[Workspace.Purpose.DEVELOPMENT],
        )

    def refresh_template(self, template: Template) -> None:
        """Build a template again, at the newest change."""
        admin = User.objects.get(username="admin")
        self._follow(template_build(by=admin, template=template))

    def provision(
        self, template: Template, *, site: Site | None = None
    ) -> tuple[Workspace, dict[str, Any]]:
        """Make a workspace for alice, at a mirror's site if named; return durations."""
        alice = User.objects.get(username="alice")
        workspace = workspace_create(
            WorkspaceRequest(by=alice, template=template, site=site)
        )
        operation = latest_operation(workspace)
        assert operation is not None
        self._follow(operation)
        workspace.refresh_from_db()
        assert workspace.ready_at is not None
        steps = _step_times(operation)
        ready_seconds = (workspace.ready_at - workspace.created_at).total_seconds()
        return workspace, {
            "name": workspace.name,
            "path": str(workspace.path),
            "client": workspace.client_name,
            "server": _server_of(workspace),
            "change": workspace.snapshot.change,
            "files": workspace.snapshot.have_count,
            "ownership": workspace.ownership,
            "steps": steps,
            "longest_branch_seconds": _longest_branch(steps),
            "ready_seconds": round(ready_seconds, 3),
        }

    def retire(self, workspace: Workspace) -> dict[str, Any]:
        """Retire the workspace past the trash; return durations."""
        began = time.monotonic()
        retirement = workspace_retire(
            by=workspace.owner, workspace=workspace, purge=True
        )
        self._follow(retirement)
        purge = workspace.operations.get(kind=WorkspaceOperation.PURGE)
        self._follow(purge)
        return {
            "seconds": round(time.monotonic() - began, 3),
            "steps": [*_step_times(retirement), *_step_times(purge)],
        }

    def _follow(self, operation: Operation) -> None:
        """Wait for an operation, printing each step as it ends.

        Raises: DemoFailed if it does not succeed.
        """
        said: set[str] = set()
        began = time.monotonic()
        while True:
            operation.refresh_from_db()
            for step in operation.steps.all():
                if step.ended_at is not None and step.name not in said:
                    said.add(step.name)
                    self.say(f"  {step.name}: {step.state}, {step.seconds or 0:.3f} s")
            if operation.state != Operation.State.RUNNING:
                break
            self._check_children()
            if time.monotonic() - began > WORKSPACE_WITHIN_SECONDS:
                raise DemoFailed(
                    f"{operation} took more than {WORKSPACE_WITHIN_SECONDS:.0f} s; see "
                    f"{self.log_dir}."
                )
            time.sleep(POLL_EVERY_SECONDS)
        if operation.state != Operation.State.SUCCEEDED:
            raise DemoFailed(
                f"{operation} {operation.state}: {operation.status_message} "
                f"(logs are in {self.log_dir})"
            )

    def _wait_until(
        self, is_true: Callable[[], bool], *, what: str, seconds: float
    ) -> None:
        ends = time.monotonic() + seconds
        while not is_true():
            self._check_children()
            if time.monotonic() > ends:
                raise DemoFailed(f"Waited {seconds:.0f} s in vain until {what}.")
            time.sleep(POLL_EVERY_SECONDS)

    def _check_children(self) -> None:
        """Fail if a child ended unasked.

        Raises: ProcessFailed.
        """
        for child in self.children:
            if not child.is_running:
                raise ProcessFailed(
                    f"{child.name} ended ({child.ending}), and nobody told it to. The "
                    f"end of {child.log_path}:\n{child.last_lines()}"
                )

    def serve(self) -> None:
        """Run until Ctrl-C, or until a child ends."""
        while True:
            self._check_children()
            time.sleep(1.0)

    def run_once(self, site: Site) -> dict[str, Any]:
        """Do everything, check it from the outside, retire; return the report."""
        template, built = self.build_template(site, name=self.fill_depot())
        before = checks.fingerprint(template)
        workspace, made = self.provision(template)
        found = checks.check_ready(workspace)
        retired = self.retire(workspace)
        found.append(
            checks.Check(
                name="the template is unchanged",
                ok=checks.fingerprint(template) == before,
            )
        )
        left = checks.left_behind(workspace)
        abroad: dict[str, Any] = {}
        if self.has_two_sites:
            abroad = self._mirror_once(template, found=found, left=left)
        self._check_children()
        return {
            "ok": all(check.ok for check in found) and not left,
            "template": built,
            "workspace": made,
            "checks": [asdict(check) for check in found],
            "retired": retired,
            "left_behind": left,
            **abroad,
        }

    def _mirror_once(
        self, template: Template, *, found: list[checks.Check], left: list[str]
    ) -> dict[str, Any]:
        """Mirror the template, and check a workspace there; add what was found."""
        mirror = self.mirror(template)
        site = Site.objects.get(name=seed.BANGALORE)
        workspace, made = self.provision(template, site=site)
        found += [
            checks.Check(
                name=f"{mirror['snapshot']} is available at {site.name}",
                ok=mirror["state"] == MirroredSnapshot.State.AVAILABLE,
                detail=mirror["state"],
            ),
            checks.check_bound(workspace),
            *checks.check_ready(workspace),
        ]
        self.retire(workspace)
        left += checks.left_behind(workspace)
        return {"mirror": mirror, "workspace_at_mirror": made}


def _step_times(operation: Operation) -> list[dict[str, Any]]:
    steps = operation.steps.exclude(started_at=None).order_by("position")
    return [
        {
            "name": step.name,
            "seconds": round(step.seconds or 0.0, 3),
            "started": round(
                (step.started_at - operation.created_at).total_seconds(), 3
            ),
            "attempt": step.attempt,
        }
        for step in steps
        if step.started_at is not None
    ]


def _server_of(workspace: Workspace) -> dict[str, Any]:
    """Return the Perforce server that the workspace's client is at."""
    server = workspace.perforce_server
    return {
        "name": server.name,
        "kind": server.kind,
        "server_id": server.server_id,
        "p4port": server.p4port,
    }


def _longest_branch(steps: list[dict[str, Any]]) -> float:
    """Return the seconds of work on the longest path to READY."""
    seconds: dict[str, float] = {step["name"]: step["seconds"] for step in steps}
    files = sum(seconds.get(n, 0.0) for n in ("clone", "export", "mount", "owner"))
    client = sum(seconds.get(n, 0.0) for n in ("client", "flush"))
    longer = max(files + seconds.get("p4config", 0.0), client)
    return round(seconds.get("access", 0.0) + longer, 3)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as answer:  # noqa: S310 - our own loopback URL
            return bool(answer.status == 200)
    except OSError:
        return False


def _byte_compilation() -> str:
    """Return the command that byte-compiles, with a Python the builder can run.

    Raises: DemoFailed if the template's uid can run none.
    """
    for python in dict.fromkeys(
        (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")
    ):
        if _can_run(python):
            return f"{python} -m compileall -q ."
    raise DemoFailed(
        f"uid {seed.TEMPLATE_UID}, who builds templates, can run no Python "
        "here. Give a build of your own: make demo SOURCE=DIR BUILD='make'."
    )


def _can_run(python: str) -> bool:
    as_builder: dict[str, Any] = {}
    if os.geteuid() == 0:
        as_builder = {
            "user": seed.TEMPLATE_UID,
            "group": seed.GID,
            "extra_groups": [],
        }
    try:
        done = subprocess.run(
            [python, "-c", ""], check=False, cwd="/", capture_output=True, **as_builder
        )
    except OSError:
        return False
    return done.returncode == 0
