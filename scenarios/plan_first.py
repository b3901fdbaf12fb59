"""A model writes a list of steps; the steps are data, and each becomes an instance."""

from playground import Agent, ChildSpec, Predict, Scenario, ScenarioEnv, Step, build_plan_execute


def build(env: ScenarioEnv) -> ChildSpec:
    t = env.text

    def do(messages) -> str:
        return t(f"done: {messages[-1]['content']}", f"完成：{messages[-1]['content']}")

    worker = Agent(
        "worker",
        model=env.model(do),
        instruction=t("Do this step and say in one line what came of it.", "完成这一步，用一行说明结果。"),
    )
    planner = env.model(
        t("A tea tasting, what a lovely idea!", "品茶会，好主意！"),
        t(
            "1. Choose three teas\n2. Invite eight guests\n3. Set a long table",
            "1. 选三款茶\n2. 邀请八位客人\n3. 摆一张长桌",
        ),
    )
    plan = build_plan_execute(worker=worker, synth=lambda results: "\n".join(results), max_replans=2)
    return ChildSpec(plan, llm=planner)


scenario = Scenario(
    key="plan_first",
    order=13,
    title={"en": "Plan first", "zh": "先规划后执行"},
    summary={
        "en": "A planner lists the steps, workers do them side by side, the results are put together.",
        "zh": "规划者列出步骤，执行者并行完成，最后汇总。",
    },
    teaches={
        "en": "A model's plan is a list in the state; Send fans it out, and the graph never changes.",
        "zh": "模型的计划只是状态里的一个列表；Send 把它扇出，图本身从不改变。",
    },
    concepts=("plan-first", "fan-out", "join", "agent"),
    default_input={"en": "Prepare a tea tasting.", "zh": "筹备一场品茶会。"},
    make=build,
    lesson=(
        Step(
            "The first reply is no list. That uses up one plan of three, and plan says Goto plan.",
            "第一次回复不是列表。这用掉了三次规划中的一次，plan 返回 Goto plan。",
            node="plan",
            event="node_completed",
            predict=Predict("Who runs next?", "下一个运行的是谁？", ("plan",)),
        ),
        Step(
            "Three steps, so three Sends: nobody knew the number before.",
            "三个步骤就是三个 Send：事先谁也不知道数量。",
            node="step",
            predict=Predict(
                "One wave. What waits for all of them?",
                "它们在同一波。谁在等它们全部？",
                ("review",),
            ),
        ),
        Step(
            "review has the results in the order of the steps, and nothing to complain about.",
            "review 按步骤顺序拿到结果，没有意见。",
            node="review",
            event="node_completed",
            predict=Predict("And then?", "然后呢？", ("synth",)),
        ),
    ),
)
