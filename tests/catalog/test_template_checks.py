"""What is remarked on a definition: pure rules, and a check at the lab's server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.catalog import checks
from provisioner.catalog.actions.checks import template_check, template_preview
from provisioner.catalog.models import Template, TemplateCheck
from provisioner.catalog.refusals import TemplateInvalid
from provisioner.catalog.sweeps.checks import check_template
from provisioner.gateways import registry
from provisioner.gateways.perforce.types import ServerInfo, ViewSurvey
from provisioner.lib.refusals import NotAllowed
from tests.support.factories import TemplateFactory
from tests.support.lab import Lab
from tests.support.submits import submit


def survey(**fields: object) -> ViewSurvey:
    usual = {
        "files": 10,
        "size_bytes": 100,
        "depot_files": 100,
        "clashes": (),
        "names_were_compared": True,
    }
    return ViewSurvey(**{**usual, **fields})  # type: ignore[arg-type]


def info(*, is_unicode: bool) -> ServerInfo:
    return ServerInfo(
        version="",
        is_case_sensitive=True,
        is_unicode=is_unicode,
        server_id="",
        services="",
    )


def kinds(remarks: list[checks.Remark]) -> list[str]:
    return [remark.kind for remark in remarks]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"files": 1_000_000, "depot_files": 9_000_000}, ["wide_view"]),
        ({"files": 9_999, "depot_files": 10_000}, []),
        ({"files": 10_000, "depot_files": 20_000}, ["wide_view"]),
        ({"files": 10_000, "depot_files": 20_001}, []),
        ({"files": 0}, ["empty_view"]),
        ({"size_bytes": 2**50}, ["large_view"]),
        ({"files": 3_000_000, "depot_files": 9_000_000}, ["wide_view", "many_files"]),
        ({"clashes": (("a/B", "a/b"),)}, ["case_clash"]),
        ({"names_were_compared": False}, ["not_compared"]),
    ],
)
def test_a_view_is_judged_by_what_it_holds(
    db: None, fields: dict[str, object], expected: list[str]
) -> None:
    template = TemplateFactory.build(volume_size_bytes=2**33)
    assert kinds(checks._on_view(template, survey(**fields))) == expected


@pytest.mark.parametrize(
    ("options", "build", "files", "expected"),
    [
        ("nomodtime", "make", 10**6, []),
        ("modtime", "make", 10, ["modtime"]),
        ("modtime", "  ", 10**6, []),
        ("nomodtime", "", 50_000, ["nomodtime"]),
        ("nomodtime", "", 49_999, []),
        ("nomodtime", "", None, []),
    ],
)
def test_times_of_files_that_would_hurt_are_explained(
    options: str, build: str, files: int | None, expected: list[str]
) -> None:
    template = Template(client_options=f"noallwrite {options}", build_command=build)
    assert kinds(checks._on_times(template, files=files)) == expected


@pytest.mark.parametrize(
    ("is_unicode", "charset", "said"),
    [
        (True, "utf8", ""),
        (False, "none", ""),
        (True, "none", "refuse every command"),
        (False, "utf8", "Set it to none"),
        (True, "shiftjis", "as shiftjis"),
    ],
)
def test_a_charset_that_does_not_go_with_the_server_is_said(
    is_unicode: bool, charset: str, said: str
) -> None:
    template = TemplateFactory.build(site__perforce_server__p4charset=charset)
    remarks = checks.remarks_on_build(
        template, files=1, info=info(is_unicode=is_unicode)
    )
    assert [said in remark.sentence for remark in remarks] == ([True] if said else [])


def test_a_view_is_surveyed_on_the_server(lab: Lab, lab_template: Template) -> None:
    submit(lab, path="//depot/clashing/src/Read.txt", text="12345\n")
    submit(lab, path="//depot/clashing/SRC/other.txt", text="12345\n")
    perforce = registry.perforce(lab_template.site.perforce_server)
    view = ("//depot/clashing/... //any/...", "-//depot/clashing/no/... //any/no/...")

    found = perforce.files.survey(view, most_names=100)

    assert (found.files, found.size_bytes) == (2, 12)
    assert found.depot_files > 2
    assert [sorted(pair) for pair in found.clashes] == [["SRC", "src"]]
    assert found.names_were_compared
    assert not perforce.files.survey(view, most_names=1).names_were_compared
    nothing = perforce.files.survey(("//depot/nothing/... //any/...",), most_names=9)
    assert nothing.files == 0


def test_a_check_of_a_definition_is_kept_for_its_page(
    lab_template: Template, admin: User, signed_in: Callable[[User], Client]
) -> None:
    check_template(lab_template.pk)
    check_template(lab_template.pk)  # already done

    row = TemplateCheck.objects.get(template=lab_template)
    assert row.files
    assert row.error == ""
    page = signed_in(admin).get(reverse("template-detail", args=[lab_template.pk]))
    assert "Template checks" in page.content.decode()

    Template.objects.filter(pk=lab_template.pk).update(client_options="modtime")
    lab_template.refresh_from_db()
    template_check(by=admin, template=lab_template)
    row.refresh_from_db()
    assert [remark["kind"] for remark in row.remarks] == ["modtime"]


def test_a_server_that_does_not_answer_is_said_and_stops_nothing(
    template: Template, admin: User
) -> None:
    check_template(template.pk)
    row = TemplateCheck.objects.get()
    assert row.error
    assert row.files is None


def test_a_preview_saves_nothing_and_refuses_what_saving_would(
    template: Template, admin: User, carol: User
) -> None:
    site, view = template.site, "//depot/main/... //any/..."
    options = "noallwrite noclobber nocompress unlocked modtime normdir"
    check = template_preview(
        by=admin,
        site=site,
        view=view,
        client_options=options,
        build_command="make",
    )
    assert "modtime" in kinds(list(check.remarks))
    assert check.error
    assert Template.objects.count() == 1
    assert not TemplateCheck.objects.exists()
    with pytest.raises(TemplateInvalid):
        template_preview(by=admin, site=site, view="//...  //any/...")
    with pytest.raises(NotAllowed):
        template_preview(by=carol, site=site, view=view)
