"""The rows of the demo: a site for the lab, people, and a template of the depot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_create
from provisioner.catalog.models import Template
from provisioner.sites.actions.sites import site_save
from provisioner.sites.models import PerforceServer, ServerKind, Site

SITE_NAME = "demo"
# What the lab calls its SVM, and that of its second cluster where it has one.
SVM, SVM_ABROAD = "svm_dev", "svm_montreal"
# A demo with two sites has these in place of the one.
MUNICH, BANGALORE = "munich", "bangalore"
SVM_BANGALORE = "svm_blr"
EDGE = "edge-blr"
# Loopback only, printed on the terminal: a lock on a doll's house.
PASSWORD = "cloneyard"  # noqa: S105
TEMPLATE_UID = 20000
GID = 20000


@dataclass(frozen=True, kw_only=True)
class Person:
    username: str
    uid: int | None
    what: str
    in_company: str = ""
    is_staff: bool = False
    is_service: bool = False

    @property
    def what_in_company(self) -> str:
        return self.in_company or self.what


PEOPLE = (
    Person(
        username="alice",
        uid=20001,
        what="developer",
        in_company="developer of the team Gameplay",
    ),
    Person(
        username="bob",
        uid=20002,
        what="developer",
        in_company="team lead of Gameplay, owner of the template aurora-main",
    ),
    Person(username="admin", uid=20003, what="administrator", is_staff=True),
    Person(username="ci", uid=20004, what="CI", is_service=True),
)


def ensure_people() -> None:
    """Ensure the accounts; new ones get the demo's password."""
    password = make_password(PASSWORD)
    for person in PEOPLE:
        User.objects.get_or_create(
            username=person.username,
            defaults={
                "password": password,
                "uid": person.uid,
                "gid": GID,
                "is_staff": person.is_staff,
                "is_superuser": person.is_staff,
                "is_service": person.is_service,
            },
        )


def ensure_two_sites(*, lab: dict[str, Any]) -> Site:
    """Ensure a site for each of the lab's two clusters; return that of the first.

    The second has an edge server of the other's Perforce server.
    """
    home = ensure_site(lab=lab, name=MUNICH, title="Munich")
    edge, _ = PerforceServer.objects.update_or_create(
        name=EDGE,
        defaults={
            **_address(lab["edge"]),
            "kind": ServerKind.EDGE,
            "server_id": EDGE,
            "upstream": home.perforce_server,
        },
    )
    abroad = {**lab, "ontap": lab["peer"]}
    ensure_site(lab=abroad, name=BANGALORE, title="Bangalore", server=edge)
    return home


def _address(perforce: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a Perforce server of the lab."""
    return {
        "p4port": perforce["port"],
        "p4user": perforce["user"],
        "accepts_tickets": True,
    }


def ensure_site(
    *,
    lab: dict[str, Any],
    name: str = SITE_NAME,
    title: str = "Demo lab",
    server: PerforceServer | None = None,
    by: User | None = None,
    rescue_root: Path | None = None,
) -> Site:
    """Ensure the lab's site, at its current ports; `server` is not the usual one.

    by: who enters it, of the demo's people where nobody is named. rescue_root: below
    VAR_DIR where none is given.
    """
    rescue_root = rescue_root or Path(settings.VAR_DIR) / "rescue"
    rescue_root.mkdir(mode=0o755, exist_ok=True)
    ontap = lab["ontap"]
    if server is None:
        server, _ = PerforceServer.objects.update_or_create(
            name=SITE_NAME, defaults=_address(lab["perforce"])
        )
    site = Site.objects.filter(name=name).first() or Site(
        name=name,
        title=title,
        export_clients=["127.0.0.1"],
        template_uid=TEMPLATE_UID,
        template_gid=GID,
    )
    site.perforce_server = server
    site.ontap_host, site.ontap_port = ontap["host"], ontap["port"]
    site.ontap_user, site.ontap_ca_file = ontap["user"], ontap["ca_file"]
    site.svm, site.aggregate = ontap["svm"], ontap["aggregate"]
    site.mount_root = ontap["mount_root"]
    site.rescue_root = str(rescue_root)
    return site_save(by=by or _admin(), site=site)


def ensure_template(
    *, site: Site, name: str, build: str, ignore: str, by: User | None = None
) -> Template:
    """Ensure the template for a depot path."""
    existing = Template.objects.filter(site=site, name=name).first()
    if existing is not None:
        return existing
    return template_create(
        by=by or _admin(),
        site=site,
        name=name,
        description=f"Everything below //depot/{name}, built.",
        view=f"//depot/{name}/... //template/...",
        build_command=build,
        build_timeout_seconds=1800,
        ignore_patterns=ignore,
        volume_size_bytes=10 * 2**30,
    )


def _admin() -> User:
    return User.objects.get(username="admin")


def lab_root(*, is_peer: bool = False) -> Path:
    """Return the data directory of the lab's ONTAP, or of its second cluster."""
    root = Path(settings.VAR_DIR).resolve() / "lab" / "ontap"
    return root / "peer" if is_peer else root


def template_name_for(source: Path) -> str:
    """Return a template name for a source tree, from its directory's name."""
    letters = [c if c.isascii() and c.isalnum() else "-" for c in source.name.lower()]
    words = [word for word in "".join(letters).split("-") if word]
    name = "-".join(words)[:30].rstrip("-")
    return name if name[:1].isalpha() else f"s-{name}".rstrip("-")
