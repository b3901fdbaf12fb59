"""`run.explain()`: which layer contributed what, in the order in which the agent gets it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict

import pytest
from layer_probes import factory

from playground.agenton.collections.layers.plain import PromptLayer, PromptLayerConfig, ToolsLayer
from playground.agenton.compositor import Compositor, CompositorRun, Contribution, LayerNode
from playground.agenton.layers import NoLayerDeps, PlainLayer


def search(query: str) -> str:
    """Look something up."""
    return query


def composed() -> CompositorRun:
    compositor = Compositor(
        [
            LayerNode("base", PromptLayer),
            LayerNode("tools", factory(ToolsLayer, lambda: ToolsLayer([search]))),
            LayerNode("style", PromptLayer),
        ],
        prompt_transformer=lambda prompts: ["\n".join(prompt.value for prompt in prompts)],
    )
    return compositor.enter(
        configs={
            "base": PromptLayerConfig(prefix="Be correct.", user="Why?", suffix="Be brief."),
            "style": {"prefix": "Be kind.", "suffix": "Smile."},
        }
    )


def test_each_item_is_explained_by_layer_and_surface_in_the_order_of_the_run() -> None:
    run = composed()
    explained = run.explain()
    assert explained.prompts == (
        Contribution("base", "prefix_prompts", "plain", "Be correct."),
        Contribution("style", "prefix_prompts", "plain", "Be kind."),
        Contribution("style", "suffix_prompts", "plain", "Smile."),
        Contribution("base", "suffix_prompts", "plain", "Be brief."),
    )
    assert explained.user_prompts == (Contribution("base", "user_prompts", "plain", "Why?"),)
    assert explained.tools == (Contribution("tools", "tools", "plain", "search"),)
    assert run.prompts == ["\n".join(part.text for part in explained.prompts)]


def test_an_explanation_is_a_frozen_value_that_reads_as_a_sentence_and_as_json() -> None:
    part = composed().explain().prompts[0]
    with pytest.raises(FrozenInstanceError):
        part.text = "other"  # type: ignore[misc]
    assert str(part) == "base.prefix_prompts: Be correct."
    assert asdict(part) == {
        "layer": "base",
        "surface": "prefix_prompts",
        "kind": "plain",
        "text": "Be correct.",
    }


class LoudLayer(PlainLayer[NoLayerDeps]):
    """A family of its own, which wraps into bare text."""

    @property
    def prefix_prompts(self) -> list[str]:
        return ["hello"]

    def wrap_prompt(self, prompt: str) -> str:  # type: ignore[override]
        return prompt.upper()


def test_an_item_of_an_unknown_family_is_explained_by_its_own_type() -> None:
    run = Compositor([LayerNode("loud", LoudLayer)]).enter()
    assert run.explain().prompts == (Contribution("loud", "prefix_prompts", "str", "HELLO"),)
