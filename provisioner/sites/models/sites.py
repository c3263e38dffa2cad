"""Sites: an SVM with the mount root of its hosts, and its Perforce server."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from provisioner.accounts.models import Team, User
from provisioner.accounts.names import check_one_line
from provisioner.engine.queues import BISECTIONS_PREFIX, COMMANDS_PREFIX, HOST_PREFIX
from provisioner.gateways.hosts.mount_options import (
    MountOptionRefused,
    check_mount_options,
)
from provisioner.gateways.hosts.mounts import path_below
from provisioner.gateways.hosts.volume_mounts import VolumeMount
from provisioner.gateways.owners import Ids
from provisioner.lib.names import LONGEST_NAME, name_validator
from provisioner.sites.models.perforce_servers import NO_CLIENTS, PerforceServer
from provisioner.sites.values import (
    check_directory,
    check_file_path,
    check_network,
    client_match_validator,
    host_validator,
    ontap_name_validator,
    ontap_user_validator,
)

NEAREST = "nearest"
"""What a request says in place of a site's name to get the nearest one."""


class OpenTo(models.TextChoices):
    """Who may enter the root directory of a clone, besides root and ONTAP."""

    OWNER = "owner", "only its owner"
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

    class Mounting(models.TextChoices):
        NAMESPACE = "namespace", "its hosts mount the root of the namespace"
        EACH = "each", "workers mount each volume"

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
        help_text="Where its hosts see the SVM's namespace, or each of its volumes.",
    )
    mounting = models.CharField(
        max_length=16,
        choices=Mounting,
        default=Mounting.NAMESPACE,
        db_default=Mounting.NAMESPACE,
        help_text="How volumes get below the mount root on hosts of workers.",
    )
    mount_options = models.CharField(max_length=500, blank=True)
    nfs_server = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        validators=[host_validator],
        verbose_name="NFS server",
        help_text="The address at which the SVM serves NFS, for workers that mount "
        "each volume, and for automounters. Empty: automounters are not answered.",
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
    networks = ArrayField(
        models.CharField(max_length=43, validators=[check_network]),
        default=list,
        blank=True,
        help_text="Where its people and CI agents are, such as 10.2.0.0/16. A request "
        "for the nearest site that comes from there gets its workspace here.",
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
    spreads_templates = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The volume of a new template goes to the aggregate of the SVM with "
        "most room, and among such to the node with fewest volumes. Otherwise to the "
        "aggregate above.",
    )
    volumes_per_node = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Volumes of all SVMs on one node: 1,000 to 2,500, by its model and "
        "release. Empty: no limit but ONTAP's own.",
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
        """Refuse mount options that corrupt files, a rescue area below the mount root,
        and a Perforce server that holds no clients.

        Raises: ValidationError.
        """
        if self.name == NEAREST:
            message = "Requests use this word for the site that is nearest."
            raise ValidationError({"name": message})
        server = PerforceServer.objects.filter(pk=self.perforce_server_id).first()
        if server is not None and not server.served_by.what.holds_clients:
            raise ValidationError({"perforce_server": NO_CLIENTS})
        try:
            self.mount_options = ",".join(check_mount_options(self.mount_options))
        except MountOptionRefused as refusal:
            raise ValidationError(
                {"mount_options": ValidationError(refusal.sentence, code=refusal.code)}
            ) from None
        if self.mounts_each and not self.nfs_server:
            raise ValidationError(
                {"nfs_server": "Workers that mount each volume need it."}
            )
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

    @property
    def mounts_each(self) -> bool:
        """Whether workers mount each volume, rather than the namespace."""
        return self.mounting == self.Mounting.EACH

    def volume_mount(self, junction_path: str) -> VolumeMount:
        """Return the mount of one volume on a host of workers.

        Raises: Refused if the path on this host is not safe.
        """
        root = Path(self.mount_root).resolve()
        return VolumeMount(
            source=self.nfs_source(junction_path),
            directory=path_below(root, junction_path=junction_path),
            options=self.volume_mount_options,
            command=tuple(settings.MOUNT_COMMAND),
            is_lab=self.is_of_the_lab,
        )

    def path_of(self, junction_path: str) -> Path:
        """Return where its hosts see a junction path."""
        return Path(self.mount_root) / junction_path.lstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class HomeSite(models.Model):
    """Where a person, or a team, gets workspaces unless they choose another site."""

    person = models.OneToOneField(
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="home_site"
    )
    team = models.OneToOneField(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="home_site"
    )
    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="home_site_is_a_persons_or_a_teams",
                condition=Q(person__isnull=True, team__isnull=False)
                | Q(person__isnull=False, team__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.site} for {self.person or self.team}"
