"""Where the browser is."""

import os
import shutil

#: Debian's, and what else it may be called.
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """The path of Chromium: CHROMIUM, or the first of its names on PATH; None if there is none."""
    found = (shutil.which(name) for name in (os.environ.get("CHROMIUM", ""), *NAMES) if name)
    return next(filter(None, found), None)
