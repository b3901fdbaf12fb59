"""For tests of scenarios: play one again and see how it goes."""

from playground.sessions.retelling import Retelling, retold

__all__ = ["Retelling", "retold"]
