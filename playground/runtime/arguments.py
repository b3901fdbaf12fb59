"""Arguments: what a tool takes, as a schema for the model and as a check before the call.

A model writes arguments as JSON, after a description, and now and then gets
them wrong.  A function should never see that.  So what a tool takes is
described once and used twice: the *schema* is shown to the model, and `read`
turns what came back into the values to call with, or says what is wrong in
words that the model can act on.

There are two sources.  A Python function is described by its signature, its
annotations and its docstring, and read by pydantic, which converts: a date
arrives as a `date`, a nested model as that model.  A tool from elsewhere brings
a JSON Schema, is checked against it, and gets the JSON as it is.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Protocol, get_type_hints
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind

from playground.kernel.values import FrozenDict, JsonObject, JsonValue, NotJson, freeze, frozen_object, thaw

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

CONTEXT_NAMES = ("ctx", "_ctx", "context")
"""Parameters of these names get the run's context and are no business of the model."""

_SHOWN_PROBLEMS = 5
_SHOWN_LENGTH = 200


class BadArguments(ValueError):
    """Arguments that do not fit; the message lists where and why, for whoever wrote them."""


class Arguments(Protocol):
    """What a tool takes."""

    @property
    def schema(self) -> FrozenDict:
        """The JSON Schema of the arguments, an object."""
        ...

    def read(self, arguments: JsonObject) -> dict[str, object]:
        """The values to call the tool with, by parameter name.

        Raises:
            BadArguments: when they do not fit.
        """
        ...


# From a signature


class SignatureArguments:
    """What a Python function takes, by its signature, annotations and docstring.

    Raises:
        TypeError: when a parameter cannot be described; it names the tool, what
            is wrong and the way out.
    """

    def __init__(self, function: Callable[..., object], tool: str) -> None:
        parameters = [p for p in parameters_of(function, tool) if not is_context(p)]
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        hints = _hints(function, named, tool)
        texts = Documentation.of(function).parameters
        # A field is only numbered and carries the parameter's name as its alias,
        # so that a parameter may be called `json`, `_id` or `model_config`.
        self._names = {f"p{number}": parameter.name for number, parameter in enumerate(named)}
        fields: dict[str, Any] = {
            key: _field(parameter, hints.get(parameter.name, Any), texts.get(parameter.name))
            for key, parameter in zip(self._names, named, strict=True)
        }
        takes_more = any(p.kind is p.VAR_KEYWORD for p in parameters)
        config = ConfigDict(extra="allow" if takes_more else "forbid")
        try:
            self._model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
            schema = self._model.model_json_schema(schema_generator=_PlainSchema)
        except PydanticUserError as error:
            raise TypeError(
                f"tool {tool!r} has a parameter that JSON cannot fill ({str(error).splitlines()[0]}): use "
                "plain types, a dataclass or a pydantic model, or name it ctx to get the run's context"
            ) from error
        del schema["title"]
        self.schema = frozen_object(schema, f"schema of tool {tool!r}")

    def read(self, arguments: JsonObject) -> dict[str, object]:
        """Convert to the annotated types; what was not given gets the function's default."""
        try:
            model = self._model.model_validate(arguments)
        except ValidationError as error:
            raise BadArguments(_listed(_problem(e["loc"], e["msg"]) for e in error.errors())) from None
        values: dict[str, object] = {name: getattr(model, key) for key, name in self._names.items()}
        if model.model_extra:
            values.update(model.model_extra)
        return values


def signature_arguments(function: Callable[..., object], tool: str) -> SignatureArguments:
    """What a function takes, shared by all that one `def` has made while any of them is in use.

    A scenario is built anew for each run, and describing its tools would be most of the work.

    Raises:
        TypeError: as `SignatureArguments` does.
    """
    origin = _origin(function, tool)
    if origin is None:
        return SignatureArguments(function, tool)
    found = _SHARED.get(origin)
    if found is None:
        found = _SHARED[origin] = SignatureArguments(function, tool)
    return found


_SHARED: WeakValueDictionary[Hashable, SignatureArguments] = WeakValueDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """An object that is equal to itself alone: a default of 1 is not one of True."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _origin(function: Callable[..., object], tool: str) -> Hashable | None:
    """All that decides what a plain function takes; None for what is more than its `def` or has no hash."""
    if not isinstance(function, FunctionType) or vars(function):
        return None
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    made_by = [function.__code__, function.__globals__, *defaults]
    origin = tool, function.__doc__, tuple(map(_Same, made_by)), tuple(function.__annotations__.items())
    try:
        hash(origin)
    except TypeError:
        return None
    return origin


class _PlainSchema(GenerateJsonSchema):
    """Without the titles, which cost tokens and say nothing, and without defaults that are not JSON."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 - pydantic declares it so
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - the name is pydantic's
        return False

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().default_schema(schema)
        try:
            freeze(described.get("default"))
        except NotJson:
            del described["default"]
        return described


def parameters_of(function: Callable[..., object], tool: str) -> list[inspect.Parameter]:
    """The parameters of `function`.

    Raises:
        TypeError: when Python cannot tell them.
    """
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise TypeError(
            f"tool {tool!r} is a built-in whose parameters Python cannot tell: wrap it in a function"
        ) from error


def is_context(parameter: inspect.Parameter) -> bool:
    """Whether the engine fills this parameter: by its name, or because it is annotated `NodeContext`."""
    annotation = parameter.annotation
    written = annotation if isinstance(annotation, str) else repr(annotation)
    return parameter.name in CONTEXT_NAMES or re.search(r"\bNodeContext\b", written) is not None


def _hints(
    function: Callable[..., object], parameters: Iterable[inspect.Parameter], tool: str
) -> dict[str, Any]:
    """The annotations as types.  Only of these parameters: others may be for type checkers alone."""
    written = {p.name: p.annotation for p in parameters if p.annotation is not p.empty}
    try:
        return get_type_hints(
            SimpleNamespace(__annotations__=written), globalns=_namespace(function), include_extras=True
        )
    except NameError as error:
        raise TypeError(
            f"an annotation of tool {tool!r} cannot be resolved ({error}): "
            "define the type at module level, outside of `if TYPE_CHECKING`"
        ) from error


def _namespace(function: Callable[..., object]) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__globals__"):
        function = type(function).__call__
    return getattr(function, "__globals__", {})


def _field(parameter: inspect.Parameter, annotation: Any, text: str | None) -> tuple[Any, FieldInfo]:
    """The pydantic field of one parameter; a description in the annotation goes before the docstring's."""
    default = parameter.default
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], parameter.empty
    notes = [note for note in getattr(annotation, "__metadata__", ()) if isinstance(note, FieldInfo)]
    text = next((note.description for note in notes if note.description), text)
    if default is parameter.empty:
        return annotation, Field(alias=parameter.name, description=text)
    return annotation, Field(default, alias=parameter.name, description=text)


# From a JSON Schema


class SchemaArguments:
    """What a tool from elsewhere takes, by the JSON Schema that it brings.

    The check is complete where the package `jsonschema` is installed (the extra
    `mcp` brings it).  Without it, or with a schema that is broken or points to
    other documents, required names and plain types are checked and the tool
    itself judges the rest.

    Raises:
        NotJson: when `schema` is not JSON.
    """

    def __init__(self, schema: Mapping[str, object], tool: str) -> None:
        self.schema = frozen_object(schema, f"schema of tool {tool!r}")
        self._problems = _full_check(self.schema) or functools.partial(_plain_problems, self.schema)

    def read(self, arguments: JsonObject) -> dict[str, object]:
        """The arguments as they are, in a copy of the tool's own."""
        if problems := _listed(self._problems(arguments)):
            raise BadArguments(problems)
        return {name: thaw(value) for name, value in arguments.items()}


_Check = Callable[[JsonObject], Iterable[str]]


def _full_check(schema: JsonObject) -> _Check | None:
    try:
        import jsonschema
    except ImportError:
        return None
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError:
        return None
    if any(not target.startswith("#") for target in _references(schema)):
        return None  # the package would go and fetch it
    return functools.partial(_schema_problems, kind(schema))


def _references(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def _schema_problems(validator: Validator, arguments: JsonObject) -> Iterator[str]:
    for error in validator.iter_errors(arguments):
        yield _problem(error.absolute_path, error.message)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _plain_problems(schema: JsonObject, arguments: JsonObject) -> Iterator[str]:
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        if isinstance(name, str) and name not in arguments:
            yield f"{name!r} is a required property"
    properties = schema.get("properties")
    for name, described in properties.items() if isinstance(properties, dict) else ():
        kind = described.get("type") if isinstance(described, dict) else None
        if name in arguments and isinstance(kind, str) and kind in _TYPES:
            value = arguments[name]
            if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
                yield _problem([name], f"{value!r} is not of type {kind!r}")


# In words


def _problem(path: Iterable[object], message: str) -> str:
    where = ".".join(str(step) for step in path)
    return f"{where}: {shorten(message)}" if where else shorten(message)


def _listed(problems: Iterable[str]) -> str:
    found = list(problems)
    more = len(found) - _SHOWN_PROBLEMS
    return "; ".join(found[:_SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def shorten(text: str, length: int = _SHOWN_LENGTH) -> str:
    """At most `length` characters of `text`, as valid Unicode, with a note of how much was cut."""
    kept = text[:length].encode("utf-8", "replace").decode()
    return kept if len(text) <= length else f"{kept}… ({len(text) - length:,} more characters)"


@dataclass(frozen=True, slots=True)
class Documentation:
    """What a docstring says: the prose before its sections, and a text for each parameter.

    Understood are the sections `Args:`, `Arguments:`, `Parameters:` and `参数：`
    with lines `name: text` or `name (type): text`, and the form `:param name: text`.
    """

    prose: str
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, function: Callable[..., object]) -> Documentation:
        """Read the docstring of `function`."""
        prose: list[str] = []
        texts: dict[str, list[str]] = {}
        section: list[str] | None = prose  # where a line that starts nothing new goes to
        in_parameters, margin = False, None
        for line in (inspect.getdoc(function) or "").splitlines():
            indent = len(line) - len(line.lstrip())
            if heading := _HEADING.match(line):
                in_parameters, margin, section = heading["parameters"] is not None, None, None
            elif tagged := _TAGGED.match(line):
                section = texts.setdefault(tagged["name"], []) if tagged["name"] else []
                section.append(tagged["text"])
            elif in_parameters and margin in (None, indent) and (entry := _ENTRY.match(line)):
                margin, section = indent, texts.setdefault(entry["name"], [])
                section.append(entry["text"])
            elif section is not None:
                section.append(line if section is prose else line.strip())
        return cls(
            "\n".join(prose).strip(), {name: " ".join(filter(None, text)) for name, text in texts.items()}
        )


_HEADING = re.compile(
    r"(?:(?P<parameters>Args|Arguments|Parameters|Params|参数)"
    r"|Returns?|Yields?|Raises|Examples?|Notes?|Attributes|返回值?|异常|示例)\s*[:：]\s*$"
)
_TAGGED = re.compile(r":(?:param\s+(?:[^:]*\s)?(?P<name>\w+)|\w[^:]*):\s*(?P<text>.*)$")
_ENTRY = re.compile(r"\s*\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\)|（[^）]*）)?\s*[:：]\s*(?P<text>.*)$")
