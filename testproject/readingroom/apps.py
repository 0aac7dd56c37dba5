"""The site's pages, its spring cleaning and its demo."""

from __future__ import annotations

from django.apps import AppConfig


class ReadingRoomConfig(AppConfig):
    """The app."""

    name = "testproject.readingroom"
    verbose_name = "reading room"
