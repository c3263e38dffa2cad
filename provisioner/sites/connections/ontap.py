"""What Cloneyard needs of ONTAP, checked in order of need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property

from provisioner.gateways import registry
from provisioner.gateways.errors import (
    GatewayError,
    PermanentGatewayError,
    Refused,
)
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import Svm
from provisioner.gateways.reach import check_certificate, check_port
from provisioner.lib.sizes import size_text
from provisioner.sites.connections.checklist import (
    ANSWER_WITHIN_SECONDS,
    Check,
    Checks,
    Remark,
    Wrong,
    check,
    secret_of,
)
from provisioner.sites.export_policies import policies_of, rules_differ
from provisioner.sites.models import Site

# ONTAP makes no volume of that name: what a read right answers for it is "none".
NOBODYS = "cloneyard_asks"


# What tells whether ONTAP can be reached and signed in to.
REACH = ("ontap_password", "ontap_address", "ontap_certificate", "ontap_sign_in")


def check_ontap(site: Site) -> list[Check]:
    """Check everything that a site needs of ONTAP. No transaction may be open."""
    with ExitStack() as opened:
        return _Checks(site, opened).run()


def reach_ontap(site: Site) -> list[Check]:
    """Check that this process can reach ONTAP and sign in."""
    with ExitStack() as opened:
        return _Checks(site, opened).run(*REACH)


class _Checks(Checks):
    """The checks of one site."""

    def __init__(self, site: Site, opened: ExitStack) -> None:
        self.site = site
        self._opened = opened
        self._found: Svm | None = None

    @cached_property
    def gateway(self) -> OntapGateway:
        return self._opened.enter_context(
            registry.first_ontap(self.site, seconds=ANSWER_WITHIN_SECONDS)
        )

    @check()
    def ontap_password(self) -> str:
        site = self.site
        return secret_of(
            "ONTAP_PASSWORD", key=site.name, host=site.ontap_host, system="ontap"
        )

    @check(
        advice="Check host and port, name service, routes and firewalls between this "
        "machine and the management address of the cluster or SVM."
    )
    def ontap_address(self) -> str:
        site = self.site
        check_port(
            site.ontap_host,
            site.ontap_port,
            system="ontap",
            timeout_seconds=ANSWER_WITHIN_SECONDS,
        )
        return f"{site.ontap_host} answers at port {site.ontap_port}."

    @check(
        after=("ontap_address",),
        advice="Give the PEM file of the authority that signed ONTAP's certificate as "
        "CA file, at the same path on every machine; the certificate has to name the "
        "host and be in date.",
    )
    def ontap_certificate(self) -> str:
        site = self.site
        check_certificate(
            site.ontap_host,
            site.ontap_port,
            ca_file=site.ontap_ca_file,
            system="ontap",
            timeout_seconds=ANSWER_WITHIN_SECONDS,
        )
        by = site.ontap_ca_file or "the authorities that this machine trusts"
        return f"Its certificate is signed by {by}."

    @check(
        after=("ontap_password", "ontap_certificate"),
        advice="Check user {site.ontap_user} and its password: it needs the "
        "application http with password authentication (security login show), and "
        "may be locked.",
    )
    def ontap_sign_in(self) -> str:
        user = self.site.ontap_user
        try:
            cluster = self.gateway.get_cluster()
        except Refused as error:
            self.gateway.list_svms()  # whose role may not even this has no use for us
            raise Remark(
                f"{user} is signed in, but may not read the release of ONTAP: "
                f"{error.sentence}",
                advice="Nothing depends on it. To see the release here, give its role "
                "the right to read /api/cluster.",
            ) from error
        return (
            f"{cluster.name} runs ONTAP {cluster.version_number}; {user} is signed in."
        )

    @check(after=("ontap_sign_in",), advice="Correct its name, or have it created.")
    def svm(self) -> str:
        name = self.site.svm
        svms = {svm.name: svm for svm in self.gateway.list_svms()}
        found = svms.get(name)
        if found is None:
            seen = ", ".join(sorted(svms)[:10]) or "none"
            raise Wrong(
                f"There is no SVM {name}, or our account may not see it. It sees: "
                f"{seen}.",
                advice="Correct its name, or let the account see it.",
            )
        if found.state != "running":
            raise Wrong(
                f"The SVM {name} is {found.state or 'not running'}.",
                advice=f"Start it: vserver start -vserver {name}",
            )
        if found.serves_nfs is False:
            raise Wrong(
                f"The SVM {name} does not serve NFS.",
                advice=f"Turn it on: vserver nfs create -vserver {name}",
            )
        self._found = found
        return f"{name} runs and serves NFS."

    @check(
        after=("svm",),
        advice="Correct its name. An account of the SVM sees aggregates that are "
        "assigned to it: vserver add-aggregates -vserver {site.svm} -aggregates "
        "{site.aggregate}",
    )
    def aggregate(self) -> str:
        name = self.site.aggregate
        assigned = self._found.aggregates if self._found else ()
        if assigned and name not in assigned:
            raise Wrong(
                f"The aggregate {name} is not assigned to the SVM {self.site.svm}. "
                f"Assigned are: {', '.join(assigned)}.",
                advice="Choose one of them, or assign it: vserver add-aggregates "
                f"-vserver {self.site.svm} -aggregates {name}",
            )
        try:
            aggregate = self.gateway.get_aggregate(name)
        except PermanentGatewayError as error:
            if not assigned:
                raise
            raise Remark(
                f"{name} is assigned to the SVM, but our account may not read it: "
                f"{error.sentence}",
                advice="Give it the right to read /api/storage/aggregates: otherwise "
                "the free space is unknown.",
            ) from error
        if not aggregate.available_bytes:
            raise Wrong(f"{name} is full.", advice="Make room, or choose another one.")
        return f"{name} has {size_text(aggregate.available_bytes)} left."

    @check(
        after=("svm",),
        advice="The role of our account needs to read /api/network/ip/interfaces.",
    )
    def data_lif(self) -> str:
        svm, lifs = self.site.svm, self.gateway.list_data_lifs()
        up = [lif.address for lif in lifs if lif.is_up]
        if not lifs:
            raise Wrong(
                f"The SVM {svm} has no address that serves NFS.",
                advice="Make one, with a service policy that has data-nfs: network "
                f"interface create -vserver {svm} …",
            )
        if not up:
            raise Wrong(
                f"No address of the SVM {svm} is up: "
                f"{', '.join(lif.address for lif in lifs)}.",
                advice=f"Check network interface show -vserver {svm}",
            )
        return f"NFS is served at {', '.join(up)}."

    @check(after=("svm",))
    def flexclone(self) -> str:
        try:
            is_there = self.gateway.has_license("flexclone")
        except PermanentGatewayError as error:
            raise Remark(
                f"Whether there is a FlexClone license is unknown: {error.sentence}",
                advice="The first workspace will show it. To check earlier, let the "
                "account read /api/cluster/licensing/licenses.",
            ) from error
        if not is_there:
            raise Wrong(
                "ONTAP has no FlexClone license: no workspace can be created.",
                advice="Install it (it is part of ONTAP One): system license show",
            )
        return "FlexClone is licensed."

    @check(
        after=("svm",),
        advice="The role of our account needs all rights to "
        "/api/protocols/nfs/export-policies.",
    )
    def export_policy(self) -> str:
        site = self.site
        there = {
            name: (policy.rules, rules)
            for name, rules in policies_of(site).items()
            if (policy := self.gateway.find_export_policy(name)) is not None
        }
        for name, (found, wanted) in there.items():
            if rules_differ(found, wanted):
                raise Remark(
                    f"The rules of {name} are not those of this site.",
                    advice="A worker sets them within five minutes, and and removes "
                    "every other rule: name another policy if this one is not ours.",
                )
        if site.export_policy not in there:
            return (
                f"{site.export_policy} does not exist yet: the first workspace creates "
                "it."
            )
        return f"The rules of {', '.join(there)} are those of this site."

    @check(after=("svm",))
    def worker_clients(self) -> str:
        site = self.site
        if site.shares_templates:
            raise Remark(
                "No hosts of workers are named. Templates are exported to "
                f"{', '.join(site.export_clients)}, with superuser access: root on any "
                "of these hosts reads and changes every template and workspace.",
                advice="Edit the site, and name the hosts of its workers. They alone "
                "can mount templates then, and be root in workspaces.",
            )
        return "Only its workers' hosts may mount templates."

    @check(after=("svm",))
    def mirror_rights(self) -> str:
        """Read one of everything that mirrors need; nothing else depends on it."""
        gateway = self.gateway
        refused = _refused(
            {
                "/api/svm/peers": gateway.list_svm_peers,
                "/api/snapmirror/policies": lambda: gateway.has_mirror_policy(NOBODYS),
                "/api/snapmirror/relationships": (
                    lambda: gateway.find_relationship(NOBODYS)
                ),
            }
        )
        if refused:
            raise Remark(
                f"Templates cannot be mirrored to or from this site: "
                f"{self.site.ontap_user} may not read {', '.join(refused)}.",
                advice="Only mirrors need it. Give its role the right to read "
                "/api/svm/peers, and all rights to /api/snapmirror/policies and "
                "/api/snapmirror/relationships.",
            )
        return (
            "It may read SVM peers and SnapMirror relationships. The first mirror "
            "proves that it may create them."
        )

    @check(after=("svm",))
    def rights(self) -> str:
        """Read one of everything that is read, before anything is written."""
        gateway = self.gateway
        refused = _refused(
            {
                "/api/storage/volumes": lambda: gateway.find_volume(NOBODYS),
                "/api/cluster/jobs": gateway.list_unfinished_jobs,
            }
        )
        if refused:
            reason = next(iter(refused.values()))
            raise Wrong(
                f"{self.site.ontap_user} may not read {', '.join(refused)}: {reason}",
                advice="Give its role all rights to /api/storage/volumes, "
                "/api/cluster/jobs and /api/protocols/nfs/export-policies, and the "
                "right to read /api/svm/svms, /api/network/ip/interfaces and "
                "/api/storage/aggregates.",
            )
        return "It may read volumes and jobs. “Try it out” proves that it may write."


def _refused(reads: Mapping[str, Callable[[], object]]) -> dict[str, str]:
    """Return the paths that cannot be read, each with the reason."""
    refused = {}
    for path, read in reads.items():
        try:
            read()
        except GatewayError as error:
            refused[path] = error.sentence
    return refused
