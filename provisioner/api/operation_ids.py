"""Ids of operations in the schema. Settings name it, so it imports nothing of ours."""

from __future__ import annotations

from drf_spectacular.openapi import AutoSchema
from rest_framework.viewsets import ViewSetMixin


class Operations(AutoSchema):
    """Describes operations; the id of an extra action comes from its URL."""

    def get_operation_id(self) -> str:
        assert isinstance(self.view, ViewSetMixin)
        extra = {action.__name__ for action in self.view.get_extra_actions()}
        if self.view.action not in extra:
            return super().get_operation_id()
        return "_".join(self._tokenize_path()).replace("-", "_")
