"""A real browser, a real server and a real worker process, on the database that the tests run on."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Permission, User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from pytest_django import Settings

from tests.browser.chromium import find_chromium
from tests.browser.policy import be_strict
from tests.processes.conftest import gate, start_worker

__all__ = ["gate", "start_worker"]

#: Milliseconds after which what a page waits for will not come any more, on a busy machine too.
PATIENCE = 60_000

AXE = Path(sys.prefix) / "axe"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without Chromium they are skipped; where JOBQUEUE_BROWSER=required is set, they fail."""
    if find_chromium() or os.environ.get("JOBQUEUE_BROWSER") == "required":
        return
    for item in items:
        if "tests/browser/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason="Chromium is not installed"))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, once for this folder: the tests after it need the thread without an event loop."""
    path = find_chromium()
    assert path, "Chromium is not installed: apt-get install chromium"
    with pytest.MonkeyPatch.context() as patch:
        # Playwright keeps an event loop in this thread, on which nothing of Django's runs.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            yield browser
            browser.close()


@pytest.fixture(autouse=True)
def strict_policy(settings: Settings) -> None:
    """Every answer forbids all that is inline or from elsewhere."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    be_strict(settings)
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["tests:*"]}


Visitor = Callable[..., Page]


@pytest.fixture
def visitor(
    browser: Browser, live_server: Any, transactional_db: None, complaints: list[str]
) -> Iterator[Visitor]:
    """A function that answers with the page of a superuser, or of somebody with just these permissions."""
    contexts: list[BrowserContext] = []

    def make(*codenames: str, name: str = "root", **options: Any) -> Page:
        user = User.objects.create_user(name, is_staff=True, is_superuser=not codenames)
        user.user_permissions.set(
            Permission.objects.filter(codename__in=codenames, content_type__app_label="django_jobqueue")
        )
        client = Client()
        client.force_login(user)
        context = browser.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        cookie = client.cookies[django_settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: _listen(message, complaints))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What browsers complained of: refused by the policy, or failed in a script. Nothing, at the end."""
    found: list[str] = []
    yield found
    assert found == []


#: No fault of a page: there is no such icon, and the machine's network may come and go.
_HARMLESS = ("favicon.ico", "ERR_NETWORK_CHANGED")


def _listen(message: ConsoleMessage, complaints: list[str]) -> None:
    said = f"{message.text} {message.location}"
    if message.type == "error" and not any(one in said for one in _HARMLESS):
        complaints.append(message.text)


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, from npm, kept beside the environment."""
    script = AXE / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        assert npm, "npm is not installed: apt-get install npm"
        install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(AXE), "axe-core@4"]
        subprocess.run(install, check=True)
    return script.read_text()
