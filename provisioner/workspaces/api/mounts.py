"""/api/v1/sites/{site}/mounts: what an automounter mounts to see a workspace."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.examples import answer, refusal
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import mounts_visible_to
from provisioner.workspaces.refusals import NfsServerUnknown

IN_PATH = [
    OpenApiParameter(
        "site", OpenApiTypes.STR, OpenApiParameter.PATH, description="Its name."
    ),
    OpenApiParameter(
        "directory",
        OpenApiTypes.STR,
        OpenApiParameter.PATH,
        description="The last part of the workspace's `path`.",
    ),
]
EXAMPLES = [
    answer(
        "Mountable",
        {
            "workspace": "ci-main-4711",
            "directory": "w-ci-main-4711",
            "remote": "nfs.munich.example.com:/w-ci-main-4711",
            "options": "vers=3,hard,nosuid,nodev",
            "entry": "-fstype=nfs,vers=3,hard,nosuid,nodev "
            "nfs.munich.example.com:/w-ci-main-4711",
        },
    ),
    refusal("No server", NfsServerUnknown(site="munich")),
]


class MountSerializer(serializers.Serializer[Workspace]):
    """How a host mounts one workspace."""

    workspace = serializers.CharField(source="name")
    directory = serializers.SerializerMethodField(
        help_text="Where, below the mount root."
    )
    remote = serializers.SerializerMethodField(help_text="HOST:/PATH.")
    options = serializers.CharField(
        source="site.volume_mount_options", help_text="Separated by commas, or “”."
    )
    entry = serializers.SerializerMethodField(
        help_text="What a program map of autofs prints for it: see autofs(5)."
    )

    def get_directory(self, workspace: Workspace) -> str:
        return workspace.path.name

    def get_remote(self, workspace: Workspace) -> str:
        return workspace.site.nfs_source(workspace.junction_path)

    def get_entry(self, workspace: Workspace) -> str:
        options = workspace.site.volume_mount_options
        fs_type = ",".join(filter(None, ("-fstype=nfs", options)))
        return f"{fs_type} {self.get_remote(workspace)}"


class MountViewSet(ApiViewSet):
    """Mounts of the workspaces that you may see; with a token for it, of all."""

    queryset = Workspace.objects.none()
    serializer_class = MountSerializer
    is_for_hosts = True
    lookup_url_kwarg = "directory"
    lookup_value_converter = "slug"

    def get_queryset(self) -> QuerySet[Workspace]:
        return mounts_visible_to(self.user)

    @described(
        "Get the mount of a workspace",
        "For automounters: `docker/auto.cloneyard` asks here, with a token that was "
        "created with `reads_mounts`. A workspace in the trash has none.",
        ok=MountSerializer,
        refused=[403, 404, 409],
        parameters=IN_PATH,
        examples=EXAMPLES,
    )
    def retrieve(self, request: Request, site: str, directory: str) -> Response:
        of_site: Any = self.get_queryset().filter(site__name=site)
        workspace = of_site.at_junction(f"/{directory}").first()
        if workspace is None:
            raise Http404
        if not workspace.site.nfs_server:
            raise NfsServerUnknown(site=workspace.site.name)
        return self.shown(workspace)
