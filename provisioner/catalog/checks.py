"""Check a template's definition for problems, before anybody waits for a build.

Remarks never block anything. A failed check is a remark, too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from procrastinate.contrib.django import app

from provisioner.catalog.models import Template, TemplateCheck
from provisioner.engine.deferring import defer_once
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.ontap.types import most_inodes
from provisioner.gateways.perforce.types import ServerInfo, ViewSurvey
from provisioner.lib import clocks
from provisioner.lib.sizes import size_text
from provisioner.sites.connections.perforce import charset_remark

CHECK = "check_template"
CHECK_QUEUE = "perforce"
LOOKED_AT_SECONDS = 15.0
WIDE_FILES = 1_000_000
WIDE_SHARE = 0.5
# A view of a small depot may well be half of it.
SHARE_MATTERS_FROM = 10_000
NAMES_COMPARED = 200_000
SLOW_RECONCILE_FILES = 50_000


@dataclass(frozen=True, kw_only=True)
class Remark:
    """`kind` is a stable code for programs."""

    kind: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of a check. Without a `survey`, the server did not answer."""

    remarks: tuple[Remark, ...]
    survey: ViewSurvey | None = None
    error: str = ""


def look(template: Template) -> Check:
    """Check a definition, saved or not, with its server, within a few seconds."""
    server = template.site.perforce_server
    perforce = registry.hasty_perforce(server, seconds=LOOKED_AT_SECONDS)
    info: ServerInfo | None = None
    survey: ViewSurvey | None = None
    error = ""
    try:
        info = perforce.get_info()
        survey = perforce.files.survey(
            template.view_lines, stream=template.stream, most_names=NAMES_COMPARED
        )
    except GatewayError as failure:
        error = failure.sentence
    return Check(
        remarks=(
            *_on_server(template, info),
            *_on_times(template, files=survey.files if survey else None),
            *(_on_view(template, survey) if survey else ()),
        ),
        survey=survey,
        error=error,
    )


def check_later(template: Template) -> None:
    """Queue the checks of a definition for when the transaction commits."""
    job = app.configure_task(
        CHECK, queue=CHECK_QUEUE, queueing_lock=f"{CHECK}.{template.pk}"
    )
    defer_once(job, template_id=template.pk)


def keep(template: Template, check: Check) -> TemplateCheck:
    """Save the result for the template's page."""
    row, _ = TemplateCheck.objects.update_or_create(
        template=template,
        defaults={
            "remarks": [asdict(remark) for remark in check.remarks],
            "files": check.survey.files if check.survey else None,
            "size_bytes": check.survey.size_bytes if check.survey else None,
            "depot_files": check.survey.depot_files if check.survey else None,
            "error": check.error,
            "checked_at": clocks.database_now(),
        },
    )
    return row


def remarks_on_build(
    template: Template, *, files: int, info: ServerInfo
) -> list[Remark]:
    """Return the remarks on a build, without more calls to the server."""
    wide = [_wide(files)] if files >= WIDE_FILES else []
    return [*wide, *_on_server(template, info), *_on_times(template, files=files)]


def _on_server(template: Template, info: ServerInfo | None) -> list[Remark]:
    if info is None:
        return []
    charset = template.site.perforce_server.p4charset or "none"
    sentence = charset_remark(info, charset=charset)
    return [Remark(kind="charset", sentence=sentence)] if sentence else []


def _on_times(template: Template, *, files: int | None) -> list[Remark]:
    words = template.client_options.split()
    if "modtime" in words and template.build_command.strip():
        return [
            Remark(
                kind="modtime",
                sentence="With modtime files get the time at which they were changed "
                "by their submitter, which can lie before the last build: make, ninja "
                "and the like then take what they built for newer and leave it as it "
                "is, here and after a sync in a clone. Use nomodtime where builds are "
                "incremental.",
            )
        ]
    has_no_build = not template.build_command.strip()
    if (
        "modtime" not in words
        and has_no_build
        and files is not None
        and files >= SLOW_RECONCILE_FILES
    ):
        return [
            Remark(
                kind="nomodtime",
                sentence=f"With nomodtime p4 reconcile -m and p4 clean -m cannot go by "
                f"times in a clone, and read all of {files:,} files. Nothing is built "
                "here, so modtime would harm no incremental build.",
            )
        ]
    return []


def _on_view(template: Template, survey: ViewSurvey) -> list[Remark]:
    remarks = []
    if not survey.files:
        sentence = "The view has no files now."
        remarks.append(Remark(kind="empty_view", sentence=sentence))
    if survey.files >= WIDE_FILES:
        remarks.append(_wide(survey.files))
    share = survey.files / max(survey.depot_files, 1)
    if survey.files >= SHARE_MATTERS_FROM and share >= WIDE_SHARE:
        remarks.append(
            Remark(
                kind="wide_view",
                sentence=f"The view is {min(share, 1):.0%} of all files of its depots. "
                "Leave out what the build does not need.",
            )
        )
    if survey.size_bytes > template.volume_size_bytes:
        remarks.append(
            Remark(
                kind="large_view",
                sentence=f"The view holds {size_text(survey.size_bytes)}, and the "
                f"volume {size_text(template.volume_size_bytes)}: the sync will run "
                "out of space.",
            )
        )
    if survey.files > (most := most_inodes(template.volume_size_bytes)):
        remarks.append(
            Remark(
                kind="many_files",
                sentence=f"The view has {survey.files:,} files, and a volume of "
                f"{size_text(template.volume_size_bytes)} can have {most:,}: builds "
                "are refused until it is larger.",
            )
        )
    remarks += [
        Remark(
            kind="case_clash",
            sentence=f"{one} and {other} differ in case only: trouble on servers and "
            "systems that ignore case.",
        )
        for one, other in survey.clashes
    ]
    if not survey.names_were_compared:
        remarks.append(
            Remark(
                kind="not_compared",
                sentence=f"Names that differ in case only were not checked: there "
                f"are more than {NAMES_COMPARED:,}. The build checks them.",
            )
        )
    return remarks


def _wide(files: int) -> Remark:
    return Remark(
        kind="wide_view",
        sentence=f"The view has {files:,} files: each flush holds locks of the server "
        "for as long as it has rows to write. Leave out what the build does not need.",
    )
