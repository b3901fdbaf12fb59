"""Two visits: what was learned on the first is known on the second."""

from playground import (
    Agent,
    InMemoryMemory,
    Predict,
    Scenario,
    ScenarioEnv,
    Step,
    StoredMemory,
    ToolCall,
    Workflow,
)


def build(env: ScenarioEnv) -> Workflow:
    t = env.text
    memory = StoredMemory(env.documents, "regular") if env.documents else InMemoryMemory()

    async def remember(fact: str) -> str:
        """Keep a fact about the guest for later visits."""
        await memory.remember(fact, tags=["taste"])
        return t("noted", "记下了")

    first = Agent(
        "barista",
        model=env.model(
            ToolCall("remember", {"fact": t("milk tea without sugar, little ice", "喝奶茶要无糖少冰")}),
            t("One milk tea without sugar, little ice.", "一杯无糖少冰的奶茶。"),
        ),
        instruction=t("Serve, and remember what the guest likes.", "接待客人，并记住他的口味。"),
        tools=[remember],
    )
    second = Agent(
        "colleague",
        model=env.model(t("Milk tea, no sugar, little ice, as always.", "奶茶，无糖少冰，老样子。")),
        instruction=t("Serve. You may know the guest already.", "接待客人，你也许已经了解他。"),
        memory=memory,
    )

    async def next_day(_):
        await env.pause()
        return t("A milk tea, please.", "来杯奶茶。")

    flow = Workflow().add("first_visit", first).add("next_day", next_day).add("second_visit", second)
    return flow.edge("first_visit", "next_day").edge("next_day", "second_visit")


scenario = Scenario(
    key="memory_regular",
    order=17,
    title={"en": "The regular", "zh": "老主顾"},
    summary={
        "en": "A guest says once how they like their tea; another agent knows it the next day.",
        "zh": "客人只说过一次口味，第二天换一位店员也知道。",
    },
    teaches={
        "en": "Memory outlives the run: a fact is kept with tags, and recalled by what the task is about.",
        "zh": "记忆比运行活得久：事实带着标签保存，按任务内容召回。",
    },
    concepts=("memory", "agent", "tool"),
    default_input={
        "en": "A milk tea. I never take sugar, and only little ice.",
        "zh": "来杯奶茶，我从来不加糖，少冰。",
    },
    make=build,
    lesson=(
        Step(
            "The model decides that this is worth keeping and calls a tool for it.",
            "模型觉得这值得记住，于是调用工具。",
            event="tool_called",
        ),
        Step(
            "The next day: another agent, another run, and not a word about sugar.",
            "第二天：另一个智能体、另一次运行，一个字没提糖。",
            node="next_day",
            event="node_completed",
        ),
        Step(
            "Before its first thought the memory is asked, and what it knows goes into the state.",
            "第一次思考前先查记忆，查到的内容写进状态。",
            node="recall",
            event="node_completed",
            predict=Predict("Who reads it?", "谁来读它？", ("think",)),
        ),
    ),
)
