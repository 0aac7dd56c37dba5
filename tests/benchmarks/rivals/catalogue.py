"""Which rivals there are, and what the measurement has to know of each."""

from dataclasses import dataclass


class RivalFailed(Exception):
    """A rival that cannot be installed, crashed, stalled or lost a job: the reason and the end of its log."""

    def __init__(self, name: str, reason: str, log: str = "") -> None:
        tail = "\n".join(log.splitlines()[-20:])
        super().__init__(f"{name}: {reason}" + (f"\n{tail}" if tail else ""))
        self.name = name
        self.reason = reason


@dataclass(frozen=True)
class Rival:
    name: str
    package: str
    # For Django 6, which has the Tasks API, or because the rival asks for it.
    newer_python: bool = False
    postgresql: bool = True
    sqlite: bool = False
    redis: bool = False
    # How long its idle worker sleeps before it looks again, where nothing wakes it.
    poll_seconds: float = 0.0

    @property
    def module(self) -> str:
        return "on_" + self.name.replace("-", "_")


_ALL = (
    Rival("procrastinate", "procrastinate"),
    Rival("django-tasks-db", "django-tasks-db", newer_python=True, sqlite=True, poll_seconds=1.0),
    Rival("dj-queue", "dj-queue", newer_python=True, sqlite=True),
    Rival("django-ox", "django-ox", newer_python=True, sqlite=True, poll_seconds=1.0),
    Rival("django-q2", "django-q2", sqlite=True, poll_seconds=0.2),
    Rival("huey", "huey", sqlite=True),
    Rival("celery", "celery", postgresql=False, redis=True),
    Rival("pgqueuer", "pgqueuer"),
    Rival("steady-queue", "steady-queue", newer_python=True, poll_seconds=0.1),
    Rival("oban", "oban", newer_python=True),
)
RIVALS = {rival.name: rival for rival in _ALL}
