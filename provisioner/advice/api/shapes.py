"""Shapes of advice on storage, and of the support matrix."""

from __future__ import annotations

from rest_framework import serializers

from provisioner.advice.deviations import Fit, Held
from provisioner.advice.forms import MOST
from provisioner.advice.kinds import Criterion, Doubt, Protocol, Role
from provisioner.advice.recommending import DEFAULT_WEIGHTS, MOST_WEIGHT
from provisioner.advice.support import Status

ROLES = [(each.code, each.label) for each in Role]
PROTOCOLS = [(each.code, each.label) for each in Protocol]
CRITERIA = [(each.code, each.label) for each in Criterion]
DOUBTS = [(each.code, each.label) for each in Doubt]
FITS = [each.value for each in Fit]
STATUSES = [each.value for each in Status]
COMPONENTS = ["ONTAP", "SnapMirror", "p4d", "Linux", "NFS"]


class _Weight(serializers.IntegerField):
    def __init__(self, criterion: Criterion) -> None:
        super().__init__(
            required=False,
            min_value=0,
            max_value=MOST_WEIGHT,
            help_text=f"The weight of {criterion.label.lower()}, "
            f"{DEFAULT_WEIGHTS[criterion]} if it is not given.",
        )


class _Fact(serializers.IntegerField):
    def __init__(self, help_text: str, *, most: int = MOST) -> None:
        super().__init__(
            required=False, min_value=0, max_value=most, help_text=help_text
        )


class StorageAdviceQuery(serializers.Serializer[dict[str, object]]):
    """Weights and facts; what is not given is the default, or not considered."""

    performance = _Weight(Criterion.PERFORMANCE)
    access = _Weight(Criterion.ACCESS)
    manageability = _Weight(Criterion.MANAGEABILITY)
    cost = _Weight(Criterion.COST)
    backup = _Weight(Criterion.BACKUP)
    commands_a_day = _Fact("Commands of all users on a day.", most=10**12)
    users = _Fact("Licensed users.")
    db_gib = _Fact("The size of the database, in GiB.")
    archive_gib = _Fact("The size of the archives, in GiB.")
    growth_percent = _Fact("Growth of the archives in a year.", most=1000)
    is_distributed = serializers.BooleanField(
        required=False, help_text="Whether there are edge servers or replicas."
    )
    shares_archives = serializers.BooleanField(
        required=False,
        help_text="Whether replicas on other hosts share the archives.",
    )


class SaidSerializer(serializers.Serializer[object]):
    """A sentence, and the text that it goes by, "" if it follows from the scores."""

    text = serializers.CharField()
    reference = serializers.CharField(source="source.named", default="")


class LineSerializer(serializers.Serializer[object]):
    """A score: 0 bad, 1 fair, 2 good, 3 best, null not known."""

    criterion = serializers.ChoiceField(CRITERIA, source="criterion.code")
    weight = serializers.IntegerField()
    score = serializers.IntegerField(source="score.value", allow_null=True)
    why = serializers.CharField(source="score.why")
    doubt = serializers.ChoiceField(DOUBTS, source="score.doubt.code")
    reference = serializers.CharField(source="score.source.named", default="")


class RatedSerializer(serializers.Serializer[object]):
    """A protocol; `high` is above `low` if a score is not known."""

    protocol = serializers.ChoiceField(PROTOCOLS, source="protocol.code")
    low = serializers.IntegerField()
    high = serializers.IntegerField()
    excluded = SaidSerializer(allow_null=True, help_text="Why it cannot be chosen.")
    scores = LineSerializer(many=True, source="lines")


class PlaceInUseSerializer(serializers.Serializer[Held]):
    """A place of the running installation, held against the recommendation."""

    whose = serializers.CharField(source="place.whose", help_text="A server or a site.")
    name = serializers.CharField(source="place.name")
    saw = serializers.CharField(source="place.saw")
    may_be = serializers.SerializerMethodField(
        help_text="The protocols that it may be; none if nothing says so."
    )
    fit = serializers.ChoiceField(FITS)
    sentence = serializers.CharField()

    def get_may_be(self, held: Held) -> list[str]:
        return [each.code for each in held.place.protocols]


class StorageAdviceSerializer(serializers.Serializer[object]):
    """What to use for a role, why, and what deviates from it."""

    role = serializers.ChoiceField(ROLES, source="found.role.code")
    recommended = serializers.CharField(
        source="found.best.protocol.code",
        default=None,
        allow_null=True,
        help_text="Null if no weight counts for the role.",
    )
    most = serializers.IntegerField(
        source="found.most", help_text="What a protocol has that is best by all."
    )
    is_certain = serializers.BooleanField(
        source="found.is_certain",
        help_text="Whether no other could have more, whatever is not known.",
    )
    reasons = SaidSerializer(many=True, source="found.reasons")
    doubts = SaidSerializer(many=True, source="found.doubts")
    protocols = RatedSerializer(many=True)
    in_use = PlaceInUseSerializer(many=True)


class SupportRowSerializer(serializers.Serializer[object]):
    """A release in use, and what is known of it."""

    component = serializers.ChoiceField(COMPONENTS)
    subject = serializers.CharField(help_text="The site, server or host.")
    found = serializers.CharField(help_text="The release or options; may be empty.")
    support = serializers.ChoiceField(STATUSES, source="support.status")
    says = serializers.CharField(source="support.says")
    do = serializers.CharField(source="support.do")
    reference = serializers.CharField(source="support.source")
