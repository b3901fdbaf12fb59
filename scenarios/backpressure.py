"""A slow reader: either the producer waits for it, or it misses something and knows how much."""

import asyncio

from playground import Bus, Outcome, Scenario, ScenarioEnv, Step, Workflow, last


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    async def sip(cup, item, ctx):
        room = ctx.shared["room"]
        gauge = "■" * len(cup) + "□" * (room - len(cup))
        await ctx.note(f"{gauge} {len(cup)}/{room}", read=item["number"] + 1, dropped=cup.dropped)
        await env.pause()

    async def block(_, ctx):
        bus, drops = Bus(), ctx.shared["drops"]
        cup = bus.subscribe("drop", maxsize=ctx.shared["room"], on_full="block")

        async def pour():
            for number in range(drops):
                await bus.fire("drop", number=number)  # waits while the cup is full

        pouring = asyncio.create_task(pour())
        for _ in range(drops):
            await sip(cup, await cup.get(), ctx)
        await pouring
        count = {"read": drops, "dropped": cup.dropped}
        return Outcome.ok(count, block=count)

    async def drop(_, ctx):
        bus, drops = Bus(), ctx.shared["drops"]
        cup = bus.subscribe("drop", maxsize=ctx.shared["room"], on_full="drop")
        for number in range(1, drops + 1):
            await bus.fire("drop", number=number - 1)  # never waits
            if number % ctx.shared["faster"] == 0:
                await sip(cup, await cup.get(), ctx)
        cup.close()
        async for item in cup:  # what it holds can still be read
            await sip(cup, item, ctx)
        count = {"read": drops - cup.dropped, "dropped": cup.dropped}
        return Outcome.ok(count, drop=count)

    def compare(_, ctx):
        told = t("{0}: {1} read, {2} dropped", "{0}：读到 {1}，丢弃 {2}")
        found = [(how, ctx.shared[how]) for how in ("block", "drop") if ctx.shared[how]]
        lines = [told.format(how, count["read"], count["dropped"]) for how, count in found]
        return t("; ", "；").join(lines)

    flow = Workflow().channel("policy", last("both")).channel("room", last(4))
    flow.channel("drops", last(24)).channel("faster", last(3))
    flow.channel("block", last({})).channel("drop", last({}))
    flow.add("turn_on", lambda _: None).add("block", block).add("drop", drop)
    flow.add("compare", compare, terminal=True)
    flow.edge("turn_on", "block", when=lambda state: state["policy"] != "drop").edge("block", "compare")
    flow.edge("turn_on", "drop", when=lambda state: state["policy"] != "block").edge("drop", "compare")
    return flow


scenario = Scenario(
    key="backpressure",
    order=21,
    title={"en": "Backpressure", "zh": "流式背压"},
    summary={
        "en": "One producer, one slow reader, a queue with four places: block or drop?",
        "zh": "一个生产者、一个慢读者、四格的队列：阻塞还是丢弃？",
    },
    teaches={
        "en": "A bounded queue passes pressure on: block slows the producer, drop counts what it loses.",
        "zh": "有界队列会传递压力：block 让生产者等，drop 丢弃并记账。",
    },
    concepts=("stream", "parallel", "join"),
    default_input={lang: {"policy": "both", "room": 4, "drops": 24, "faster": 3} for lang in ("en", "zh")},
    input_schema={
        "type": "object",
        "properties": {
            "policy": {"enum": ["both", "block", "drop"]},
            "room": {"type": "integer", "minimum": 1, "maximum": 16},
            "drops": {"type": "integer", "minimum": 1, "maximum": 200},
            "faster": {"type": "integer", "minimum": 1, "maximum": 20},
        },
        "required": ["policy", "room", "drops", "faster"],
    },
    make=build,
    lesson=(
        Step(
            "Drops are poured faster than they are sipped. Each sip notes how full the cup is.",
            "倒得比喝得快。每喝一口都会记下杯子有多满：看它慢慢变满。",
            node="block",
        ),
        Step(
            "block read all of them: the producer waited whenever the cup was full.",
            "block 全读到了：杯子一满，生产者就等。",
            node="block",
            event="node_completed",
        ),
        Step(
            "drop never waited. What it lost is counted, so read plus dropped is what was poured.",
            "drop 从不等待。丢的都记了账：读到加丢弃等于倒出的。",
            node="compare",
        ),
    ),
)
