"""The arrows between the parts, and a few promises about files that no other test would notice.

`MAY_IMPORT` is the whole contract.  A part that needs a new arrow gets it there,
in a review, and nowhere else.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

import playground

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "playground"

# part: (the parts that it may import, the packages of others that it may import)
MAY_IMPORT: dict[str, tuple[set[str], set[str]]] = {
    "kernel": (set(), set()),
    "backends": ({"kernel"}, set()),
    "agenton": ({"kernel"}, {"pydantic", "pydantic_core", "pydantic_ai", "typing_extensions"}),
    "runtime": ({"kernel"}, {"pydantic", "httpx2", "mcp", "jsonschema", "yaml"}),
    "sessions": (
        {"kernel", "backends", "agenton", "runtime", "assets"},
        {"pydantic", "jsonschema", "referencing", "typing_extensions"},
    ),
    "web": (
        {"kernel", "backends", "agenton", "runtime", "sessions", "assets"},
        {"starlette", "uvicorn", "jinja2", "markupsafe"},
    ),
    "cli": ({"kernel", "backends", "agenton", "runtime", "sessions", "assets", "web"}, {"uvicorn"}),
    "assets": (set(), set()),
    "__init__": ({"facade"}, set()),
    "facade": ({"kernel", "runtime", "sessions"}, set()),
    "testing": ({"sessions"}, set()),
    "__main__": ({"cli"}, set()),
}

# Hosts of package registries, in halves so that this file does not name them either.
REGISTRIES = [
    ".".join(halves)
    for halves in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("unpkg", "com"),
        ("jsdelivr", "net"),
        ("cdnjs", "cloudflare.com"),
        ("deb", "debian.org"),
    ]
]

BUILDS_HTML = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write(ln)?|createContextualFragment|"
    r"DOMParser|setHTMLUnsafe|srcdoc|eval|new Function)\b"
)


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def files(folder: str, pattern: str) -> list[Path]:
    return sorted((ROOT / folder).rglob(pattern))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Each import in a file as its line and the full dotted name of what it takes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def forbidden_import(part: str, name: str) -> bool:
    parts, packages = MAY_IMPORT[part]
    top, _, rest = name.partition(".")
    if top == "playground":
        target = rest.partition(".")[0]
        return target != part and target not in parts
    return top not in sys.stdlib_module_names and top not in packages


def test_each_part_imports_only_what_the_table_allows() -> None:
    wrong = [
        f"{where(path, line)} {part_of(path)} may not import {name}"
        for path in files("playground", "*.py")
        if "_assets" not in path.parts
        for line, name in imports(path)
        if forbidden_import(part_of(path), name)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_package_in_the_table_is_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = chain(project["dependencies"], *project["optional-dependencies"].values())
    declared = {re.split(r"[<>=!~\[; ]", line)[0].replace("-", "_") for line in wanted}
    declared |= {"pydantic_ai"} if "pydantic_ai_slim" in declared else set()
    declared |= {"yaml"} if "pyyaml" in declared else set()
    declared |= {"anyio", "markupsafe", "pydantic_core"}  # starlette's, jinja2's and pydantic's vocabulary
    used = set().union(*(packages for _, packages in MAY_IMPORT.values()))
    assert used <= declared


def test_the_kernel_imports_on_a_python_without_any_package() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import playground.kernel"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


EXTRAS = ("httpx2", "mcp", "pydantic_ai", "openai")

WITHOUT_EXTRAS = f"""
import importlib, sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, {str(ROOT)!r})
for name in sys.argv[1:]:
    importlib.import_module(name)
import playground
for name in playground.__all__:
    getattr(playground, name)
"""


def test_everything_that_is_not_about_an_extra_imports_without_the_extras() -> None:
    modules = [
        "playground" + "".join(f".{part}" for part in path.relative_to(PACKAGE).with_suffix("").parts)
        for path in files("playground", "*.py")
        if path.stem not in ("__init__", "__main__", "pydantic_ai") and "_assets" not in path.parts
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *modules], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def module_level_imports(path: Path) -> Iterator[tuple[int, str]]:
    """The imports that run when the file is loaded: not those for types only, not those inside functions."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name


def test_the_kernels_files_need_each_other_in_one_direction_only() -> None:
    needs = {
        path.stem: {
            name.removeprefix("playground.kernel.")
            for _, name in module_level_imports(path)
            if name.startswith("playground.kernel.")
        }
        for path in files("playground/kernel", "*.py")
    }
    while free := {name for name, others in needs.items() if not others & needs.keys()}:
        for name in free:
            del needs[name]
    assert not needs, f"these files import each other in a circle: {sorted(needs)}"


def test_scenarios_use_public_names_and_the_standard_library_only() -> None:
    public = {f"playground.{name}" for name in getattr(playground, "__all__", ())} | {"playground"}
    wrong = [
        f"{where(path, line)} a scenario may not import {name}"
        for path in files("scenarios", "*.py")
        for line, name in imports(path)
        if name not in public
        and not name.startswith("playground.agenton.")
        and name.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert not wrong, "\n".join(wrong)


class InlineCode(HTMLParser):
    """Collects what the content security policy would refuse, as (line, what)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._script = tag == "script" and given.get("type") != "application/json"
        if tag == "style":
            self._add("<style>")
        for name, value in attrs:
            if name == "style" or name.startswith(("on", "hx-on")):
                self._add(f"{name}=")
            if (value or "").strip().lower().startswith(("javascript:", "js:")):
                self._add(f'{name}="{value}"')

    def handle_data(self, data: str) -> None:
        if self._script and data.strip():
            self._add("<script> with a body")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def _add(self, what: str) -> None:
        self.found.append((self.getpos()[0], what))


def inline_code(template: str) -> list[tuple[int, str]]:
    blank = re.sub(
        r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", lambda m: " " + "\n" * m[0].count("\n"), template, flags=re.S
    )
    parser = InlineCode()
    parser.feed(blank)
    parser.close()
    return parser.found


def test_templates_carry_no_inline_script_style_or_handler() -> None:
    wrong = [
        f"{where(path, line)} has {what}"
        for path in files("templates", "*.html")
        if path.name != "keepsake.html"  # has no server behind it, and names each by its hash
        for line, what in inline_code(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_check_for_inline_code_finds_each_kind() -> None:
    template = (
        '<p {% if x %}style="a"{% endif %}>\n<b onclick="x()">\n<a href=" JavaScript:x()">\n'
        "<style>a{}</style>\n<script>x()</script>\n<i hx-on:click='x()'>\n"
        '<script src="/a.js"></script><script type="application/json">{}</script>'
    )
    assert [line for line, _ in inline_code(template)] == [1, 2, 3, 4, 5, 6]


def own_scripts() -> list[Path]:
    return [path for path in files("static", "*.js") if "vendor" not in path.parts]


def test_page_scripts_build_no_html_from_strings() -> None:
    wrong = [
        f"{where(path, number)} uses {found[0]}"
        for path in own_scripts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := BUILDS_HTML.search(line))
    ]
    assert not wrong, "\n".join(wrong)


def test_vendored_files_are_what_their_record_says() -> None:
    """`static/vendor/vendor.json`: {file: {"package", "version", "licence", "sha256"}}, one entry a file."""
    folder = ROOT / "static" / "vendor"
    kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    record = json.loads((folder / "vendor.json").read_text(encoding="utf-8")) if kept else {}
    assert kept - {"vendor.json"} == record.keys()
    for name, entry in record.items():
        assert entry["package"], name
        assert entry["version"], name
        assert entry["licence"], name
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == entry["sha256"], name


def test_every_make_command_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    documents = [ROOT / "README.md", *files("docs", "*.md")]
    named = {
        name
        for path in documents
        for name in re.findall(r"\bmake ([a-z]+)`?", code_of(path.read_text("utf-8")))
    }
    assert {"play", "test"} <= named <= targets


def code_of(markdown: str) -> str:
    """Only the code in a document: fenced blocks and `spans`."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", markdown, re.S))


@cache
def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} names {host}"
        for path in tracked()
        if path.is_file()
        for host in REGISTRIES
        if host.encode() in path.read_bytes()
    ]
    assert not wrong, "\n".join(wrong)
