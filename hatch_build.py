"""Compiles the translations when a wheel is built or the project is installed for work on it."""

from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CATALOGUES = "django_jobqueue/locale"


def compile_catalogues(root: Path) -> None:
    """A .mo beside each .po. They are made, so nobody commits them."""
    for source in (root / CATALOGUES).glob("*/LC_MESSAGES/django.po"):
        with source.open("rb") as text, source.with_suffix(".mo").open("wb") as compiled:
            write_mo(compiled, read_po(text, locale=source.parts[-3]))


class CatalogueHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the compiled translations into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it gathers the files."""
        compile_catalogues(Path(self.root))
        build_data["artifacts"].append(f"{CATALOGUES}/*/LC_MESSAGES/django.mo")
