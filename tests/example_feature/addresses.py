"""The line in the addresses of all features."""

from __future__ import annotations

from provisioner.urls import FEATURES, patterns_of, server_error
from tests.example_feature import urls as errand_urls

urlpatterns = patterns_of((*FEATURES, errand_urls))
handler500 = server_error
