"""The catalogues: complete, in step with the code, and on the pages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.pofile import read_po
from django.utils import translation
from django.utils.translation import trans_real

from hatch_build import compile_catalogues
from tests.conftest import ROOT

LANGUAGES = ["de", "es", "fr", "ko", "zh_Hans"]
LOCALE = ROOT / "django_jobqueue/locale"


def catalogue(folder: Path, language: str) -> Catalog:
    with (folder / language / "LC_MESSAGES/django.po").open("rb") as file:
        return read_po(file, locale=language)


def words(found: Catalog) -> set[str]:
    return {str(message.id) for message in found if message.id}


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """What the code and the templates have to translate now."""
    if shutil.which("xgettext") is None and os.environ.get("CI") != "true":
        pytest.skip("gettext is not installed")
    folder = tmp_path_factory.mktemp("package") / "django_jobqueue"
    shutil.copytree(ROOT / "django_jobqueue", folder)
    # -P: the package has modules with names of the standard library, and is where this runs.
    command = [sys.executable, "-P", "-m", "django", "makemessages", "-l", "de", "--no-location"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with (folder / "locale/de/LC_MESSAGES/django.po").open("rb") as file:
        return read_po(file, locale="de")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated_and_none_is_left_over(extracted: Catalog, language: str) -> None:
    here = catalogue(LOCALE, language)
    assert words(here) == words(extracted)
    for message in here:
        forms = message.string if isinstance(message.string, tuple | list) else [message.string]
        assert all(forms) or not message.id, message.id
        assert not message.fuzzy or not message.id, message.id


@pytest.mark.parametrize("language", LANGUAGES)
def test_placeholders_are_those_of_the_text(language: str) -> None:
    for message in catalogue(LOCALE, language):
        assert list(message.check()) == [], message.id


@pytest.mark.parametrize(
    ("language", "word"),
    [
        ("de", "Gescheiterte Jobs"),
        ("fr", "Tâches mortes"),
        ("es", "Trabajos muertos"),
        ("ko", "실패한 작업"),
        ("zh-hans", "死信"),
    ],
)
def test_what_the_build_compiles_is_what_readers_see(language: str, word: str) -> None:
    compile_catalogues(ROOT)
    trans_real._translations.clear()
    with translation.override(language):
        assert translation.gettext("Dead letters") == word
