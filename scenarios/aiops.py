"""Two calls that return, one transfer that does not, and a change that needs consent."""

from playground import Agent, Scenario, ScenarioEnv, Step, Team, ToolCall


def build(env: ScenarioEnv) -> Team:
    t = env.text

    def cpu_load() -> str:
        """Read the CPU load of the last hour."""
        return "12:00 35%, 12:10 92%, 12:20 93%, 12:30 91%"

    def error_log() -> str:
        """Read the latest errors."""
        return "ERROR pool exhausted: waited 5000 ms for a connection (37 times in the last hour)"

    def resize_pool(connections: int) -> str:
        """Set the size of the connection pool."""
        return t(f"the pool has {connections} connections now", f"连接池现在有 {connections} 个连接")

    def report(messages) -> str:
        if str(messages[-1]["content"]).startswith("[tool error]"):
            return t(
                "Nothing was changed. I keep watching the pool.",
                "没有做任何改动，我会继续盯着连接池。",
            )
        return t("The pool is larger, requests flow again.", "连接池已扩容，请求恢复正常。")

    analyst = t("Look at your data, then say in one sentence what is wrong.", "先看数据，再用一句话下结论。")
    cpu = Agent(
        "cpu_analyst",
        model=env.model(
            ToolCall("cpu_load"),
            t("CPU is high because requests queue up.", "CPU 高，是因为请求在排队。"),
        ),
        description=t("Reads CPU load.", "看 CPU 曲线。"),
        instruction=analyst,
        tools=[cpu_load],
    )
    log = Agent(
        "log_analyst",
        model=env.model(
            ToolCall("error_log"),
            t("The connection pool is exhausted.", "连接池耗尽。"),
        ),
        description=t("Reads the error log.", "看错误日志。"),
        instruction=analyst,
        tools=[error_log],
    )

    # One conversation, one script: whoever holds the conversation says its next line.
    model = env.model(
        [
            ToolCall("cpu_analyst", {"task": t("What does the CPU show?", "CPU 曲线说明什么？")}),
            ToolCall("log_analyst", {"task": t("What do the errors say?", "错误日志说明什么？")}),
        ],
        ToolCall("transfer_to_repairer", {"summary": t("The connection pool is exhausted.", "连接池耗尽。")}),
        ToolCall("resize_pool", {"connections": 200}),
        report,
        t("Repairer here, still with you: it is quiet.", "我是修复工程师，还在：一切平稳。"),
    )
    oncall = Agent(
        "oncall",
        model=model,
        instruction=t(
            "You are on call. Ask both analysts at once. Then hand over to the repairer.",
            "你在值班。同时问两位分析师，然后交给修复工程师。",
        ),
        teammates=[cpu, log],
    )
    repairer = Agent(
        "repairer",
        model=model,
        description=t("Changes the running system.", "负责改动线上系统。"),
        instruction=t("Resize the pool if it is exhausted, then report.", "连接池耗尽就扩容，然后汇报。"),
    ).add_tool(resize_pool, side_effect="write")
    return Team(oncall, repairer, handovers={"oncall": ["repairer"]})


scenario = Scenario(
    key="aiops",
    order=15,
    title={"en": "Incident", "zh": "故障处理"},
    summary={
        "en": "On call: two analysts are called and return, then the repairer takes over for good.",
        "zh": "值班：委派两位分析师并收回结果，然后交接给修复工程师，一去不返。",
    },
    teaches={
        "en": "A call returns and a transfer does not: a transfer is a Goto without a way back.",
        "zh": "委派会返回，接力不会：接力就是没有回边的 Goto。",
    },
    concepts=("call", "transfer", "approval", "parallel", "agent"),
    default_input={"en": "The shop is slow. Do something!", "zh": "商城很慢，快处理！"},
    make=build,
    lesson=(
        Step(
            "The conversation is with oncall. It runs as a child of this run.",
            "对话由 oncall 负责，它作为这次运行的子运行执行。",
            node="oncall",
        ),
        Step(
            "Two calls in one turn: two lanes that start together and return.",
            "同一轮里的两个委派：两条泳道同时开始，都会返回。",
            node="tools",
            event="delegated",
        ),
        Step(
            "The transfer: oncall says Goto repairer and has no edge back. Its part is over.",
            "接力：oncall 返回 Goto repairer，没有回边。它的部分结束了。",
            event="control",
        ),
        Step(
            "A tool that changes things waits for consent. Approve, edit the size, or reject.",
            "会改动系统的工具要等批准。可以批准、改大小，或拒绝。",
            event="interrupted",
        ),
        Step(
            "The repairer answers. Write again: after a transfer your next words go to it as well.",
            "由修复工程师回答。再写一句：接力之后，下一句话也交给它。",
            node="final",
            event="node_completed",
        ),
    ),
)
