"""Write, review, revise: a loop of two agents that ends when the reviewer is content."""

from playground import Agent, Scenario, ScenarioEnv, Step, Workflow, go


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    def draft(messages) -> str:
        if t("Review:", "审阅：") in str(messages[-1]["content"]):
            return t("Our tea wakes you up, from ¥12 a cup.", "一杯唤醒你的茶，12 元起。")
        return t("Our tea is the best tea in the world.", "我们的茶是全世界最好的茶。")

    def opinion(messages) -> str:
        if "12" in str(messages[-1]["content"]):
            return t("OK. Says what and for how much.", "通过。说清了是什么、多少钱。")
        return t("REVISE. An empty claim: say what it does and its price.", "修改。空话：写清作用和价格。")

    writer = Agent(
        "writer",
        model=env.model(draft),
        instruction=t("Write one line of advertising.", "写一句广告语。"),
    )
    reviewer = Agent(
        "reviewer",
        model=env.model(opinion),
        instruction=t("Begin with OK or REVISE, then say why.", "以“通过”或“修改”开头，再说理由。"),
    )

    async def write(brief, ctx):
        return go("review", await writer.delegate(brief, ctx))

    async def review(line, ctx):
        verdict = await reviewer.delegate(line, ctx)
        if verdict.startswith(t("OK", "通过")):
            return go("publish", line, verdict="publish")
        return go("write", f"{ctx.run.task}\n{t('Review:', '审阅：')} {verdict}", verdict="revise")

    def publish(line):
        return t(f"Published: {line}", f"已发布：{line}")

    flow = Workflow(max_waves=20)
    flow.add("write", write).add("review", review).add("publish", publish, terminal=True)
    flow.edge("write", "review")
    flow.branch("review", {"revise": "write", "publish": "publish"}, decide=lambda state: state["verdict"])
    return flow.entry("write")


scenario = Scenario(
    key="review_team",
    order=12,
    title={"en": "Review team", "zh": "撰稿与审阅"},
    summary={
        "en": "A writer and a reviewer pass a line back and forth until it is good enough to publish.",
        "zh": "撰稿人和审阅人来回修改一句话，直到可以发布。",
    },
    teaches={
        "en": "A loop is a Goto back to a node that has run; edges show where it may go, Goto where it goes.",
        "zh": "循环就是 Goto 回到跑过的节点；边是可能的路，Goto 决定走哪条。",
    },
    concepts=("loop", "call", "edge", "agent"),
    default_input={"en": "One line for our tea.", "zh": "给我们的茶写一句话。"},
    make=build,
    lesson=(
        Step(
            "The writer runs as a child and hands its draft on.",
            "撰稿人作为子运行执行，把稿子交出去。",
            node="write",
            event="node_completed",
        ),
        Step(
            "The reviewer is not content. See the state: verdict is revise.",
            "审阅人不满意。看状态：verdict 是 revise。",
            node="review",
            event="node_completed",
        ),
        Step(
            "So review says Goto write, and hands the reason over as its input.",
            "于是 review 返回 Goto write，并把理由作为输入交过去。",
            event="state_delta",
        ),
        Step(
            "The second draft passes, so this time it is Goto publish.",
            "第二稿通过，这次是 Goto publish。",
            node="publish",
        ),
    ),
)
