"""URLs of single sign-on."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.single_sign_on.views import begin, callback

urlpatterns: list[URLPattern] = [
    path("single-sign-on/", begin, name="single-sign-on"),
    path("single-sign-on/callback/", callback, name="single-sign-on-callback"),
]
