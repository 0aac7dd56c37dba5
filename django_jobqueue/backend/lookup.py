"""From a module path to the Task there. Whatever else a path leads to is never called."""

from __future__ import annotations

import time
from importlib import import_module

from django.core.signals import setting_changed

from .. import conf, logs, registry
from ..compat import AnyTask, Task

#: Seconds for which a path that led to no Task is not tried again.
NOT_AGAIN = 60.0

_declared: dict[str, AnyTask] = {}
_missing: dict[str, float] = {}  # path -> until when it is not looked for


def declared(path: str) -> AnyTask | None:
    """The Task at a module path or at the one that JOBQUEUE["ALIASES"] names for it; None if there is none.

    Its module is imported if need be. One that fails with an error of its own is logged, with the trace;
    the path is tried again after a minute.
    """
    found = _declared.get(path)
    if found is not None:
        return found
    if _missing.get(path, 0.0) > time.monotonic():
        return None
    found = _at(str(conf.current().ALIASES.get(path, path)))
    if found is None:
        _missing[path] = time.monotonic() + NOT_AGAIN
    else:
        _declared[path] = found
    return found


def _at(path: str) -> AnyTask | None:
    module_path, _, name = path.rpartition(".")
    if not module_path or not all(part.isidentifier() for part in path.split(".")):
        return None
    try:
        found = getattr(import_module(module_path), name, None)
    except Exception as problem:
        if not _is_absent(module_path, problem):
            logs.task_not_importable(path)
        return None
    return found if isinstance(found, Task) and found.module_path == path else None


def _is_absent(module_path: str, problem: Exception) -> bool:
    """Whether there is no such module, rather than one that fails for another reason."""
    missing = getattr(problem, "name", None)
    return isinstance(problem, ModuleNotFoundError) and f"{module_path}.".startswith(f"{missing}.")


def forget() -> None:
    """Look for everything anew."""
    _declared.clear()
    _missing.clear()
    registry.forget_found()


def _on_setting(*, setting: str, **kwargs: object) -> None:
    if setting in ("TASKS", "JOBQUEUE"):
        forget()


setting_changed.connect(_on_setting, dispatch_uid="django_jobqueue.backend.lookup")
