"""One after the other: each stage gets what the one before made."""

from playground import Agent, Plan, Predict, Scenario, ScenarioEnv, Step, build_pipeline


def build(env: ScenarioEnv) -> Plan:
    t = env.text

    def tidy(note: str) -> str:
        return " ".join(note.split())

    headline = Agent(
        "headline",
        model=env.model(t("New: cold brew tea, from Friday", "新品：冷泡茶，周五上市")),
        instruction=t("Make a headline of the note.", "把这条消息写成标题。"),
    )
    post = Agent(
        "post",
        model=env.model(
            t("From Friday we pour cold brew tea. Come early!", "周五起供应冷泡茶，早来早喝！"),
        ),
        instruction=t("Make a friendly post of the headline.", "把标题写成一条友好的动态。"),
    )
    return build_pipeline([("tidy", tidy), ("headline", headline), ("post", post)])


scenario = Scenario(
    key="pipeline",
    order=10,
    title={"en": "Pipeline", "zh": "流水线"},
    summary={
        "en": "A note becomes a headline, the headline becomes a post: a function and two agents in a row.",
        "zh": "消息变标题，标题变动态：一个函数和两个智能体排成一列。",
    },
    teaches={
        "en": "A node's output is the next one's input; to the graph, a function and an agent are alike.",
        "zh": "前一个节点的输出就是后一个的输入；对图来说，函数和智能体没有区别。",
    },
    concepts=("pipeline", "call", "agent"),
    default_input={"en": "cold   brew tea,\nsold from friday", "zh": "冷泡茶\n周五  开卖"},
    make=build,
    lesson=(
        Step(
            "tidy is a plain function. Its value goes on along the edge.",
            "tidy 是普通函数，它的返回值沿着边往下走。",
            node="tidy",
            event="node_completed",
            predict=Predict("Who gets it?", "谁会收到？", ("headline",)),
        ),
        Step(
            "headline is an agent: the same edge, and behind it a whole run of its own.",
            "headline 是智能体：同样的边，背后是一整次子运行。",
            node="headline",
            event="delegated",
        ),
        Step(
            "The last stage has no edge out, so its output is the run's.",
            "最后一段没有出边，它的输出就是整个运行的输出。",
            node="post",
            event="node_completed",
        ),
    ),
)
