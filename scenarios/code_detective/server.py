"""An MCP server in the standard library: JSON-RPC, one message a line, over stdin and stdout."""

import ast
import json
import sys
from pathlib import Path

PROJECT = Path(__file__).parent / "project"
FILES = ("average.py", "test_average.py")
READS = {"readOnlyHint": True}

# A fix is run, so it may hold nothing but a little arithmetic over these names.
NAMES = {"sum": sum, "len": len}
GRAMMAR = (
    ast.Expression,
    ast.IfExp,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Div,
    ast.Compare,
    ast.Eq,
    ast.NotEq,
    ast.Gt,
    ast.Is,
    ast.IsNot,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.List,
)


def read_file(file):
    if file not in FILES:
        raise ValueError(f"there is no {file!r}; the files are {', '.join(FILES)}")
    return (PROJECT / file).read_text(encoding="utf-8")


def try_fix(expression):
    tree = ast.parse(expression.strip(), mode="eval")
    known = {"numbers", *NAMES}
    for node in ast.walk(tree):
        if not isinstance(node, GRAMMAR) or (isinstance(node, ast.Name) and node.id not in known):
            raise ValueError(f"{ast.unparse(node)!r} is not allowed: use numbers, sum, len and conditions")
    code = compile(tree, "fix", "eval")
    cases = ast.literal_eval(read_file("test_average.py").partition("=")[2].strip())
    failed = []
    for numbers, expected in cases:
        try:
            got = eval(code, {"__builtins__": {}, **NAMES, "numbers": numbers})  # noqa: S307 (see GRAMMAR)
        except (TypeError, ZeroDivisionError) as error:
            got = type(error).__name__
        if got != expected:
            failed.append(f"average({numbers}) gave {got}, not {expected}")
    return f"{len(cases) - len(failed)} of {len(cases)} tests pass. " + "; ".join(failed)


TOOLS = {
    "read_file": (read_file, "Read a file: average.py or test_average.py.", "file"),
    "try_fix": (try_fix, "Run the tests with this expression as what average returns.", "expression"),
}


def listed(name, description, parameter):
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": READS}


def called(name, arguments):
    try:
        text, failed = TOOLS[name][0](**arguments), False
    except (KeyError, TypeError, ValueError, SyntaxError) as error:
        text, failed = f"{type(error).__name__}: {error}", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "project", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [listed(name, about, parameter) for name, (_, about, parameter) in TOOLS.items()]}
    if method == "tools/call":
        return called(params["name"], params.get("arguments") or {})
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        result = answer(message["method"], message.get("params", {}))
        if result is None:
            reply["error"] = {"code": -32601, "message": f"no method {message['method']}"}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)  # noqa: T201 (stdout is the wire)
