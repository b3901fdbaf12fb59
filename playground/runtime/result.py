"""What came of a run, for whoever called the facade: plain values, free to be changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self, cast

from playground.kernel.run import Interrupt, Run
from playground.kernel.types import RunState
from playground.kernel.values import JsonObject, JsonValue, thaw


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run at rest.

    Attributes:
        output: the final output, or the reason if it failed; None while it waits.
        status: completed, failed, or suspended if it waits for an answer.
        run_id: what to `resume`.
        state: the channels by name.
        metrics: counts of waves, llm_calls, tool_calls and tokens.
        run: the run itself, with its node states and open questions.
    """

    output: JsonValue
    status: RunState
    run_id: str
    state: JsonObject
    metrics: dict[str, int]
    run: Run = field(repr=False)

    @classmethod
    def of(cls, run: Run) -> Self:
        """The result of `run` as it stands now."""
        return cls(
            output=thaw(run.final_output),
            status=run.state,
            run_id=run.run_id,
            state={name: thaw(value) for name, value in run.shared.items()},
            metrics=dict(run.metrics),
            run=run,
        )

    @property
    def interrupts(self) -> list[Interrupt]:
        """The questions that wait for an answer, in the order in which they were asked."""
        return list(self.run.interrupts.values())

    def __str__(self) -> str:
        return str(self.output)


@dataclass(frozen=True, slots=True)
class AgentResult(RunResult):
    """A run of an agent at rest."""

    @property
    def messages(self) -> list[JsonObject]:
        """The whole conversation; give it as `history` to go on."""
        return cast("list[JsonObject]", self.state["messages"])
