"""A node that fails twice and a node that hangs once: both get another chance."""

import asyncio

from playground import RetryPolicy, Scenario, ScenarioEnv, Step, Workflow


def build(env: ScenarioEnv) -> Workflow:
    t = env.text

    async def flaky(_, ctx):
        await env.pause()
        if ctx.attempt < 3:
            raise ConnectionError(t("the price service does not answer", "价格服务没有响应"))
        return t("¥15 a cup", "每杯 15 元")

    async def slow(_, ctx):
        if ctx.attempt < 2:
            await asyncio.sleep(60)
        return t("40 cups left", "还剩 40 杯")

    def report(found):
        return t("; ", "；").join(found.values())

    flow = Workflow()
    flow.add("price", flaky, retry=RetryPolicy(max_attempts=4, base_delay=0.05, retry_on=(ConnectionError,)))
    flow.add("stock", slow, timeout=0.2, retry=RetryPolicy(max_attempts=3, base_delay=0))
    flow.add("report", report, terminal=True)
    return flow.edge("price", "report").edge("stock", "report")


scenario = Scenario(
    key="retry_timeout",
    order=6,
    title={"en": "Retry and timeout", "zh": "重试与超时"},
    summary={
        "en": "One service refuses twice, another hangs once. The run gets both answers.",
        "zh": "一个服务拒绝两次，另一个卡住一次，运行最终都拿到了答案。",
    },
    teaches={
        "en": "Resilience belongs to the node, not to its code: a timeout is a failure like any other.",
        "zh": "弹性属于节点而不是代码：超时算一次失败，失败按退避重试。",
    },
    concepts=("retry", "timeout", "parallel", "join"),
    default_input={"en": "How much, and how many?", "zh": "多少钱，还有多少？"},
    make=build,
    lesson=(
        Step(
            "The first attempt of price fails. Its policy says: wait, then try again.",
            "price 第一次失败。它的策略是：等一会再试。",
            node="price",
            event="node_retry",
        ),
        Step(
            "stock took longer than its 0.2 s. It was cancelled, which counts as one failure.",
            "stock 超过了 0.2 秒，被取消，算一次失败。",
            node="stock",
            event="node_retry",
        ),
        Step(
            "The join waited for both; nobody but the nodes themselves noticed the trouble.",
            "汇合点等到了两者；除了节点自己，谁也没察觉到麻烦。",
            node="report",
        ),
    ),
)
