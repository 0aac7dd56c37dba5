"""Full-text search over what was explored."""

from __future__ import annotations

from django.apps import AppConfig


class SearchConfig(AppConfig):
    """The app."""

    name = "testproject.search"
