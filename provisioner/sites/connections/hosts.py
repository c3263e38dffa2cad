"""Checks on a site's host: the namespace, rights, and room for rescues."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from django.conf import settings

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.hosts.capabilities import how_to_allow, lacks_sys_admin
from provisioner.gateways.hosts.mount_options import REFUSED
from provisioner.gateways.hosts.mounts import Mount, find_mount
from provisioner.gateways.hosts.namespace import (
    require_closed,
    require_server,
    why_no_namespace,
)
from provisioner.gateways.hosts.volume_mounts import COMMAND_PATH
from provisioner.gateways.reach import check_port
from provisioner.sites.connections.checklist import (
    ANSWER_WITHIN_SECONDS,
    Check,
    Checks,
    Remark,
    Wrong,
    check,
)
from provisioner.sites.connections.ontap import reach_ontap
from provisioner.sites.connections.perforce import reach_perforce
from provisioner.sites.connections.sandbox import ADVICE, check_sandbox
from provisioner.sites.models import Site

# What files of workspaces can do without on every host.
HARDENING = ("nosuid", "nodev")
NFS_PORT = 2049


def check_from_host(site: Site) -> list[Check]:
    """Check everything that this host, which mounts the namespace, needs."""
    checks = _Checks(
        site,
        nfs_addresses=_nfs_addresses(site),
        mount=find_mount(Path(site.mount_root)),
    )
    return [*checks.run(), *reach_ontap(site), *reach_perforce(site.perforce_server)]


def check_mount(site: Site) -> list[Check]:
    """Check how this host has mounted the namespace, without any remote call."""
    checks = _Checks(site, nfs_addresses=[], mount=find_mount(Path(site.mount_root)))
    return checks.run("mount_root", "mount_options")


def _nfs_addresses(site: Site) -> list[str]:
    """Return the SVM's NFS addresses; [] if ONTAP does not report them."""
    try:
        with registry.first_ontap(site, seconds=ANSWER_WITHIN_SECONDS) as ontap:
            return [lif.address for lif in ontap.list_data_lifs()]
    except (GatewayError, OSError, ValueError):
        return []


def _mount_programs(command: list[str]) -> list[str]:
    """Return the programs that a command needs: mount(8) calls mount.TYPE."""
    match command:
        case ["mount", "-t", fs_type, *_]:
            return ["mount", f"mount.{fs_type}"]
        case [program, *_]:
            return [program]
    return []


class _Checks(Checks):
    """The checks of one host; `nfs_addresses` are the SVM's, as far as known.

    `mount` is what holds the mount root, None if that does not exist.
    """

    def __init__(
        self, site: Site, *, nfs_addresses: list[str], mount: Mount | None
    ) -> None:
        self.site = site
        self._nfs_addresses = nfs_addresses
        self._mount = mount

    @check()
    def worker_user(self) -> str:
        site, uid = self.site, os.geteuid()
        if uid == 0:
            return "The worker runs as root."
        advice = "Run this worker as root: it acts only below the mount root."
        if uid != site.template_uid:
            raise Wrong(
                f"The worker runs as uid {uid}: it can neither build as uid "
                f"{site.template_uid} nor change the owner of files.",
                advice=advice,
            )
        raise Remark(
            f"The worker runs as uid {uid}: it can build, but not change the owner "
            "of files.",
            advice=advice,
        )

    @check()
    def mount_root(self) -> str:
        root = Path(self.site.mount_root)
        try:
            os.listdir(root)
        except OSError as error:
            advice = "Create it, with root as the only one who may write to it."
            if not self.site.mounts_each:
                advice = (
                    "Mount the root of the SVM's namespace there: mount -t nfs "
                    f"{self._an_address()}:/ {root}"
                )
            raise Wrong(
                f"{root} cannot be read on this host: {error.strerror}.", advice=advice
            ) from error
        return f"{root} is there."

    @check(after=("mount_root",))
    def namespace(self) -> str:
        """The mount must be the root of the namespace of the right SVM.

        Where each volume is mounted, the server must be the SVM's, and answer.
        """
        root, site = self.site.mount_root, self.site
        mount = self._mount
        assert mount is not None  # mount_root has passed
        if site.mounts_each:
            return self._can_mount(mount)
        if not mount.fs_type.startswith("nfs") and site.is_of_the_lab:
            return f"{root} is the lab's namespace."
        if why := why_no_namespace(mount, addresses=self._nfs_addresses):
            raise Wrong(
                f"{root} {why}",
                advice=f"Mount the root of the namespace of the SVM {site.svm} there: "
                f"mount -t nfs {self._an_address()}:/ {root}",
            )
        return f"{root} is {mount.source}, by {mount.fs_type}."

    def _can_mount(self, holder: Mount) -> str:
        """Return how volumes are mounted here; `holder` holds the mount root."""
        site, command = self.site, settings.MOUNT_COMMAND[0]
        if holder.fs_type.startswith("nfs"):
            raise Wrong(
                f"{site.mount_root} is {holder.source}, by {holder.fs_type}, but this "
                "site mounts each volume.",
                advice="Unmount it on this host, or let the site use the namespace.",
            )
        require_closed(Path(site.mount_root))
        for program in _mount_programs(settings.MOUNT_COMMAND):
            if shutil.which(program, path=COMMAND_PATH) is None:
                raise Wrong(
                    f"{program} is not on this host.",
                    advice="Install what mounts NFS, such as nfs-common, or set "
                    "MOUNT_COMMAND.",
                )
        if command == "mount" and lacks_sys_admin():
            raise Wrong(
                "This worker may not mount volumes, without CAP_SYS_ADMIN.",
                advice=how_to_allow("mounts"),
            )
        if site.is_of_the_lab:
            return f"The lab's volumes are mounted by {command}."
        require_server(site.nfs_server, addresses=self._nfs_addresses)
        check_port(
            site.nfs_server,
            NFS_PORT,
            system="host",
            timeout_seconds=ANSWER_WITHIN_SECONDS,
        )
        return f"{site.nfs_server} answers, and {command} mounts each volume."

    @check(after=("mount_root",))
    def mount_options(self) -> str:
        if self.site.mounts_each:
            options = self.site.volume_mount("/w").all_options
            return f"Each volume is mounted with {options}."
        mount = self._mount
        assert mount is not None  # mount_root has passed
        for option, reason in REFUSED.items():
            if option in mount.options:
                raise Wrong(
                    f"{self.site.mount_root} is mounted with {option}. {reason}",
                    advice="Mount it again without.",
                )
        if "ro" in mount.options:
            raise Wrong(
                f"{self.site.mount_root} is mounted read-only.",
                advice="Mount it with rw, and check the export rule of the SVM's "
                "root volume.",
            )
        missing = [name for name in HARDENING if name not in mount.options]
        if missing and mount.fs_type.startswith("nfs"):
            raise Remark(
                f"{self.site.mount_root} is mounted without "
                f"{' and '.join(missing)}: a set-uid file in a clone works for "
                "everybody.",
                advice=f"Mount it with {','.join(HARDENING)}.",
            )
        return f"{', '.join(mount.options)}: none of them hurts."

    @check()
    def rescue_root(self) -> str:
        root = self.site.rescue_root
        if not root:
            raise Remark(
                "There is none: work that is not submitted cannot be rescued when a "
                "workspace is retired.",
                advice="Name a directory that all hosts of the site see.",
            )
        try:
            with tempfile.TemporaryFile(dir=root) as file:
                file.write(b"Cloneyard looks whether it may write here.")
        except OSError as error:
            raise Wrong(
                f"{root} cannot be written to on this host: {error.strerror}.",
                advice="Make it, on storage that all hosts of the site see; the worker "
                "writes there as root, so an export of it must not squash root.",
            ) from error
        return f"{root} can be written to."

    @check(advice=ADVICE)
    def sandbox(self) -> str:
        return check_sandbox(self.site)

    def _an_address(self) -> str:
        return next(iter(self._nfs_addresses), self.site.svm)
