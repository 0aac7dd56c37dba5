from tests.moves.conftest import tests_types

__all__ = ["tests_types"]
