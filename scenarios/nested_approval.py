"""A workflow inside a workflow asks: the whole tree waits, and the answer finds its way down."""

from playground import Outcome, Scenario, ScenarioEnv, Step, Workflow, last, wait_human


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    def confirm(_, ctx):
        amount = ctx.shared["amount"]
        if not ctx.resumed:
            return wait_human(
                t("Pay this amount?", "支付这笔金额吗？"),
                {"amount": amount},
                schema={"type": "object", "properties": {"amount": {"type": "integer", "minimum": 1}}},
            )
        if not ctx.resume_value["approved"]:
            return Outcome.ok(0)
        return Outcome.ok(ctx.resume_value.get("amount", amount))  # a person may have edited it

    async def charge(amount):
        await env.pause()
        return Outcome.ok({"paid": amount})

    payment = Workflow(name="payment").channel("amount", last(0))
    payment.add("confirm", confirm).add("charge", charge).edge("confirm", "charge")

    async def pick(_, ctx):
        await env.pause()
        return Outcome.ok({"amount": 15 * ctx.shared["cups"]})

    def close(receipt):
        if not receipt["paid"]:
            return t("Not paid, the order is closed.", "没有付款，订单关闭。")
        return t(f"Paid ¥{receipt['paid']}, on its way.", f"已付 {receipt['paid']} 元，正在配送。")

    flow = Workflow().channel("cups", last(1)).add("pick", pick).add("pay", payment).add("close", close)
    return flow.edge("pick", "pay").edge("pay", "close")


scenario = Scenario(
    key="nested_approval",
    order=9,
    title={"en": "Nested approval", "zh": "嵌套审批"},
    summary={
        "en": "An order runs a payment as a child; the payment asks, so the order waits too.",
        "zh": "订单把支付作为子流程运行；支付在等批准，订单也跟着等。",
    },
    teaches={
        "en": "A question has an address, the path from the root: a child that parks parks its parents.",
        "zh": "问题有地址，就是从根开始的路径：子运行停下，父运行也停下。",
    },
    concepts=("approval", "call", "recovery"),
    default_input={"en": {"cups": 2}, "zh": {"cups": 2}},
    input_schema={
        "type": "object",
        "properties": {"cups": {"type": "integer", "minimum": 1, "maximum": 50}},
        "required": ["cups"],
    },
    make=build,
    lesson=(
        Step(
            "pay is a workflow: it starts as a child run, and pick's output sets its channels.",
            "pay 是一个流程：它作为子运行开始，pick 的输出成为它的通道。",
            event="delegated",
        ),
        Step(
            "The id of the question is pay/confirm. Approve it, change the amount, or reject.",
            "问题的编号是 pay/confirm。可以批准、改金额，或拒绝。",
            event="interrupted",
        ),
        Step(
            "The parent is parked by its child; its other results are kept.",
            "父运行被子运行停住，它的其他结果都保留着。",
            node="pay",
            event="node_parked",
        ),
        Step(
            "The answer goes down to the child, which goes on from there: nothing before it ran again.",
            "答复传到子运行，从那里继续：之前的都没有重跑。",
            node="close",
        ),
    ),
)
