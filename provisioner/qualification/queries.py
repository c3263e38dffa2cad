"""Which runs there are, and who may see them."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import (
    Avg,
    Count,
    Exists,
    F,
    FloatField,
    Max,
    OuterRef,
    Q,
    QuerySet,
)

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import is_archived, templates_to_choose_from
from provisioner.lib.percentiles import Percentile
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.profiles import LEVELS
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.queries import may_have_sandboxes, sandboxes_visible_to
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Workspace


def is_visible(user: User) -> Q:
    """Return the condition for runs of a person; administrators see all."""
    if user.is_administrator:
        return Q()
    if user.scope is not None:
        return Q(pk__in=())
    return Q(owner=user)


def runs_visible_to(user: User) -> QuerySet[QualificationRun]:
    return QualificationRun.objects.filter(is_visible(user)).select_related(
        "perforce_server", "sandbox__host", "template", "site", "owner"
    )


def may_measure(user: User) -> bool:
    """Return whether somebody can have what may be measured."""
    return may_have_sandboxes(user)


def sandboxes_to_measure(user: User) -> QuerySet[Sandbox]:
    return sandboxes_visible_to(user).filter(state=Sandbox.State.READY)


def servers_to_measure(user: User) -> QuerySet[PerforceServer]:
    scratch = PerforceServer.objects.filter(is_scratch=True).order_by("name")
    return scratch if user.is_administrator else scratch.none()


def values_of(run: QualificationRun) -> dict[str, dict[int, float]]:
    """Return the figures of a run: by code, the value of each repeat."""
    found: dict[str, dict[int, float]] = {}
    rows = run.figures.filter(host_number=0, repeat__gt=0)
    for code, repeat, value in rows.values_list("code", "repeat", "value"):
        found.setdefault(code, {})[repeat] = value
    return found


def templates_to_measure(user: User) -> QuerySet[Template]:
    """Return the templates of which workspaces can be measured."""
    available = Snapshot.objects.available().filter(template=OuterRef("pk"))
    templates = is_archived(templates_to_choose_from(user), "").order_by("name")
    if not user.is_administrator:
        return templates.none()
    return templates.filter(Exists(available))


def batches_left(run: QualificationRun) -> Iterator[tuple[int, int]]:
    """Yield what was not timed yet: how many at once, and the number of the repeat."""
    known = set(run.times.values_list("at_once", "repeat"))
    for at_once in LEVELS:
        for repeat in range(1, run.repeats + 1):
            if at_once <= run.children and (at_once, repeat) not in known:
                yield at_once, repeat


def _key_of(run: QualificationRun) -> str:
    return f"qualification-{run.pk}-"


def key_of_batch(run: QualificationRun, *, at_once: int, repeat: int) -> str:
    """Return how the keys of the requests of a batch begin."""
    return f"{_key_of(run)}{run.attempt}-{at_once}-{repeat}-"


def workspaces_of(run: QualificationRun) -> QuerySet[Workspace]:
    """Return the workspaces that a run has requested, and that are long gone."""
    return Workspace.objects.filter(
        owner=run.owner, request_key__startswith=_key_of(run)
    )


def phases_of(run: QualificationRun) -> dict[tuple[int, str], dict[str, float]]:
    """Return what its workspaces took: by how many at once, and by phase."""
    rows = (
        run.times.order_by()
        .values_list("at_once", "phase")
        .annotate(
            number=Count("pk"),
            average=Avg("seconds"),
            longest=Max("seconds"),
            **{
                name: Percentile(F("seconds"), share=share, output_field=FloatField())
                for name, share in (("median", 0.5), ("p95", 0.95))
            },
        )
    )
    names = ("number", "average", "longest", "median", "p95")
    return {
        (at_once, phase): dict(zip(names, figures, strict=True))
        for at_once, phase, *figures in rows
    }
