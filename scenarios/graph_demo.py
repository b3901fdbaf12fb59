"""Waves: a pot of tea, drawn with nothing but the kernel."""

import json

from playground import (
    ChildSpec,
    FnBody,
    Goto,
    Node,
    Outcome,
    Plan,
    Predict,
    Scenario,
    ScenarioEnv,
    Step,
    append,
    last,
)


def build(env: ScenarioEnv) -> ChildSpec:
    t = env.text

    async def boil(_):
        await env.pause()
        return Outcome.ok(log=t("the water boils", "水开了"))

    async def measure(_, ctx):
        await env.pause()
        spoons = ctx.shared["guests"]
        return Outcome.ok(spoons, log=t(f"{spoons} spoons of leaves", f"{spoons} 勺茶叶"))

    async def steep(_, ctx):
        await env.pause()
        minutes = ctx.shared["minutes"] + 1
        return Outcome.ok(minutes, minutes=minutes, log=t(f"minute {minutes}", f"第 {minutes} 分钟"))

    async def taste(minutes):
        await env.pause()
        if minutes < 3:
            log = t("too weak, once more", "太淡，再泡一会")
            return Outcome(state_delta={"log": log}, control=[Goto("steep"), Goto.rejoin("taste")])
        return Outcome.ok(t("strong enough", "够浓了"))

    async def sweeten(_):
        await env.pause()
        return Outcome.ok(log=t("sugar", "加糖"))

    async def serve(_, ctx):
        await env.pause()
        cups, minutes = ctx.shared["guests"], ctx.shared["minutes"]
        return Outcome.ok(
            t(f"{cups} cups, steeped for {minutes} minutes", f"{cups} 杯茶，泡了 {minutes} 分钟")
        )

    plan = Plan(
        channels={"guests": last(1), "sugar": last(False), "minutes": last(0), "log": append()},
    )
    plan.add(
        Node("boil", FnBody(boil)),
        Node("measure", FnBody(measure)),
        Node("steep", FnBody(steep)),
        Node("taste", FnBody(taste)),
        Node("sweeten", FnBody(sweeten)),
        Node("serve", FnBody(serve), terminal=True),
    )
    plan.edge("boil", "steep").edge("measure", "steep").edge("steep", "taste")
    plan.edge("taste", "sweeten", when=lambda state: state["sugar"])
    plan.edge("taste", "serve", when=lambda state: state["minutes"] >= 3).edge("sweeten", "serve")
    return ChildSpec(plan, shared=json.loads)


scenario = Scenario(
    key="graph_demo",
    order=1,
    title={"en": "Waves", "zh": "波次"},
    summary={
        "en": "A pot of tea: two nodes at once, a join, a loop, and a branch that nobody takes.",
        "zh": "泡一壶茶：两个节点并行、一次汇合、一个循环，还有一条没人走的支路。",
    },
    teaches={
        "en": "A run advances in waves: ready nodes run side by side, then all their writes become state.",
        "zh": "运行按波次推进：就绪的节点并行执行，写入在一波结束时一起生效。",
    },
    concepts=("wave", "join", "loop", "edge", "state"),
    default_input={"en": {"guests": 2, "sugar": False}, "zh": {"guests": 2, "sugar": False}},
    input_schema={
        "type": "object",
        "properties": {
            "guests": {"type": "integer", "minimum": 1, "maximum": 12},
            "sugar": {"type": "boolean"},
        },
        "required": ["guests", "sugar"],
    },
    make=build,
    lesson=(
        Step(
            "Two nodes have no predecessor, so both are ready: they are the first wave.",
            "有两个节点没有前驱，因此都就绪：它们就是第一波。",
            node="boil",
            predict=Predict(
                "Both are done. Which node runs next?",
                "两个都完成了，下一个运行的是谁？",
                ("steep",),
            ),
        ),
        Step(
            "Neither saw the other's line: the log channel is folded when the wave ends, in plan order.",
            "它们互相看不到对方写的那一行：log 通道在一波结束时按图中顺序折叠。",
            event="state_delta",
        ),
        Step(
            "Too weak. The node says Goto: steep runs again at once, and taste will wait for it again.",
            "太淡。节点返回 Goto：steep 立刻再跑一次，taste 重新等它。",
            event="control",
            predict=Predict("Who is in the next wave?", "下一波里有谁？", ("steep",)),
        ),
        Step(
            "Nobody asked for sugar, so the edge to sweeten is dead and the node is skipped, not forgotten.",
            "没人要糖，通往 sweeten 的边不成立，于是它被跳过，而不是被遗忘。",
            node="sweeten",
            event="node_skipped",
        ),
    ),
)
