"""Break things by seed, and say whether every promise was kept.

  python -m tests.crash --suite full        each fault alone, then all mixed, on both databases: half an hour
  python -m tests.crash --suite short       a part of it in five minutes
  python -m tests.crash --seed 7 --seconds 180 --database postgresql       one run with all faults mixed
  python -m tests.crash --seed 7 --seconds 20 --only KillHost Stop         one run with these faults

What failed is shown with the command that runs it again. The same seed makes the same load and the same
faults in the same order; at which instants they fall, the machine decides.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from .faults import ALL, BY_NAME
from .faults.base import POSTGRESQL, SQLITE, Fault
from .runs import LEASE, Plan, run
from .suites import SUITES, run_suite


def main(arguments: list[str]) -> int:
    """Exit code 1 if a promise was broken, or if CI lacks what a fault needs."""
    options = parse(arguments)
    if options.list:
        print("\n".join(f"{one.__name__:24} {one.name} ({', '.join(one.databases)})" for one in ALL))
        return 0
    if options.suite:
        return run_suite(options.suite, options.seed, options.jobs, options.keep)
    faults = [BY_NAME[name] for name in options.only] if options.only else mixed(options.database)
    if options.calm:
        faults = []
    for one in faults:
        if (missing := one.missing()) or options.database not in one.databases:
            print(f"not run: {one.name}: {missing or f'not on {options.database}'}")
            return 1 if os.environ.get("CI") == "true" else 0
    result = run(Plan(options.database, options.seed, options.seconds, faults, options.lease, options.keep))
    print(json.dumps(result.as_json()) if options.json else result)
    return 1 if result.broken else 0


def mixed(database: str) -> list[type[Fault]]:
    """All that can be mixed here."""
    return [one for one in ALL if one.mixes and database in one.databases and one.missing() is None]


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options, each with its default."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--suite", choices=sorted(SUITES), help="many runs, one after the other")
    parser.add_argument("--jobs", type=int, default=2, help="runs of the suite at a time (2)")
    parser.add_argument("--database", choices=(POSTGRESQL, SQLITE), default=POSTGRESQL)
    parser.add_argument("--seed", default="1", help="any text (1)")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long faults are injected (30)")
    parser.add_argument(
        "--lease", type=float, default=LEASE, help=f"of the workers, in seconds ({LEASE:.0f})"
    )
    parser.add_argument("--only", nargs="+", choices=sorted(BY_NAME), metavar="FAULT", help="see --list")
    parser.add_argument("--calm", action="store_true", help="no fault at all")
    parser.add_argument(
        "--keep", type=Path, default=Path("crash-logs"), help="where logs of failed runs are kept"
    )
    parser.add_argument("--list", action="store_true", help="name the faults")
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
