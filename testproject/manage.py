#!/usr/bin/env python
import os
import sys
from pathlib import Path


def main() -> None:
    # Imports start at the folder above, whether or not the project is installed: `testproject.settings`.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
