"""What people hand in: the input of a run and the decision on a parked step, each held against its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from playground.kernel import Interrupt, JsonObject, JsonValue, Plan
from playground.kernel.run import VERDICT, split_park
from playground.kernel.scheduler import child_spec
from playground.runtime.scenario import Scenario
from playground.sessions.errors import Conflict, Invalid
from playground.sessions.portrait import Portrait


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's decision on one parked step: a verdict, a value, or both, and why."""

    approved: bool | None = None
    value: JsonValue = None
    has_value: bool = False
    comment: str = ""

    @classmethod
    def of(cls, value: JsonValue) -> Answer:
        """The answer by which a parked node receives `value`: a verdict, with edited fields, or the value."""
        if isinstance(value, dict) and isinstance(value.get("approved"), bool):
            rest = {key: found for key, found in value.items() if key not in VERDICT}
            return cls(bool(value["approved"]), rest or None, bool(rest), str(value.get("comment") or ""))
        return cls(value=value, has_value=True)


def check_input(scenario: Scenario, value: JsonValue) -> None:
    """Check an input against a scenario.

    Raises:
        Invalid: naming the fields that do not fit.
    """
    if scenario.input_schema is None:
        if not isinstance(value, str):
            raise Invalid(f"scenario {scenario.key!r} takes text as its input, not {type(value).__name__}")
        return
    errors = schema_errors(scenario.input_schema, value)
    if errors:
        raise Invalid(f"the input does not fit scenario {scenario.key!r}", errors)


def schema_errors(schema: Mapping[str, JsonValue], value: JsonValue) -> dict[str, str]:
    """What is wrong with a value, by the path of the field; empty: it fits.

    A reference to elsewhere is not followed: whoever writes a schema gets no request of the server's.
    """
    try:
        found = _validator(json.dumps(schema)).iter_errors(value)
        return {".".join(map(str, error.absolute_path)): error.message for error in found}
    except SchemaError as error:
        return {"": f"the schema itself is wrong: {error.message}"}
    except Unresolvable as error:
        return {"": f"the schema itself is wrong: it refers to {error.ref}, which is not in it"}
    except RecursionError:
        return {"": "the schema itself is wrong: it refers to itself without end"}


@lru_cache(maxsize=32)
def _validator(schema: str) -> Draft202012Validator:
    """What holds values against a schema; checking the schema itself takes longer, and is done once.

    Raises:
        SchemaError: it is none.
    """
    found = json.loads(schema)
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found, registry=Registry())


def answer_value(asked: Interrupt, answer: Answer) -> JsonValue:
    """What a parked node receives for a person's answer.

    Raises:
        Invalid: the answer has no verdict where one is needed, or does not fit the schema.
    """
    if asked.kind == "input" or (answer.approved is None and asked.kind != "approval"):
        if not answer.has_value:
            raise Invalid(f"{asked.id} needs a value: answer it")
        _check_schema(asked, answer.value)
        return answer.value
    if answer.approved is None:
        raise Invalid(f"{asked.id} needs a verdict: approve or reject it")
    found: JsonObject = {"approved": answer.approved}
    if answer.comment:
        found["comment"] = answer.comment
    if answer.has_value:
        _check_schema(asked, answer.value)
        if not isinstance(answer.value, dict):
            raise Invalid(f"the edited fields of {asked.id} must be an object", {"": "not an object"})
        found = {**answer.value, **found}
    return found


def _check_schema(asked: Interrupt, value: JsonValue) -> None:
    errors = schema_errors(asked.schema, value) if asked.schema is not None else {}
    if errors:
        raise Invalid(f"the answer to {asked.id} does not fit", errors)


def decided(interrupt_id: str, decision: Mapping[str, JsonValue]) -> Conflict:
    """What to say to whoever comes second."""
    outcome, by = decision.get("outcome", "decided"), decision.get("by")
    return Conflict(
        f"{interrupt_id} is already {outcome}{f' by {by}' if by else ''}: the first decision stands", decision
    )


_VERDICTS = {
    "approve": frozenset({"approve", "approved", "yes", "ok", "accept", "批准", "同意"}),
    "reject": frozenset({"reject", "rejected", "no", "deny", "refuse", "拒绝"}),
}


def follows(seen: Portrait, asked: Interrupt) -> JsonObject:
    """The nodes that the edges of a parked step lead to in its own run, after approve and after reject.

    It goes by what the plan says: an edge whose label is one of the verdicts belongs to
    that one, any other edge to both.  What a body will decide by a Goto cannot be known
    without running it, and running it is what the person is asked about.
    """
    found: JsonObject = {}
    plan, key = _asker(seen.plan, asked.id)
    for verdict, other in (("approve", "reject"), ("reject", "approve")):
        targets: list[JsonValue] = []
        for edge in plan.shape.outgoing.get(key, ()):
            label = str(getattr(edge.when, "label", "")).lower()
            if label not in _VERDICTS[other]:
                targets.append(edge.target)
        found[verdict] = targets
    return found


def _asker(plan: Plan, interrupt_id: str) -> tuple[Plan, str]:
    """The plan and the node that a question comes from, as far as its path leads through plans of nodes.

    Behind the name of a tool lies a run that only the tool knows: then there is no node.
    """
    key, *inside = (unquote(segment) for segment in split_park(interrupt_id)[0].split("/"))
    while inside:
        node = plan.nodes.get(key.partition("#")[0])
        spec = getattr(node.body, "spec", None) if node else None
        if spec is None:
            return plan, "" if len(inside) > 1 else key
        plan, key = child_spec(spec).plan, inside.pop(0)
    return plan, key
