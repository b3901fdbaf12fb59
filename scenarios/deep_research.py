"""Many rounds of search in a small window: what does not fit is compacted, level by level."""

from playground import Agent, Scenario, ScenarioEnv, Step, TieredCompactionContext, ToolCall


def build(env: ScenarioEnv) -> Agent:
    t = env.text
    found = {
        t("market size", "市场规模"): t("¥412 bn, two thirds of it in cities", "4120 亿元，三分之二在城市"),
        t("growth", "增速"): t("11 % a year, slowing since spring", "年增 11%，春季起放缓"),
        t("leaders", "头部品牌"): t("five chains hold 46 %", "五家连锁占 46%"),
        t("prices", "价格"): t("¥9 to ¥22, most sold at ¥15", "9 到 22 元，15 元卖得最多"),
        t("costs", "成本"): t("leaves 12 %, rent 31 %, wages 24 %", "茶叶 12%，租金 31%，人工 24%"),
        t("policy", "政策"): t("sugar labels from next year", "明年起须标注含糖量"),
    }

    async def search(topic: str) -> str:
        """Search for facts about one topic."""
        await env.pause()
        return found.get(topic, t("nothing found", "没有找到"))

    summary = t("So far: facts on size, growth and leaders were found.", "目前：规模、增速、头部品牌已查到。")
    return Agent(
        "researcher",
        model=env.model(
            *[ToolCall("search", {"topic": topic}) for topic in found],
            t(
                "Tea shops: ¥412 bn, growing 11 % a year, five chains with 46 %. Rent decides who survives.",
                "茶饮店：4120 亿元，年增 11%，五家连锁占 46%。租金决定谁能活下来。",
            ),
        ),
        instruction=t("Search topic by topic, then report briefly.", "逐个主题检索，然后用两句话汇报。"),
        tools=[search],
        context=TieredCompactionContext(
            env.model(*[summary] * 20),
            capacity=6,
            documents=env.documents,
        ),
    )


scenario = Scenario(
    key="deep_research",
    order=16,
    title={"en": "Deep research", "zh": "深度调研"},
    summary={
        "en": "Six searches in a window of six messages: older ones are shortened, then summarised.",
        "zh": "六次检索，窗口只有六条消息：旧消息先压缩，再摘要。",
    },
    teaches={
        "en": "The state keeps everything; the model is shown a projection, made afresh for each call.",
        "zh": "状态保留全部；给模型看的只是投影，每次调用前重新生成。",
    },
    concepts=("context", "agent", "react", "loop"),
    default_input={"en": "Research the market for tea shops.", "zh": "调研一下茶饮店市场。"},
    make=build,
    lesson=(
        Step(
            "Early on everything fits and the model is shown the whole conversation.",
            "一开始全部放得下，模型看到完整对话。",
            event="model_called",
        ),
        Step(
            "Now it does not fit. The note says the level, and how many messages are hidden.",
            "现在放不下了。这条记录写明压缩级别和隐藏了多少条消息。",
            event="note",
        ),
        Step(
            "Look at the state: no message is gone. Only the projection was cut.",
            "看看状态：一条消息都没少，剪掉的只是投影。",
            event="run_completed",
        ),
    ),
)
