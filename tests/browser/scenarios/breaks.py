"""A body that fails."""

from playground import Scenario, ScenarioEnv, Workflow


def make(_: ScenarioEnv) -> Workflow:
    def fall(_):
        raise ValueError("the floor is missing: lay one before anyone walks in")

    return Workflow().add("fall", fall)


scenario = Scenario(
    key="breaks",
    title={"en": "It breaks", "zh": "出错"},
    summary={"en": "It fails at once.", "zh": "立刻失败。"},
    teaches={"en": "How a failure looks.", "zh": "失败是什么样子。"},
    concepts=(),
    default_input={"en": "", "zh": ""},
    make=make,
)
