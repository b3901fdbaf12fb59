"""Two checks side by side, one conclusion, and a freeze that needs consent."""

from playground import Outcome, Predict, Scenario, ScenarioEnv, Step, Workflow, last, wait_human

# account, direction, amount, minute of the day
TRANSFERS = [
    ("A1", "in", 90_000, 602),
    ("A1", "out", 89_500, 611),
    ("A2", "in", 89_500, 615),
    ("A2", "out", 89_000, 640),
    ("A3", "in", 1_200, 660),
]
DEVICES = {"A1": "d7", "A2": "d7", "A3": "d2"}


def in_and_out(account: str, within: int = 30) -> bool:
    """Whether money left the account within so many minutes of coming in."""
    times = {direction: minute for name, direction, _, minute in TRANSFERS if name == account}
    return {"in", "out"} <= times.keys() and times["out"] - times["in"] <= within


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    async def screen_transfers(_, ctx):
        await env.pause()
        return {"fast": [name for name in ctx.shared["accounts"] if in_and_out(name)]}

    async def screen_devices(_, ctx):
        await env.pause()
        seen = [DEVICES.get(name) for name in ctx.shared["accounts"]]
        return {"linked": [n for n in ctx.shared["accounts"] if seen.count(DEVICES.get(n, n)) > 1]}

    def synthesize(_, ctx):
        fast, linked = ", ".join(ctx.shared["fast"]), ", ".join(ctx.shared["linked"])
        suspects = [name for name in ctx.shared["fast"] if name in ctx.shared["linked"]]
        finding = t(
            f"In and out at once: {fast}; one device: {linked}.", f"快进快出：{fast}；同一设备：{linked}。"
        )
        return Outcome.ok(finding, suspects=suspects)

    def freeze(finding, ctx):
        suspects = ctx.shared["suspects"]
        if not suspects:
            return Outcome.ok(finding, action=t("nothing to freeze", "无需冻结"))
        if not ctx.resumed:
            return wait_human(
                t("Freeze these accounts?", "冻结这些账户吗？"), {"accounts": suspects, "why": finding}
            )
        names = ", ".join(suspects)
        if ctx.resume_value["approved"]:
            return Outcome.ok(finding, action=t(f"froze {names}", f"已冻结 {names}"))
        return Outcome.ok(finding, action=t(f"{names} not frozen: not approved", f"未获批准，{names} 未冻结"))

    def report(finding, ctx):
        return t(f"{finding} Action: {ctx.shared['action']}.", f"{finding}处置：{ctx.shared['action']}。")

    flow = Workflow().channel("accounts", last([]))
    flow.add("screen_transfers", screen_transfers)
    flow.add("screen_devices", screen_devices)
    flow.add("synthesize", synthesize, join="all")
    flow.add("freeze", freeze)
    flow.add("report", report, terminal=True)
    flow.edge("screen_transfers", "synthesize").edge("screen_devices", "synthesize")
    return flow.edge("synthesize", "freeze").edge("freeze", "report")


scenario = Scenario(
    key="compliance_audit",
    order=7,
    title={"en": "Compliance audit", "zh": "合规审计"},
    summary={
        "en": "Two screenings at once, one finding, and a freeze that waits for consent.",
        "zh": "两项核查并行，得出结论，冻结账户前等待批准。",
    },
    teaches={
        "en": "What has returned is not done again: a rejection changes the action, not the findings.",
        "zh": "已经返回的结果不会重做：拒绝改变的是处置，不是结论。",
    },
    concepts=("parallel", "join", "approval", "state"),
    default_input={"en": {"accounts": ["A1", "A2", "A3"]}, "zh": {"accounts": ["A1", "A2", "A3"]}},
    input_schema={
        "type": "object",
        "properties": {"accounts": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["accounts"],
    },
    make=build,
    lesson=(
        Step(
            "Both screenings start in one wave; neither waits for the other.",
            "两项核查在同一波开始，互不等待。",
            node="screen_devices",
            predict=Predict("What comes after both?", "两个都完成后是谁？", ("synthesize",)),
        ),
        Step(
            "join=all: synthesize has two predecessors and runs once, when both are done.",
            "join=all：synthesize 有两个前驱，两个都完成才运行一次。",
            node="synthesize",
        ),
        Step(
            "The card shows the evidence: which accounts, and the finding. Approve or reject.",
            "卡片上有证据：哪些账户、什么结论。批准或拒绝。",
            event="interrupted",
        ),
        Step(
            "Whatever the answer, the screenings have run once.",
            "无论怎么答复，核查都只运行过一次。",
            node="report",
        ),
    ),
)
