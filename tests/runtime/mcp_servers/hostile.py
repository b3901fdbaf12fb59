"""A server without any library, for what no well-behaved one does; `python hostile.py HABIT…`.

It speaks an old protocol and has one tool, `echo`, that gives back a word or does what the word says.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

HABITS = set(sys.argv[1:])
TOOL = {"name": "echo", "description": "Give it back.", "inputSchema": {"type": "object"}}
BIG = 50 << 20


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def mutter(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def answer(request: dict, result: str) -> None:
    end = "\r\n" if "crlf" in HABITS else "\n"
    write(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{result}}}{end}'.encode())


def content(text: str) -> str:
    return json.dumps({"content": [{"type": "text", "text": text}]}, ensure_ascii=False)


def initialize(request: dict) -> None:
    told = {
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hostile", "version": "1"},
    }
    answer(request, json.dumps(told))


def list_tools(request: dict) -> None:
    page = {"tools": [TOOL], "nextCursor": "more"} if "endless" in HABITS else {"tools": [TOOL]}
    answer(request, json.dumps(page))


def call(request: dict) -> None:
    if "stderr" in HABITS:
        mutter("e" * (1 << 20) + "the end of it")
    word = request["params"]["arguments"].get("word", "")
    if word == "huge":
        answer(request, content("x" * BIG))
    elif word == "huge, id last":
        write(b'{"jsonrpc":"2.0","result":' + content("x" * BIG).encode() + b',"id":%d}\n' % request["id"])
    elif word == "bad byte":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":"\xff"}}\n' % request["id"])
    elif word == "surrogate":
        answer(request, r'{"content":[{"type":"text","text":"\ud800"}]}')
    elif word == "nan":
        answer(request, '{"content":[],"structuredContent":{"x":NaN}}')
    elif word == "not MCP":
        answer(request, '{"content":"what?"}')
    elif word == "pid":
        answer(request, content(str(os.getpid())))
    elif word == "die":
        mutter("no more strength")
        os._exit(7)
    elif word != "silence":
        answer(request, content(word))


if "exits" in HABITS:
    mutter("no licence found\n")
    sys.exit(3)
if "mute" in HABITS:
    mutter(f"thinking as {os.getpid()}.")
    time.sleep(60)
if "noise" in HABITS:
    write(b"hello\n\xff\xfe\n\n{}\n")
if "family" in HABITS:
    mutter(str(subprocess.Popen(["sleep", "60"]).pid))
if "nosy" in HABITS:
    mutter(json.dumps({**os.environ, "cwd": os.getcwd()}))
if "stubborn" in HABITS:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

ANSWERS = {"initialize": initialize, "tools/list": list_tools, "tools/call": call}

for line in sys.stdin.buffer:
    if "record" in HABITS:
        mutter(f"{line!r}\n")
    request = json.loads(line)
    if known := ANSWERS.get(request.get("method")):
        known(request)
    elif "id" in request and "taciturn" not in HABITS:
        write(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"what?"}}\n' % request["id"])
if "stubborn" in HABITS:
    time.sleep(60)
