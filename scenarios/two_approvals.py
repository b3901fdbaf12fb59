"""Two questions in one wave: answer them together or one by one, in any order."""

from playground import Outcome, Scenario, ScenarioEnv, Step, Workflow, wait_human


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    def asks(question: str, about: dict[str, object]):
        def ask(_, ctx):
            if not ctx.resumed:
                return wait_human(question, about)
            return Outcome.ok(ctx.resume_value["approved"])

        return ask

    def book(answers):
        refused = [name for name, approved in answers.items() if not approved]
        if refused:
            return t(f"Not booked: {', '.join(refused)} refused.", f"没有预订：{'、'.join(refused)} 未通过。")
        return t("Booked: the tea house, for ¥800.", "已预订：茶馆，800 元。")

    flow = Workflow()
    flow.add("budget", asks(t("Spend ¥800?", "花 800 元吗？"), {"cost": 800}))
    flow.add("venue", asks(t("Take the tea house?", "订茶馆吗？"), {"place": t("tea house", "茶馆")}))
    flow.add("book", book, join="all", terminal=True)
    return flow.edge("budget", "book").edge("venue", "book")


scenario = Scenario(
    key="two_approvals",
    order=8,
    title={"en": "Two approvals", "zh": "两处审批"},
    summary={
        "en": "Budget and venue wait side by side; booking goes ahead when both are settled.",
        "zh": "预算和场地同时等待批准，两者都定了才预订。",
    },
    teaches={
        "en": "Each parked step has its own answer: some now, others later, and the order does not matter.",
        "zh": "每个停下的步骤各有各的答复：可以分开答，先后不影响结果。",
    },
    concepts=("approval", "parallel", "join"),
    default_input={"en": "Plan the team day.", "zh": "安排团建。"},
    make=build,
    lesson=(
        Step(
            "Both nodes start in the first wave, and both ask.",
            "两个节点在第一波开始，都在提问。",
            node="venue",
            event="interrupted",
        ),
        Step(
            "Two cards. Answer one: the other stays parked.",
            "两张卡片。先答一张：另一张继续停着。",
            event="run_suspended",
        ),
        Step(
            "The join waited for both answers.",
            "汇合点等到了两个答复。",
            node="book",
        ),
    ),
)
