"""A slow reader: either the producer waits for it, or it misses something and knows how much."""

import asyncio

from playground import Bus, Outcome, Scenario, ScenarioEnv, Step, Workflow

ITEMS = 24
ROOM = 4


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    async def sip(item, ctx):
        await ctx.emit("sip", text=f"{item['number']} ")
        await env.pause()

    async def block(_, ctx):
        bus = Bus()
        cup = bus.subscribe("drop", maxsize=ROOM, on_full="block")

        async def pour():
            for number in range(ITEMS):
                await bus.fire("drop", number=number)  # waits while the cup is full

        pouring = asyncio.create_task(pour())
        for _ in range(ITEMS):
            await sip(await cup.get(), ctx)
        await pouring
        return Outcome.ok({"read": ITEMS, "dropped": cup.dropped})

    async def drop(_, ctx):
        bus = Bus()
        cup = bus.subscribe("drop", maxsize=ROOM, on_full="drop")
        for number in range(ITEMS):
            await bus.fire("drop", number=number)  # never waits
            if number % 3 == 2:
                await sip(await cup.get(), ctx)
        cup.close()
        async for item in cup:  # what it holds can still be read
            await sip(item, ctx)
        return Outcome.ok({"read": ITEMS - cup.dropped, "dropped": cup.dropped})

    def compare(found):
        told = t("{0}: {1} read, {2} dropped", "{0}：读到 {1}，丢弃 {2}")
        lines = [told.format(how, count["read"], count["dropped"]) for how, count in found.items()]
        return t("; ", "；").join(lines)

    flow = Workflow()
    flow.add("block", block).add("drop", drop).add("compare", compare, terminal=True)
    return flow.edge("block", "compare").edge("drop", "compare")


scenario = Scenario(
    key="backpressure",
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
    default_input={"en": "Pour.", "zh": "倒茶。"},
    make=build,
    lesson=(
        Step(
            "Both nodes pour 24 drops into a cup for four. What they sip streams live and is not logged.",
            "两个节点都往四格的杯子里倒 24 滴。喝到的是实时流，不进日志。",
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
