"""Serializers that all features share."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.errors import CODES


class LimitSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="The code of its refusal.")
    title = serializers.CharField(help_text="The title of the limit.")
    subject = serializers.CharField(help_text="Whose limit it is.")
    part = serializers.CharField(
        help_text="Its aggregate or node, empty for all, or a site's own aggregate."
    )
    used = serializers.IntegerField(
        allow_null=True, help_text="null: not measured lately, so it refuses nobody."
    )
    allowed = serializers.IntegerField(allow_null=True, help_text="null: no limit.")
    percent = serializers.IntegerField(allow_null=True)
    unit = serializers.ChoiceField(choices=["things", "bytes"])
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="When ONTAP's figures were measured."
    )


class ErrorSerializer(serializers.Serializer[Any]):
    detail = serializers.CharField(help_text="What happened, for people.")
    code = serializers.ChoiceField(choices=CODES, help_text="Why, for programs.")
    request_id = serializers.CharField(
        help_text="The request, as in the logs and in X-Request-ID."
    )
    fields_ = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="The errors by field.",
    )
    workspace = serializers.IntegerField(
        required=False,
        help_text="The workspace that the refusal is about, if any.",
    )
    limits = LimitSerializer(
        many=True,
        required=False,
        help_text="If a limit is reached: the usage of this and the other limits.",
    )

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["fields"] = fields.pop("fields_")
        return fields
