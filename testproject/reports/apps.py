"""Reports on what was explored, as files."""

from __future__ import annotations

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    """The app."""

    name = "testproject.reports"
