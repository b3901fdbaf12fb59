"""A failing test, tools from an MCP server in a process of its own, and a skill from a folder."""

import sys

from playground import (
    Agent,
    Scenario,
    ScenarioEnv,
    SkillRegistry,
    StdioMCPClient,
    Step,
    ToolCall,
    ToolRegistry,
    Workflow,
    load_mcp_tools,
)


def build(env: ScenarioEnv) -> Workflow:
    t = env.text
    skills = SkillRegistry()
    skills.load_dir(env.files / "skills")
    model = env.model(
        [ToolCall("read_file", {"file": "average.py"}), ToolCall("read_file", {"file": "test_average.py"})],
        ToolCall("try_fix", {"expression": "sum(numbers) / len(numbers) if numbers != [] else 0"}),
        ToolCall("try_fix", {"expression": "sum(numbers) / len(numbers) if numbers else 0"}),
        t(
            "average divided by zero, and None has no length: `if numbers else 0` passes all tests.",
            "average 除以了零，None 又没有长度：加上 `if numbers else 0` 后测试全部通过。",
        ),
    )

    async def investigate(task, ctx):
        skill = skills.match(task)
        await ctx.note("skill", name=skill.name if skill else None)
        tools = ToolRegistry()
        async with StdioMCPClient([sys.executable, str(env.files / "server.py")]) as server:
            await load_mcp_tools(tools, server)
            detective = Agent(
                "detective",
                model=model,
                instruction=skills.apply_to_system(skill, t("You fix bugs.", "你负责修复缺陷。")),
                registry=tools,
            )
            return await detective.delegate(task, ctx)

    return Workflow().add("investigate", investigate)


scenario = Scenario(
    key="code_detective",
    order=19,
    title={"en": "Code detective", "zh": "代码侦探"},
    summary={
        "en": "A test fails. The agent reads, tries a fix, tries again: with tools over MCP and a skill.",
        "zh": "测试失败。智能体读代码、试着修、失败、再试：工具来自 MCP，方法来自技能。",
    },
    teaches={
        "en": "Where a tool comes from is no business of the model: MCP tools are tools like any other.",
        "zh": "工具从哪来与模型无关：MCP 工具和别的工具没有区别。",
    },
    concepts=("mcp", "skill", "tool", "react"),
    default_input={
        "en": "The test of average fails. Find the bug.",
        "zh": "average 的测试失败了，请定位缺陷。",
    },
    make=build,
    lesson=(
        Step(
            "A skill was found by the words of the task, and its instructions go into the prompt.",
            "按任务的用词找到一项技能，它的指引写进系统提示。",
            event="note",
        ),
        Step(
            "Two calls in one turn, to another process over its stdin. To the log they are tool calls.",
            "同一轮两个调用，经标准输入发往另一个进程。在日志里它们只是工具调用。",
            event="tool_called",
        ),
        Step(
            "Back come the files. The first fix will forget None: news for the model, no accident.",
            "文件读回来了。第一次修改会漏掉 None：那是给模型的消息，不是事故。",
            event="tool_returned",
        ),
        Step(
            "The second one passes. The server ended with the node; nothing of it is kept in memory.",
            "第二次通过。服务器随节点结束，内存里什么都不留。",
            node="investigate",
            event="node_completed",
        ),
    ),
    requires=("mcp",),
)
