"""What a type checker infers for whoever composes layers, without a cast."""

from __future__ import annotations

from pathlib import Path

from mypy import api

SAMPLE = Path(__file__).with_name("typing_sample.py")


def test_layers_states_prompts_and_tools_have_inferred_types() -> None:
    report, trouble, _ = api.run([str(SAMPLE)])
    assert report.startswith("Success"), report + trouble
