"""A body that looks around, and pays by a tool that asks: once answered, it runs again from its top."""

from playground import Scenario, ScenarioEnv, ToolRegistry, Workflow


def make(_: ScenarioEnv) -> Workflow:
    def price() -> int:
        """What it costs."""
        return 12

    def pay(amount: int) -> str:
        """Pay, once a person agrees."""
        return f"paid {amount}"

    async def buy(_, ctx):
        for shop in range(4):
            await ctx.note("looked", shop=shop)
        cost = await ctx.call_tool("price")
        return (await ctx.call_tool("pay", {"amount": cost.output})).output

    tools = ToolRegistry()
    tools.function(price)
    tools.function(pay, side_effect="write")
    return Workflow(tools=tools).add("buy", buy)


scenario = Scenario(
    key="pays",
    title={"en": "It pays", "zh": "付款"},
    summary={"en": "It pays when asked.", "zh": "得到同意后付款。"},
    teaches={"en": "What runs twice.", "zh": "什么会运行两次。"},
    concepts=(),
    default_input={"en": "lamp", "zh": "灯"},
    make=make,
)
