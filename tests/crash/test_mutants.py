"""What the mutants change is still there, once each: else `make mutants` would find out after hours."""

import pytest

from tests.crash.mutants import MUTANTS, Mutant, copied


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_applies(mutant: Mutant) -> None:
    with copied(mutant) as tree:
        assert (tree / "django_jobqueue").is_dir()
