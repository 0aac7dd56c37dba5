"""Folders of text and code, read and taken apart."""

from __future__ import annotations

import warnings

from django.apps import AppConfig

from .reading import SOURCE_NAME


class ExplorationConfig(AppConfig):
    """The app."""

    name = "testproject.exploration"

    def ready(self) -> None:
        """Keep quiet about what Python warns of in other people's code (old escapes and the like)."""
        warnings.filterwarnings("ignore", module=SOURCE_NAME)
