"""The smallest agent: a model, an instruction, one tool."""

from playground import Agent, Scenario, ScenarioEnv, Step, ToolCall


def build(env: ScenarioEnv) -> Agent:
    t = env.text

    def menu(drink: str) -> str:
        """Look up whether a drink is on the menu, and its price."""
        prices = {"taro bubble tea": 18, "americano": 12, "芋泥啵啵": 18, "美式": 12}
        if drink.lower() not in prices:
            return t("not on the menu", "菜单里没有")
        return t(f"in stock, ¥{prices[drink.lower()]}", f"在售，{prices[drink]} 元")

    return Agent(
        "greeter",
        model=env.model(
            ToolCall("menu", {"drink": t("taro bubble tea", "芋泥啵啵")}),
            t(
                "Yes, we have taro bubble tea, ¥18 a cup. Shall I order one?",
                "有的，芋泥啵啵 18 元一杯，要下单吗？",
            ),
            t("One taro bubble tea is on its way.", "好的，一杯芋泥啵啵马上就来。"),
        ),
        instruction=t("You run a bubble tea counter. Keep it short.", "你是奶茶店店员，回答简短。"),
        tools=[menu],
    )


scenario = Scenario(
    key="greeter",
    order=2,
    title={"en": "Greeter", "zh": "迎宾店员"},
    summary={
        "en": "The smallest useful agent: it looks a drink up on the menu and answers.",
        "zh": "最小的有用智能体：查一下菜单，然后回答。",
    },
    teaches={
        "en": "An agent is a model with an instruction and tools; the loop comes with it.",
        "zh": "智能体就是带指令和工具的模型，循环是自带的。",
    },
    concepts=("agent", "react", "tool"),
    default_input={"en": "Do you have taro bubble tea?", "zh": "有芋泥啵啵吗？"},
    make=build,
    lesson=(
        Step(
            "The model asks for the tool. Its arguments come from the user's words.",
            "模型要求调用工具，参数来自用户的话。",
            event="model_returned",
        ),
        Step(
            "The tool is a plain Python function; its schema was made from the signature and docstring.",
            "工具是普通的 Python 函数，它的 schema 由签名和文档字符串生成。",
            event="tool_returned",
        ),
        Step(
            "The second thought has the result and becomes the answer. Write again: it goes on.",
            "第二次思考拿到结果，给出回答。再写一句：对话会接着往下走。",
            event="run_completed",
        ),
    ),
)
