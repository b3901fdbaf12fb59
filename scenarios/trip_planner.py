"""One agent calls three others at once and puts together what they bring back."""

from playground import Agent, Scenario, ScenarioEnv, Step, ToolCall


def build(env: ScenarioEnv) -> Agent:
    t = env.text

    def specialist(name: str, description: str, line: str) -> Agent:
        instruction = t(f"{description} Answer in one line.", f"{description}只用一行回答。")
        return Agent(name, model=env.model(line), description=description, instruction=instruction)

    sights = specialist(
        "sights",
        t("You plan what to see.", "你负责安排景点。"),
        t("Day 1 the Bund, day 2 Zhujiajiao.", "第一天外滩，第二天朱家角。"),
    )
    dining = specialist(
        "dining",
        t("You find places to eat.", "你负责找吃的。"),
        t("Noodles for lunch, a table by the river at seven.", "午饭吃面，晚上七点订了江边的位子。"),
    )
    transport = specialist(
        "transport",
        t("You plan how to get around.", "你负责交通。"),
        t("Metro line 2, then the boat.", "坐地铁二号线，再换船。"),
    )
    where = t("two days in Shanghai", "上海两日游")
    return Agent(
        "planner",
        model=env.model(
            [
                ToolCall("sights", {"task": where}),
                ToolCall("dining", {"task": where}),
                ToolCall("transport", {"task": where}),
            ],
            t(
                "Two days in Shanghai: the Bund, then Zhujiajiao by metro and boat; dinner by the river.",
                "上海两日：先去外滩，再坐地铁和船去朱家角，晚饭在江边。",
            ),
        ),
        instruction=t("Ask all specialists at once, then write the plan.", "同时问所有专家，然后写出行程。"),
        teammates=[sights, dining, transport],
    )


scenario = Scenario(
    key="trip_planner",
    order=18,
    title={"en": "Trip planner", "zh": "行程规划"},
    summary={
        "en": "A planner asks three specialists in one turn; they work side by side and report back.",
        "zh": "规划者一次问三位专家，他们并行工作，各自交回一行。",
    },
    teaches={
        "en": "A call returns: a teammate is a child run, and calls of one turn run side by side.",
        "zh": "委派会返回：同伴就是子运行，同一轮的多个委派并行执行。",
    },
    concepts=("call", "parallel", "agent", "supervisor"),
    default_input={"en": "Plan two days in Shanghai.", "zh": "帮我安排上海两天。"},
    make=build,
    lesson=(
        Step(
            "One reply of the model asks for three teammates at once.",
            "模型的一次回复同时要求三位同伴。",
            event="model_returned",
        ),
        Step(
            "Each call becomes a child run with its own model and its own log, linked to this node.",
            "每个委派都变成一次子运行，有自己的模型和日志，并挂在这个节点下。",
            event="delegated",
        ),
        Step(
            "Their results come back in the order of the calls, whoever finished first.",
            "结果按调用顺序回来，不管谁先完成。",
            node="tools",
            event="node_completed",
        ),
    ),
)
