"""Haggle, ask, order: an agent does the talking and a person has the last word."""

from playground import Agent, Outcome, Predict, Scenario, ScenarioEnv, Step, ToolCall, Workflow, wait_human


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    async def offer(price: int) -> str:
        """Offer the seller a price in yuan and hear what they say."""
        await env.pause()
        if price < 12:
            return t("The seller laughs. How about ¥16?", "卖家笑了：16 元怎么样？")
        if price < 14:
            return t("¥14, and that is final.", "14 元，不能再低了。")
        return t(f"Deal at ¥{price}.", f"{price} 元成交。")

    buyer = Agent(
        "buyer",
        model=env.model(
            ToolCall("offer", {"price": 10}),
            ToolCall("offer", {"price": 13}),
            t("Two rounds: ¥14 for the lamp, self pickup.", "两轮砍价：台灯 14 元，自取。"),
        ),
        instruction=t(
            "You buy for somebody else. Start low, haggle twice, then report the price. Do not order.",
            "你替人买东西。先低价开口，砍两轮，然后报价。不要下单。",
        ),
        tools=[offer],
    )

    def approve(deal, ctx):
        if not ctx.resumed:
            return wait_human(t("Order at this price?", "按这个价格下单吗？"), {"deal": deal})
        return Outcome.ok(deal, approved=ctx.resume_value["approved"])

    async def place_order(deal):
        await env.pause()
        return t(f"Ordered. {deal}", f"已下单。{deal}")

    def walk_away(deal):
        return t(f"Not ordered. {deal}", f"没有下单。{deal}")

    flow = Workflow()
    flow.add("buyer", buyer)
    flow.add("approve", approve)
    flow.add("place_order", place_order, terminal=True)
    flow.add("walk_away", walk_away, terminal=True)
    flow.edge("buyer", "approve")
    flow.branch(
        "approve",
        {"approve": "place_order", "reject": "walk_away"},
        decide=lambda state: "approve" if state["approved"] else "reject",
    )
    return flow


scenario = Scenario(
    key="trader",
    order=4,
    title={"en": "Trader", "zh": "代购砍价"},
    summary={
        "en": "An agent haggles for a lamp, then the run stops until you approve or reject the price.",
        "zh": "智能体替你砍价买台灯，然后停下来，等你批准或拒绝这个价格。",
    },
    teaches={
        "en": "A step that waits for a person holds nothing: it survives a restart and goes on from there.",
        "zh": "等人的步骤不占任何资源：重启也不丢，有了答复就从那里继续。",
    },
    concepts=("approval", "agent", "tool", "edge"),
    default_input={"en": "Get me the desk lamp, as cheap as you can.", "zh": "帮我买那盏台灯，越便宜越好。"},
    make=build,
    lesson=(
        Step(
            "The buyer is an agent in a node: it runs as a child of this run, with its own model and tool.",
            "buyer 是节点里的智能体：它作为子运行执行，有自己的模型和工具。",
            event="delegated",
        ),
        Step(
            "Its answer is the node's output, and so the input of approve.",
            "它的回答就是节点的输出，也就是 approve 的输入。",
            node="buyer",
            event="node_completed",
            predict=Predict("Who runs next?", "下一个运行的是谁？", ("approve",)),
        ),
        Step(
            "Nothing runs now. Stop the server and start it again: the question is still here.",
            "现在没有任何东西在运行。重启服务器试试：问题还在。",
            event="interrupted",
        ),
        Step(
            "The answer is a fact of the log: who, when, what. The node ran again from its top and took it.",
            "答复是日志里的一条事实：谁、何时、怎么答。节点从头再跑一遍并拿到它。",
            event="resumed",
        ),
    ),
)
