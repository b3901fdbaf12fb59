"""Layers: an agent put together from pieces that remember, suspend and come back."""

from dataclasses import dataclass

from playground import (
    Layered,
    ModelLayer,
    Scenario,
    ScenarioEnv,
    Step,
    ToolCall,
    Workflow,
    agent_of,
    wait_human,
)
from playground.agenton.collections.layers.plain import PromptLayer
from playground.agenton.compositor import Compositor, LayerNode, LayerProvider
from playground.agenton.layers import (
    EmptyLayerConfig,
    EmptyRuntimeState,
    LayerDeps,
    NoLayerDeps,
    PlainLayer,
)


class Pages(EmptyRuntimeState):
    lines: list[str] = []  # noqa: RUF012 - a model's default is copied for each


@dataclass(slots=True)
class Notebook(PlainLayer[NoLayerDeps, EmptyLayerConfig, Pages]):
    """Gives a tool, and remembers what was written with it."""

    @property
    def tools(self):
        return [self.write_down]

    def write_down(self, line: str) -> str:
        """Write one line into the notebook."""
        self.runtime_state.lines.append(line)
        return f"{len(self.runtime_state.lines)}. {line}"


class NeedsNotebook(LayerDeps):
    notebook: Notebook


@dataclass(slots=True)
class Scribe(PlainLayer[NeedsNotebook]):
    """Builds on the notebook: its prompt says how many lines there are."""

    @property
    def suffix_prompts(self):
        return [f"The notebook has {len(self.deps.notebook.runtime_state.lines)} lines."]


def build(env: ScenarioEnv) -> Layered:
    t = env.text
    script = env.model(
        ToolCall("write_down", {"line": t("Lamp: desk, warm light", "台灯：桌面，暖光")}),
        ToolCall("write_down", {"line": t("Budget: ¥20", "预算：20 元")}),
        t("Both wishes are in the notebook.", "两个愿望都记下了。"),
    )

    def flow(layers):
        notebook = layers.get_layer("notebook", Notebook)

        def decide(_, ctx):
            if not ctx.resumed:
                lines = list(notebook.runtime_state.lines)
                return wait_human(t("Send this list?", "发送这份清单吗？"), {"lines": lines})
            return {"verdict": "approve" if ctx.resume_value["approved"] else "reject"}

        def send_list(_):
            return t("Sent: ", "已发送：") + "; ".join(notebook.runtime_state.lines)

        def keep_list(_):
            return t("Kept: ", "留着：") + "; ".join(notebook.runtime_state.lines)

        plan = Workflow().add("scribe", agent_of(layers, "scribe")).add("decide", decide)
        plan.add("send_list", send_list, terminal=True).add("keep_list", keep_list, terminal=True)
        plan.edge("scribe", "decide")
        return plan.branch(
            "decide", {"approve": "send_list", "reject": "keep_list"}, decide=lambda s: s.get("verdict")
        )

    model = LayerProvider.from_factory(layer_type=ModelLayer, create=lambda _: ModelLayer(script))
    compositor = Compositor(
        [
            LayerNode("house", PromptLayer),
            LayerNode("notebook", Notebook),
            LayerNode("scribe", Scribe, deps={"notebook": "notebook"}),
            LayerNode("model", model),
        ]
    )
    style = {"prefix": t("Write down what people wish for.", "记下人们的愿望。")}
    return Layered(compositor, flow, {"house": style})


scenario = Scenario(
    key="layers",
    order=20,
    title={"en": "Layers", "zh": "分层组合"},
    summary={
        "en": "An agent is put together from four layers; what one of them remembers survives a restart.",
        "zh": "智能体由四个层组合而成；其中一层记住的东西重启也不丢。",
    },
    teaches={
        "en": "Layers hold no live state: what they remember is in the log, so they suspend and come back.",
        "zh": "层不持有存活状态：它们记住的都在日志里，所以能挂起，也能恢复。",
    },
    concepts=("layers", "agent", "tool", "approval", "recovery"),
    default_input={"en": "A lamp, and not too dear.", "zh": "一盏台灯，别太贵。"},
    make=build,
    lesson=(
        Step(
            "Which layer gave which prompt and tool: the compositor gathers them in graph order.",
            "哪一层给了哪个提示词、哪个工具：组合器按图的顺序收集。",
            event="note",
        ),
        Step(
            "The notebook's tool has run. What the layer remembers is written down with its result.",
            "笔记本层的工具运行了。这一层记住的内容和结果一起写进日志。",
            event="tool_returned",
        ),
        Step(
            "The run waits, and the layers are suspended. Stop the server and start it again.",
            "运行在等待，各层已挂起。重启服务器试试。",
            event="interrupted",
        ),
        Step(
            "The layers were made anew and hydrated from the log: the notebook still has its lines.",
            "各层重新创建，并从日志恢复：笔记本里的内容还在。",
            event="resumed",
        ),
    ),
)
