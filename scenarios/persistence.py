"""Crash it wherever you like: what has returned is not done again."""

from playground import Outcome, Predict, Scenario, ScenarioEnv, Step, Workflow, append, wait_human


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    async def fetch(topic):
        await env.pause()
        pages = [f"{topic} {number}" for number in (1, 2, 3)]
        return Outcome.ok(pages, log=t(f"fetched {len(pages)} pages", f"抓取了 {len(pages)} 页"))

    async def index(pages, ctx):
        for page in pages:
            await ctx.emit("progress", page=page)
            await env.pause()
        return Outcome.ok(len(pages), log=t(f"indexed {len(pages)} pages", f"索引了 {len(pages)} 页"))

    def confirm(count, ctx):
        if not ctx.resumed:
            return wait_human(t("Publish this index?", "发布这份索引吗？"), {"pages": count})
        return Outcome.ok(count, approved=ctx.resume_value["approved"])

    def told(ctx, ending: str) -> str:
        return t("; ", "；").join([*ctx.shared["log"], ending])

    flow = Workflow().channel("log", append())
    flow.add("fetch", fetch).add("index", index).add("confirm", confirm)
    flow.add("publish", lambda _, ctx: told(ctx, t("published", "已发布")), terminal=True)
    flow.add("keep", lambda _, ctx: told(ctx, t("kept as a draft", "留作草稿")), terminal=True)
    flow.edge("fetch", "index").edge("index", "confirm")
    return flow.branch(
        "confirm",
        {"approve": "publish", "reject": "keep"},
        decide=lambda state: "approve" if state["approved"] else "reject",
    )


scenario = Scenario(
    key="persistence",
    order=5,
    title={"en": "Crash and go on", "zh": "断点续跑"},
    summary={
        "en": "Fetch, index, confirm, publish. Stop the engine at any moment and let it go on.",
        "zh": "抓取、索引、确认、发布。随时让引擎停下，再继续。",
    },
    teaches={
        "en": "The log is the run: recovery reads it again and does only what is not in it.",
        "zh": "日志就是运行：恢复就是重读日志，只做里面没有的事。",
    },
    concepts=("recovery", "approval", "state"),
    default_input={"en": "tea", "zh": "茶"},
    make=build,
    lesson=(
        Step(
            "A node's result is in the log before anything acts on it.",
            "节点的结果先写进日志，然后才有人据此行动。",
            node="fetch",
            event="node_completed",
            predict=Predict("Crash now, go on: who runs?", "现在崩溃再继续：谁会运行？", ("index",)),
        ),
        Step(
            "Press Crash while it indexes. It starts again, as attempt 2; fetch does not.",
            "在索引时按“崩溃”。它会作为第 2 次尝试重来，fetch 不会。",
            node="index",
        ),
        Step(
            "Parked: no engine is needed at all until somebody answers.",
            "停在这里：在有人答复之前，完全不需要引擎。",
            event="run_suspended",
        ),
        Step(
            "The log channel has each line once, whatever happened on the way.",
            "不管途中发生了什么，log 通道里每行都只有一次。",
            event="run_completed",
        ),
    ),
)
