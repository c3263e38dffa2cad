"""Perforce servers: what each is, whom it follows, and how we connect to it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from provisioner.accounts.names import perforce_user_validator
from provisioner.gateways.reach import P4PORT
from provisioner.lib.names import LONGEST_NAME, name_validator
from provisioner.sites.values import (
    charset_validator,
    fingerprint_validator,
    p4port_validator,
    server_id_validator,
    validate_windows,
)


class ServerKind(models.TextChoices):
    """What answers at a P4PORT, and whom it may follow.

    Source: Perforce, "Edge-to-edge chaining" and "Replication" of the administrator's
    guide; p4 help server.
    """

    COMMIT = "commit", "Commit or standard server"
    FORWARDING = "forwarding-replica", "Forwarding replica"
    EDGE = "edge", "Edge server"
    REPLICA = "replica", "Read-only replica"
    BUILD = "build-server", "Build server"
    PROXY = "proxy", "Proxy"
    BROKER = "broker", "Broker"

    @property
    def in_text(self) -> str:
        """Such as "an edge server"."""
        label = self.label.lower()
        return f"{'an' if label[0] in 'aeiou' else 'a'} {label}"

    @property
    def upstreams(self) -> tuple[ServerKind, ...]:
        """The kinds that it can replicate from, or stand in front of."""
        cls = ServerKind
        match self:
            case cls.COMMIT:
                return ()
            case cls.FORWARDING:
                return (cls.COMMIT, cls.FORWARDING)
            case cls.EDGE:
                return (cls.COMMIT, cls.FORWARDING, cls.EDGE)
            case cls.REPLICA | cls.BUILD:
                return (cls.COMMIT, cls.FORWARDING, cls.EDGE, cls.REPLICA)
            case _:
                return tuple(cls)

    @property
    def binds_clients(self) -> bool:
        """Whether a client made there can be used only there."""
        return self in (ServerKind.EDGE, ServerKind.BUILD)

    @property
    def holds_clients(self) -> bool:
        """Whether clients can be made and flushed there."""
        return self != ServerKind.REPLICA

    @property
    def replicates(self) -> bool:
        """Whether its data is a copy that may be behind its upstream's."""
        return self in (
            *(ServerKind.FORWARDING, ServerKind.EDGE),
            *(ServerKind.REPLICA, ServerKind.BUILD),
        )


_BOUND = "Clients made at {} are bound to it."
PASSED_OVER = (
    "Only a forwarding replica can be passed over. Clients of other kinds are at the "
    "server itself."
)
DAY_SECONDS = 86_400
NO_CLIENTS = (
    "A read-only replica holds no clients, so no workspace can be made there. Use the "
    "commit server, an edge, or a build server."
)


class WhenBehind(models.TextChoices):
    """What happens to a flush when a replica does not get its change in time."""

    WAIT = "wait-then-fail", "Fail, to be retried"
    UPSTREAM = "use-upstream", "Flush at the upstream"


class PerforceServer(models.Model):
    """A Perforce server; its password comes from the environment (P4PASSWD_<NAME>)."""

    name = models.CharField(
        max_length=LONGEST_NAME, unique=True, validators=[name_validator]
    )
    kind = models.CharField(
        max_length=20, choices=ServerKind, default=ServerKind.COMMIT
    )
    upstream = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="downstream",
        help_text="The server that it replicates from, or stands in front of. Empty "
        "for a commit or standard server.",
    )
    server_id = models.CharField(
        "ServerID",
        max_length=64,
        blank=True,
        validators=[server_id_validator],
        help_text="As p4 serverid shows it. Clients of an edge or build server are "
        "bound to it.",
    )
    p4port = models.CharField("P4PORT", max_length=255, validators=[p4port_validator])
    people_p4port = models.CharField(
        "P4PORT of people",
        max_length=255,
        blank=True,
        default="",
        db_default="",
        validators=[p4port_validator],
        help_text="The address in people's .p4config and on the command line, such as "
        "that of a nearby proxy or broker. It must lead to the same edge or build "
        "server if this is one. Empty: the one above.",
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
    maintenance_windows = models.TextField(
        blank=True,
        default="",
        validators=[validate_windows],
        help_text="When no flush, sync or comparison may run, one window a line: cron "
        "in UTC, then minutes. “0 2 * * sun 90” is Sundays from 02:00 to 03:30.",
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

    catch_up_seconds = models.PositiveIntegerField(
        default=600,
        validators=[MaxValueValidator(DAY_SECONDS)],
        help_text="How many seconds a flush waits until a replica or edge has the "
        "change. STEP_GIVE_UP_SECONDS ends the wait, too.",
    )
    when_behind = models.CharField(
        max_length=20,
        choices=WhenBehind,
        default=WhenBehind.WAIT,
        help_text="After that. Only a forwarding replica can be passed over: clients "
        "of an edge or build server exist nowhere else.",
    )
    is_scratch = models.BooleanField(
        default=False,
        db_default=False,
        verbose_name="scratch",
        help_text="Nobody works with it, and it may be filled with files and load to "
        "measure it. Never for a server that people use.",
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
            models.CheckConstraint(
                name="perforce_server_kind_is_known",
                condition=Q(kind__in=ServerKind.values),
            ),
            models.CheckConstraint(
                name="perforce_server_all_but_commit_have_upstream",
                condition=Q(kind="commit", upstream__isnull=True)
                | (~Q(kind="commit") & Q(upstream__isnull=False)),
                violation_error_message=(
                    "A commit or standard server has no upstream, every other has one."
                ),
            ),
            models.CheckConstraint(
                name="perforce_server_upstream_is_another",
                condition=~Q(upstream=F("id")),
                violation_error_message="A server cannot be its own upstream.",
            ),
            models.CheckConstraint(
                name="perforce_server_passed_over_is_forwarding_replica",
                condition=Q(when_behind="wait-then-fail")
                | Q(when_behind="use-upstream", kind="forwarding-replica"),
                violation_error_message=PASSED_OVER,
            ),
            models.CheckConstraint(
                name="perforce_server_that_binds_clients_has_id",
                condition=~Q(kind__in=("edge", "build-server")) | ~Q(server_id=""),
                violation_error_message=(
                    "An edge or build server needs its ServerID: clients are bound to "
                    "it."
                ),
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def what(self) -> ServerKind:
        """What it is."""
        return ServerKind(self.kind)

    @property
    def p4port_for_people(self) -> str:
        return self.people_p4port or self.p4port

    @property
    def served_by(self) -> PerforceServer:
        """The server that runs its commands: the one behind a proxy or broker."""
        server = self
        while server.what in (ServerKind.PROXY, ServerKind.BROKER):
            assert server.upstream is not None
            server = server.upstream
        return server

    @property
    def with_intermediaries(self) -> list[PerforceServer]:
        """It, and the proxies and brokers whose commands it runs."""
        found = [self]
        for server in found:
            found += server.downstream.filter(
                kind__in=(ServerKind.PROXY, ServerKind.BROKER)
            )
        return found

    def clean(self) -> None:
        """Refuse an upstream that it cannot have, and a kind that others rule out.

        Raises: ValidationError.
        """
        if str(self.kind) not in ServerKind.values:
            return  # refused at its field
        self._check_upstream()
        if self.what.binds_clients and not self.server_id:
            raise ValidationError(
                {"server_id": f"Give the ServerID. {_BOUND.format(self.kind_in_text)}"}
            )
        if self.when_behind == WhenBehind.UPSTREAM and self.what != (
            ServerKind.FORWARDING
        ):
            raise ValidationError({"when_behind": PASSED_OVER})
        if self._state.adding:
            return
        if not self.served_by.what.holds_clients and (site := self.site_set.first()):
            raise ValidationError({"kind": f"The site {site} uses it. {NO_CLIENTS}"})
        for other in self.downstream.order_by("name"):
            if self.what not in other.what.upstreams:
                raise ValidationError(
                    {
                        "kind": f"It is the upstream of {other}, and "
                        f"{other.kind_in_text} cannot follow {self.kind_in_text}."
                    }
                )

    @property
    def kind_in_text(self) -> str:
        """What it is, such as "an edge server"."""
        return self.what.in_text

    def _check_upstream(self) -> None:
        above = self.upstream
        if self.what == ServerKind.COMMIT:
            if above is not None:
                raise ValidationError(
                    {"upstream": "A commit or standard server has no upstream."}
                )
            return
        if above is None:
            sentence = f"Choose the server that {self.kind_in_text} follows."
            raise ValidationError({"upstream": sentence})
        if above.what not in self.what.upstreams:
            raise ValidationError(
                {
                    "upstream": f"{self.kind_in_text.capitalize()} cannot follow "
                    f"{above.kind_in_text}."
                }
            )
        while above is not None:
            if above.pk == self.pk:
                raise ValidationError(
                    {"upstream": "That server follows this one, directly or not."}
                )
            above = above.upstream


class ReplicaPosition(models.Model):
    """How far a replica's data is, as last measured.

    `change` and `upstream_change` are the newest submitted changes there and at its
    upstream, 0 for an empty server; None: the upstream did not answer.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="position"
    )
    change = models.PositiveBigIntegerField()
    upstream_change = models.PositiveBigIntegerField(null=True)
    measured_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.sentence

    @property
    def behind(self) -> int | None:
        """How many change numbers it is behind its upstream; None if unknown."""
        if self.upstream_change is None:
            return None
        return max(0, self.upstream_change - self.change)

    @property
    def sentence(self) -> str:
        """Such as "edge-blr is at change 1840002, 11 behind 1840013 of main."."""
        here = f"{self.server} is at change {self.change}"
        if self.behind is None:
            return f"{here}. {self.server.upstream} did not answer."
        if not self.behind:
            return f"{here}, and not behind {self.server.upstream}."
        of = f"{self.upstream_change} of {self.server.upstream}"
        return f"{here}, {self.behind} behind {of}."


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
