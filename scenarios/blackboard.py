"""Three experts around one board, in rounds, until they agree."""

from playground import Agent, Plan, Predict, Scenario, ScenarioEnv, Step, build_blackboard

EXPERTS = ("cook", "cashier", "guest")


def build(env: ScenarioEnv) -> Plan:
    t = env.text
    agree, object_ = t("AGREE", "同意"), t("OBJECT", "反对")

    def expert(name: str, first: str, later: str) -> tuple[str, Agent]:
        def speak(messages) -> str:
            seen = str(messages[-1]["content"])
            return later if "cashier:" in seen else first

        instruction = t(
            f"You are the {name}. Begin with AGREE or OBJECT, then one sentence.",
            f"你是{name}。以“同意”或“反对”开头，再说一句话。",
        )
        return name, Agent(name, model=env.model(speak), instruction=instruction)

    experts = [
        expert(
            "cook",
            f"{object_}. {t('I cannot do it alone.', '我一个人忙不过来。')}",
            f"{agree}. {t('With help it works.', '有人帮忙就行。')}",
        ),
        expert(
            "cashier",
            f"{agree}. {t('I can help in the kitchen.', '我可以去厨房帮忙。')}",
            f"{agree}. {t('Settled.', '就这么定。')}",
        ),
        expert(
            "guest",
            f"{agree}. {t('I would come.', '我会来。')}",
            f"{agree}. {t('Still yes.', '还是同意。')}",
        ),
    ]

    def moderator(_, ctx):
        latest = ctx.shared["board"][-len(EXPERTS) :]
        if all(agree in line for line in latest):
            return {"verdict": t("agreed", "达成一致")}
        return None  # another round

    def final(_, ctx):
        rounds = ctx.shared["round"] + 1
        verdict = ctx.shared["verdict"] or t("no agreement", "未达成一致")
        return t(f"{verdict} after {rounds} rounds", f"{rounds} 轮后{verdict}")

    return build_blackboard(experts, moderator, final=final, max_rounds=4)


scenario = Scenario(
    key="blackboard",
    order=14,
    title={"en": "Blackboard", "zh": "黑板"},
    summary={
        "en": "Cook, cashier and guest write on one board; a moderator asks for rounds until they agree.",
        "zh": "厨师、收银和客人在同一块黑板上发言，主持人一轮轮推进直到一致。",
    },
    teaches={
        "en": "Experts share a channel and run in one wave; a join waits for all of them, round by round.",
        "zh": "专家共享一个通道、同一波运行；每一轮都由汇合点等齐所有人。",
    },
    concepts=("blackboard", "parallel", "join", "loop"),
    default_input={"en": "Shall we open on Sundays?", "zh": "周日要不要营业？"},
    make=build,
    lesson=(
        Step(
            "fanout re-arms everybody: rejoin means wait for your edges again.",
            "fanout 让所有人重新待命：rejoin 就是再等一次自己的边。",
            node="fanout",
            predict=Predict("Who writes?", "谁来发言？", EXPERTS),
        ),
        Step(
            "Three writers, one channel: folded in plan order, whoever was first.",
            "三个写入者、一个通道：按图中顺序折叠，不管谁先写完。",
            node="guest",
            event="node_completed",
            predict=Predict("Who was waiting for all three?", "谁在等他们三个？", ("moderator",)),
        ),
        Step(
            "One objection, so there is no verdict and the round goes up.",
            "有一人反对，没有结论，进入下一轮。",
            node="moderator",
            event="node_completed",
            predict=Predict("So who is next?", "那么接下来是谁？", ("fanout",)),
        ),
        Step(
            "In the second round the cook has read the board. The verdict makes the edge to final live.",
            "第二轮厨师看过了黑板。有了结论，通往 final 的边成立。",
            node="final",
        ),
    ),
)
