"""An agent whose tools are agents: it decides whom to call, and when it is done."""

from playground import (
    Agent,
    ChildSpec,
    Scenario,
    ScenarioEnv,
    Step,
    ToolCall,
    ToolRegistry,
    build_supervisor,
    conversation,
)


def build(env: ScenarioEnv) -> ChildSpec:
    t = env.text
    facts = t("oolong is half oxidised, 80 °C, three minutes", "乌龙半发酵，80 °C，泡三分钟")
    researcher = Agent(
        "researcher",
        model=env.model(facts),
        instruction=t("Find the facts, in one line.", "查出事实，一行以内。"),
    )
    writer = Agent(
        "writer",
        model=env.model(t("Oolong: 80 °C, three minutes, then enjoy.", "乌龙茶：80 °C，三分钟，慢慢喝。")),
        instruction=t("Write a label from the facts.", "根据事实写一张标签。"),
    )
    tools = ToolRegistry()
    plan = build_supervisor(
        {
            "researcher": (researcher, t("Finds facts.", "查资料。")),
            "writer": (writer, t("Writes from facts.", "根据资料写作。")),
        },
        registry=tools,
        system=t(
            "Call the researcher, then give the facts to the writer. Return the label.",
            "先委派研究员，再把事实交给撰稿人，最后交回标签。",
        ),
    )
    model = env.model(
        ToolCall("researcher", {"task": t("How is oolong brewed?", "乌龙茶怎么泡？")}),
        ToolCall("writer", {"task": facts}),
        t("The label: Oolong, 80 °C, three minutes.", "标签：乌龙茶，80 °C，三分钟。"),
    )
    return ChildSpec(plan, llm=model, tools=tools, shared=conversation)


scenario = Scenario(
    key="supervisor",
    order=11,
    title={"en": "Supervisor", "zh": "主管派活"},
    summary={
        "en": "A supervisor calls a researcher, then a writer with what came back, and reports.",
        "zh": "主管先委派研究员，再把结果交给撰稿人，然后汇报。",
    },
    teaches={
        "en": "An agent can be a tool of another one: a supervisor is ReAct over agents, nothing more.",
        "zh": "智能体可以是另一个智能体的工具：主管就是在智能体之上的 ReAct，仅此而已。",
    },
    concepts=("supervisor", "call", "react", "agent"),
    default_input={"en": "A label for our oolong, please.", "zh": "给我们的乌龙茶写张标签。"},
    make=build,
    lesson=(
        Step(
            "The model sees two tools. That they are agents is no business of the model.",
            "模型看到两个工具。它们其实是智能体，但模型不必知道。",
            event="model_called",
        ),
        Step(
            "The call runs as a child, and its output comes back as the tool's result.",
            "委派作为子运行执行，它的输出就是工具的结果。",
            event="delegated",
        ),
        Step(
            "Control is back, and the supervisor decides what to do with it.",
            "控制权回来了，由主管决定下一步。",
            node="tools",
            event="node_completed",
        ),
    ),
)
