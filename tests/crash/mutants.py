"""`python -m tests.crash.mutants`: break the package in one place, and see whether the suite notices.

Each change is made to a copy of the tree, on which the narrowest part of the suite that should fail is run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

COPIED = ("django_jobqueue", "testproject", "tests", "pyproject.toml")
#: Chance has its part in most of them: so many seeds until one is caught.
SEEDS = 3
#: More sequences of moves than the suite has time for.
STATE_MACHINE = {"JOBQUEUE_TEST_EXAMPLES": "400"}


class Stale(Exception):
    """The code that a mutant changes is no longer there, or there more than once."""


@dataclass(frozen=True)
class Edit:
    """Replaces a text that is in the file once."""

    file: str
    old: str
    new: str

    def apply(self, tree: Path) -> None:
        """Write it."""
        path = tree / "django_jobqueue" / self.file
        text = path.read_text()
        if (times := text.count(self.old)) != 1:
            raise Stale(f"{self.file} has this {times} times, not once:\n{self.old}")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True)
class Mutant:
    """A change, and what should notice it: arguments of `tests.crash`, or of pytest."""

    name: str
    edits: tuple[Edit, ...]
    crash: tuple[str, ...] = ()
    pytest: tuple[str, ...] = ()

    def commands(self) -> list[list[str]]:
        """One after the other, until one fails."""
        if self.pytest:
            return [["pytest", "-q", "--no-header", "-p", "no:cacheprovider", *self.pytest]]
        return [["tests.crash", "--seed", str(seed), *self.crash] for seed in range(1, SEEDS + 1)]


MUTANTS = (
    Mutant(
        "the owner's guard left out of complete",
        (
            Edit(
                "databases/settling.py",
                "COMPLETE,\n            guard=HELD",
                'COMPLETE,\n            guard="job.status = 2"',
            ),
        ),
        ("--only", "Stop", "--seconds", "25"),
    ),
    # Renewal goes by worker and carries no fence; the fence guards in the token of every other write.
    Mutant(
        "the fence left out of the token",
        (Edit("databases/settling.py", " AND job.fence = given.held_fence", ""),),
        pytest=("tests/moves/test_state_machine.py", "--database", "postgresql"),
    ),
    Mutant(
        "reap that ignores the lease",
        (
            Edit(
                "databases/holding.py",
                'f"job.status = 2 AND job.lease_until < {self.now}"',
                '"job.status = 2"',
            ),
        ),
        ("--calm", "--seconds", "10"),
    ),
    Mutant(
        "a claim without SKIP LOCKED",
        (Edit("databases/postgresql_claim.py", "FOR NO KEY UPDATE SKIP LOCKED\n", "FOR NO KEY UPDATE\n"),),
        ("--only", "RowHeld", "--seconds", "12"),
    ),
    Mutant(
        "release on shutdown left out",
        (
            Edit(
                "worker/maintenance.py",
                "released = jobs.release_held(departed.worker_id, started=",
                "released = 0 and len(",
            ),
        ),
        ("--only", "TerminateTwice", "--seconds", "25"),
    ),
    Mutant(
        "the heartbeat in the handlers' process",
        (
            Edit(
                "worker/worker.py",
                "            self._heartbeat.start()\n            self._maintenance.start()\n",
                "            self._maintenance.start()\n        self._heartbeat.start()\n",
            ),
            Edit("worker/supervisor.py", "        self._heartbeat.start()\n", ""),
        ),
        ("--only", "HoldsTheGil", "--seconds", "20"),
    ),
    Mutant(
        "reaping at once after a reconnect",
        (
            Edit(
                "worker/maintenance.py",
                "        if self._interrupted:\n            self._interrupted = False\n",
                "        if False:\n",
            ),
        ),
        ("--only", "LongOutage", "--seconds", "20"),
    ),
    Mutant(
        "a suspect prefetched like any other",
        (
            Edit(
                "databases/postgresql_claim.py",
                """
        AND CASE WHEN p.crashes = 0
            THEN p.place < COALESCE((SELECT place FROM first_suspect), p.place + 1)
            ELSE p.place = 1 AND %(suspects)s END""",
                " AND (%(suspects)s OR TRUE)",
            ),
        ),
        pytest=("tests/moves/test_claim_suspects.py", "--database", "postgresql"),
    ),
    Mutant(
        "the worker's own clock for the lease",
        (
            Edit(
                "databases/claiming.py",
                'lease_until = {self.shifted(self.now, "%(lease)s")},',
                "lease_until = to_timestamp({__import__(\"time\").time()}) + %(lease)s * interval '1 s',",
            ),
        ),
        ("--only", "WrongClocks", "--seconds", "20"),
    ),
)


def main(arguments: list[str]) -> int:
    """Exit code 1 if one was not caught, 2 if one no longer applies."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="those whose name has this in it")
    chosen = [one for one in MUTANTS if parser.parse_args(arguments).only in one.name]
    try:
        for mutant in chosen:  # before hours are spent
            with copied(mutant):
                pass
    except Stale as error:
        print(f"A mutant no longer applies: {error}\nCorrect it in tests/crash/mutants.py.", file=sys.stderr)
        return 2
    missed = 0
    for mutant in chosen:
        how = caught(mutant)
        missed += not how
        print(
            f"{'caught    ' if how else 'NOT CAUGHT'}  {mutant.name}{f': {how}' if how else ''}", flush=True
        )
    return 1 if missed else 0


class copied:
    """The tree with a mutant in it, for a while."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def __enter__(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="mutant-")
        tree = Path(self._folder.name)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, tree / name)
        (tree / ".venvs").symlink_to(ROOT / ".venvs")
        try:
            for edit in self._mutant.edits:
                edit.apply(tree)
        except Stale:
            self._folder.cleanup()
            raise
        return tree

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()


def caught(mutant: Mutant) -> str:
    """What the suite said; empty if it noticed nothing."""
    with copied(mutant) as tree:
        for command in mutant.commands():
            done = subprocess.run(
                [sys.executable, "-m", *command],
                cwd=tree,
                capture_output=True,
                text=True,
                timeout=600,
                env=os.environ | STATE_MACHINE,
            )
            if done.returncode and (why := reason(done.stdout)):
                return why
    return ""


def reason(said: str) -> str:
    """The first line that tells of a promise broken; a fault that could not be made has noticed nothing."""
    lines = (line.strip() for line in said.splitlines())
    told = (line for line in lines if line.startswith(("BROKEN", "E  ")))
    return next((line[:160] for line in told if not line.startswith("BROKEN the fault")), "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
