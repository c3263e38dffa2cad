"""Perforce servers, and sites: an SVM with the mount root of its hosts."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from provisioner.accounts.names import check_one_line, perforce_user_validator
from provisioner.engine.queues import BISECTIONS_PREFIX, COMMANDS_PREFIX, HOST_PREFIX
from provisioner.gateways.hosts.mount_options import (
    MountOptionRefused,
    check_mount_options,
)
from provisioner.gateways.owners import Ids
from provisioner.gateways.reach import P4PORT
from provisioner.lib.names import LONGEST_NAME, name_validator
from provisioner.sites.values import (
    charset_validator,
    check_directory,
    check_file_path,
    client_match_validator,
    fingerprint_validator,
    host_validator,
    ontap_name_validator,
    ontap_user_validator,
    p4port_validator,
)


class PerforceServer(models.Model):
    """A Perforce server; its password comes from the environment (P4PASSWD_<NAME>)."""

    name = models.CharField(
        max_length=LONGEST_NAME, unique=True, validators=[name_validator]
    )
    p4port = models.CharField("P4PORT", max_length=255, validators=[p4port_validator])
    people_p4port = models.CharField(
        "P4PORT of people",
        max_length=255,
        blank=True,
        default="",
        db_default="",
        validators=[p4port_validator],
        help_text="The address in people's .p4config and on the command line, such "
        "as that of a nearby proxy or broker. Empty: the one above.",
    )
    p4user = models.CharField(
        "P4USER",
        max_length=128,
        validators=[perforce_user_validator],
        help_text="Our account: admin, not a service user.",
    )
    p4charset = models.CharField(
        "P4CHARSET", max_length=32, default="none", validators=[charset_validator]
    )
    fingerprint = models.CharField(
        max_length=128,
        blank=True,
        validators=[fingerprint_validator],
        help_text="Of an ssl: port, as p4 trust shows it.",
    )
    flush_limit = models.PositiveSmallIntegerField(
        default=4,
        validators=[MinValueValidator(1)],
        verbose_name="budget",
        help_text="How many flushes, syncs and comparisons may run on it at a time.",
    )
    sync_connections = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(2), MaxValueValidator(100)],
        help_text="How many connections a template's sync uses (sync --parallel); "
        "net.parallel.max must allow it. Empty: the server's default "
        "(net.parallel.threads).",
    )
    checks_read_access = models.BooleanField(
        default=True,
        help_text="Nobody gets a clone of files that they may not read in Perforce. "
        "Our account must be super, or admin with dm.protects.allow.admin=1.",
    )
    read_access_host = models.GenericIPAddressField(
        null=True,
        blank=True,
        help_text="The host address for which protections are checked. Empty: only "
        "lines for all hosts count.",
    )

    accepts_tickets = models.BooleanField(
        default=False,
        help_text="A ticket of this server signs its user in at the API, for "
        "minutes. Only if everybody who can create users there is trusted to say who "
        "people are here.",
    )
    partitioned_development = models.BooleanField(
        default=False,
        help_text="Development workspaces get clients of type partitioned-jnl if the "
        "server supports it (since 2024.1): their flushes do not wait for "
        "others'. Such clients cannot be unloaded or renamed.",
    )

    class Meta:
        constraints = (
            # The library would run rsh: as a command, wherever it connects.
            models.CheckConstraint(
                name="perforce_server_p4port_is_address",
                condition=Q(p4port__regex=P4PORT),
                violation_error_message="P4PORT is not an address.",
            ),
            models.CheckConstraint(
                name="perforce_server_people_p4port_is_address",
                condition=Q(people_p4port="") | Q(people_p4port__regex=P4PORT),
                violation_error_message="P4PORT of people is not an address.",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def p4port_for_people(self) -> str:
        return self.people_p4port or self.p4port


class ServerAbilities(models.Model):
    """The abilities of a Perforce server, as it last reported them."""

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="abilities"
    )
    client_types = ArrayField(
        models.CharField(max_length=16), help_text="The client types of new clients."
    )
    checked_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "server abilities"

    def __str__(self) -> str:
        return f"{self.server}: {', '.join(self.client_types)}"


class OpenTo(models.TextChoices):
    """Who may enter the root directory of a clone, besides root and ONTAP."""

    OWNER = "owner", "its owner alone"
    GROUP_READS = "group-reads", "its owner's group, to read"
    GROUP_WRITES = "group-writes", "its owner's group, to read and write"

    @property
    def mode(self) -> str:
        """The mode of the directory, in octal digits."""
        return {"owner": "700", "group-reads": "750", "group-writes": "770"}[self.value]


class Site(models.Model):
    """One SVM, the mount root its hosts see, and the Perforce server used there.

    Its ONTAP password comes from the environment (ONTAP_PASSWORD_<NAME>).
    """

    class Reown(models.TextChoices):
        ONTAP = "ontap", "ONTAP at clone time, verified by sampling"
        HOST = "host", "parallel chown on a host"

    name = models.CharField(
        max_length=LONGEST_NAME, unique=True, validators=[name_validator]
    )
    title = models.CharField(max_length=100, blank=True, validators=[check_one_line])
    perforce_server = models.ForeignKey(PerforceServer, on_delete=models.PROTECT)
    ontap_host = models.CharField(max_length=255, validators=[host_validator])
    ontap_port = models.PositiveIntegerField(
        default=443, validators=[MinValueValidator(1), MaxValueValidator(65535)]
    )
    ontap_user = models.CharField(max_length=128, validators=[ontap_user_validator])
    ontap_ca_file = models.CharField(
        max_length=500, blank=True, validators=[check_file_path]
    )
    svm = models.CharField("SVM", max_length=47, validators=[ontap_name_validator])
    aggregate = models.CharField(max_length=255, validators=[ontap_name_validator])
    mount_root = models.CharField(
        max_length=255,
        validators=[check_directory],
        help_text="Where its hosts see the SVM's namespace.",
    )
    mount_options = models.CharField(max_length=500, blank=True)
    nfs_server = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        validators=[host_validator],
        verbose_name="NFS server",
        help_text="The address at which the SVM serves NFS, for automounters. Empty: "
        "they are not answered.",
    )
    ssh_host = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        validators=[host_validator],
        help_text="A host that mounts the namespace and that people reach by SSH. "
        "Workspace pages open VS Code there. Empty: no editor is offered.",
    )
    export_policy = models.CharField(
        max_length=256, default="cloneyard", validators=[ontap_name_validator]
    )
    export_clients = ArrayField(
        models.CharField(max_length=255, validators=[client_match_validator]),
        default=list,
        help_text="Who may mount: client matches such as 10.0.0.0/24.",
    )
    worker_clients = ArrayField(
        models.CharField(max_length=255, validators=[client_match_validator]),
        default=list,
        blank=True,
        help_text="The hosts of workers. Only they get superuser access, and see "
        "clones being retired. Empty: all hosts that may mount do.",
    )
    rescue_root = models.CharField(
        max_length=255,
        blank=True,
        validators=[check_directory],
        help_text="A directory that its hosts see, outside the mount root, where "
        "unsubmitted work of retired workspaces is kept.",
    )
    clones_per_volume = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Empty: the limit of this ONTAP release.",
    )
    volumes_per_svm = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Empty: no limit but ONTAP's own.",
    )
    snapshots_per_volume = models.PositiveIntegerField(
        default=1023, validators=[MinValueValidator(1)]
    )
    free_percent = models.PositiveSmallIntegerField(
        default=5,
        validators=[MaxValueValidator(99)],
        help_text="The share of the aggregate that stays free: no clone is made "
        "beyond it.",
    )
    overcommit_percent = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The sizes of all volumes, in percent of the aggregate, beyond which "
        "no clone is made. Empty: no limit.",
    )
    template_uid = models.PositiveIntegerField(
        validators=[MinValueValidator(1)],
        help_text="Who owns templates and runs their builds.",
    )
    template_gid = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    reown = models.CharField(max_length=8, choices=Reown, default=Reown.ONTAP)
    clones_open_to = models.CharField(
        max_length=16,
        choices=OpenTo,
        default=OpenTo.OWNER,
        db_default=OpenTo.OWNER,
        help_text="Who may enter a new clone, unless its owner changes that. Files "
        "below keep their modes. Only their owner may enter templates.",
    )
    shows_snapshots = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Clones and templates have ONTAP's .snapshot directory. Cloneyard "
        "skips it; find, rsync and backup programs do not.",
    )
    remove_contents = models.BooleanField(
        default=False,
        help_text="Remove files one by one before the clone is destroyed.",
    )

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="site_template_owner_is_not_root",
                condition=Q(template_uid__gt=0) & Q(template_gid__gt=0),
            ),
        )

    def __str__(self) -> str:
        return self.title or self.name

    def clean(self) -> None:
        """Refuse mount options that corrupt files, and a rescue area below the mount
        root.

        Raises: ValidationError.
        """
        try:
            self.mount_options = ",".join(check_mount_options(self.mount_options))
        except MountOptionRefused as refusal:
            raise ValidationError(
                {"mount_options": ValidationError(refusal.sentence, code=refusal.code)}
            ) from None
        root, rescue = Path(self.mount_root), Path(self.rescue_root)
        is_apart = not rescue.is_relative_to(root) and not root.is_relative_to(rescue)
        if self.rescue_root and not is_apart:
            raise ValidationError(
                {
                    "rescue_root": "Give the absolute path of a directory outside the "
                    "mount root."
                }
            )

    @property
    def host_queue(self) -> str:
        """The queue that workers on this site's hosts serve."""
        return f"{HOST_PREFIX}{self.name}"

    @property
    def commands_queue(self) -> str:
        """The queue of builds and tests on this site's hosts."""
        return f"{COMMANDS_PREFIX}{self.name}"

    @property
    def bisections_queue(self) -> str:
        """The queue of bisections' commands on this site's hosts."""
        return f"{BISECTIONS_PREFIX}{self.name}"

    @property
    def frozen_policy(self) -> str:
        """The export policy of clones that are being retired: workers only."""
        return f"{self.export_policy}-frozen"

    @property
    def templates_policy(self) -> str:
        """The export policy of templates: workers only."""
        return f"{self.export_policy}-templates"

    @property
    def template_owner(self) -> Ids:
        """Who owns the files of its templates."""
        return Ids(self.template_uid, self.template_gid)

    @property
    def shares_templates(self) -> bool:
        """Whether hosts other than its workers' may mount templates, as root."""
        if self.worker_clients:
            return False
        try:
            return len({ip_address(match) for match in self.export_clients}) > 1
        except ValueError:  # a network, a name or a netgroup
            return True

    @property
    def is_of_the_lab(self) -> bool:
        """Whether its ONTAP is the lab's, which is for trials."""
        ca_file = Path(self.ontap_ca_file).absolute()
        return _is_loopback(self.ontap_host) or ca_file.is_relative_to(
            Path(settings.VAR_DIR) / "lab"
        )

    @property
    def volume_mount_options(self) -> str:
        """The options for a mount of one volume, which somebody waits for."""
        options = self.mount_options.split(",")
        return ",".join(option for option in options if option != "bg")

    def nfs_source(self, junction_path: str) -> str:
        """Return what a host mounts to see one volume, as `HOST:/PATH`."""
        is_ipv6 = ":" in self.nfs_server and not self.nfs_server.startswith("[")
        server = f"[{self.nfs_server}]" if is_ipv6 else self.nfs_server
        return f"{server}:{junction_path}"

    def path_of(self, junction_path: str) -> Path:
        """Return where its hosts see a junction path."""
        return Path(self.mount_root) / junction_path.lstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
