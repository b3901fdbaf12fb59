"""ReAct by hand: three nodes and a way back are an agent."""

from playground import (
    ChildSpec,
    FnBody,
    Node,
    Outcome,
    Plan,
    Predict,
    Scenario,
    ScenarioEnv,
    Step,
    ToolCall,
    ToolRegistry,
    append,
)


def build_react_plan(tools: ToolRegistry) -> Plan:
    async def think(_, ctx):
        reply = await ctx.llm_chat(ctx.shared["messages"], tools=tools.schemas())
        if not reply.tool_calls:
            return Outcome.ok(reply.text, messages=[{"role": "assistant", "content": reply.text}])
        calls = [{"id": c.call_id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls]
        asked = {"role": "assistant", "content": reply.text, "tool_calls": calls}
        return Outcome.goto("tools", calls, messages=[asked])

    async def act(calls, ctx):
        results = []
        for call in calls:
            result = await ctx.call_tool(call["name"], call["arguments"])
            told = str(result.output if result.ok else result.error)
            results.append(
                {"role": "tool", "name": call["name"], "tool_call_id": call["id"], "content": told}
            )
        return Outcome.goto("think", messages=results)

    def wants_tools(state):
        return "tool_calls" in state["messages"][-1]

    plan = Plan(channels={"messages": append()}, entry=("think",))
    plan.add(
        Node("think", FnBody(think)),
        Node("tools", FnBody(act)),
        Node("final", FnBody(lambda answer: Outcome.ok(answer)), terminal=True),
    )
    plan.edge("think", "tools", when=wants_tools).edge("tools", "think")
    return plan.edge("think", "final", when=lambda state: not wants_tools(state))


def build(env: ScenarioEnv) -> ChildSpec:
    t = env.text

    async def weather(city: str) -> str:
        """Look up the weather in a city."""
        await env.pause()
        return t(f"{city}: sunny, 26 °C", f"{city}：晴，26 °C")

    model = env.model(
        ToolCall("weather", {"city": t("Beijing", "北京")}),
        t("Beijing is sunny today, 26 °C.", "北京今天晴，26 °C。"),
    )
    tools = ToolRegistry().function(weather)
    return ChildSpec(
        build_react_plan(tools),
        llm=model,
        tools=tools,
        shared=lambda task: {"messages": [{"role": "user", "content": task}]},
    )


scenario = Scenario(
    key="react_demo",
    order=3,
    title={"en": "ReAct by hand", "zh": "手工拼出 ReAct"},
    summary={
        "en": "An agent without an agent class: think, tools, final, and the Goto that makes them a loop.",
        "zh": "不用 Agent 类的智能体：think、tools、final，加上让它们成环的 Goto。",
    },
    teaches={
        "en": "An agent is a graph with a way back, and the kernel needs no notion of one.",
        "zh": "智能体就是一张有回边的图，内核里不需要“智能体”这个概念。",
    },
    concepts=("react", "loop", "tool", "edge"),
    default_input={"en": "What is the weather in Beijing?", "zh": "北京天气怎么样？"},
    make=build,
    lesson=(
        Step(
            "The model is asked for the first time. It sees the question and a list of tools.",
            "第一次问模型。它看到问题和工具列表。",
            event="model_called",
        ),
        Step(
            "It answers with a tool call instead of a text, and think says Goto.",
            "它没有直接回答，而是要求调用工具；think 返回 Goto。",
            node="think",
            event="node_completed",
            predict=Predict("Where does the run go?", "接下来去哪？", ("tools",)),
        ),
        Step(
            "The result is one more message. tools says Goto think: this is the whole loop.",
            "结果只是又一条消息。tools 返回 Goto think：循环仅此而已。",
            node="tools",
            event="node_completed",
            predict=Predict("And now?", "现在呢？", ("think",)),
        ),
        Step(
            "A text without a tool call makes the edge to final live, and the run ends.",
            "没有工具调用的回答让通往 final 的边成立，运行结束。",
            node="final",
        ),
    ),
)
