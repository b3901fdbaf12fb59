"""Skills: read from folders, chosen by their words, shown as far as they are used (cases D21, D37, D48)."""

import os
import sys
from subprocess import run

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel.types import ToolCall, ToolResult
from playground.runtime.skill_file import MAX_BYTES, SkillFileError, parse_skill
from playground.runtime.skills import ScopedTools, Skill, SkillRegistry
from playground.runtime.tools import ToolRegistry


def put(root, name, text, *, file="SKILL.md"):
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def skill(name="demo", description="what it is for", body="do it", extra=""):
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\n{body}\n"


def load(tmp_path, text):
    """The registry after loading one skill file that says `text`."""
    put(tmp_path, "it", text)
    registry = SkillRegistry()
    registry.load_dir(tmp_path)
    return registry


def problems(registry, root):
    """What is wrong, with paths relative to `root`."""
    return [str(problem).replace(f"{root}{os.sep}", "") for problem in registry.problems]


# A skill file


def test_a_skill_is_read_from_its_folder(tmp_path):
    put(tmp_path, "demo", "---\nname: 演示技能\ndescription: 用来测试加载\n---\n第一步这样\n第二步那样\n")
    registry = SkillRegistry()
    (loaded,) = registry.load_dir(str(tmp_path))
    assert registry.resolve("演示技能") == loaded
    assert (loaded.description, loaded.folder) == ("用来测试加载", tmp_path / "demo")
    assert loaded.instructions == "第一步这样\n第二步那样"
    assert registry.problems == []


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Use when: writing copy", "Use when: writing copy"),
        ('"Plan" — then act', '"Plan" — then act'),
        (r'"say: \"hi\""', 'say: "hi"'),
        ("'it''s: ready'", "it's: ready"),
        ("[draft] does: this", "[draft] does: this"),
        ("`code` first", "`code` first"),
        ("@team asks", "@team asks"),
        ("*bold* words", "*bold* words"),
        ("100%: all of it", "100%: all of it"),
        ("a: b: c", "a: b: c"),
        ("&co and *more", "&co and *more"),
        ("!important note", "!important note"),
        ("用于：处理退款", "用于：处理退款"),
        ("Use when: one\n  or two: both", "Use when: one or two: both"),
        (">\n  folded\n  text", "folded text"),
        ("|\n  literal\n  text", "literal text"),
        ("2026-01-02", "2026-01-02"),
        ("yes", "yes"),
        ("007", "007"),
    ],
)
def test_a_description_that_can_be_read_only_one_way_is_read_so_cases(tmp_path, written, read):
    """Case D21 and D48."""
    registry = load(tmp_path, skill(description=written))
    assert registry.problems == []
    assert registry.resolve("demo").description == read


@pytest.mark.parametrize(
    "written",
    [
        '"never closed',
        '"say "hi" now"',
        "'it's'",
        '"Plan" and "act"',
        "Use when: a # b",
        "[a, b",
        "{a: b",
        "- one: two",
        "> folded: text",
        "one: two\n- three",
        '"\\UFFFFFFFF"',
        '"\\uD800"',
        "a\x07b",
        "[[[[" * 2_000,
    ],
)
def test_a_description_that_can_be_read_in_two_ways_is_a_problem_with_file_and_line(tmp_path, written):
    registry = load(tmp_path, skill(description=written))
    assert registry.resolve("demo") is None
    (problem,) = registry.problems
    assert problem.path == tmp_path / "it" / "SKILL.md"
    assert 2 <= problem.line <= 4
    assert str(problem).startswith(f"{problem.path}:{problem.line}: ")


def test_an_error_names_the_rule_and_the_way_out(tmp_path):
    assert problems(load(tmp_path, skill(description='"never closed')), tmp_path) == [
        "it/SKILL.md:3: the header is no YAML (found unexpected end of stream): put the value in quotes"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "---\nname: a\n----\nbody",
            "it/SKILL.md:1: the header has no end: close it with a line '---'; line 3 is '----'",
        ),
        ("---\nname: a\nbody", "it/SKILL.md:1: the header has no end: close it with a line '---'"),
        ("name: a\n---\nbody", "it/SKILL.md:1: has no header: begin it with a line '---'"),
        ("----\nname: a\n---\nbody", "it/SKILL.md:1: has no header: begin it with a line '---'"),
        ("", "it/SKILL.md:1: has no header: begin it with a line '---'"),
        ("---\njust text\n---\nbody", "it/SKILL.md:2: the header has no entries: write them as 'key: value'"),
        ("---\nname: a\nname: b\n---\n", "it/SKILL.md:3: 'name' is there twice"),
        ("---\nname: a: 1\nname: b\n---\n", "it/SKILL.md:3: 'name' is there twice"),
        (
            "---\nname: [a]\ndescription: b\n---\n",
            "it/SKILL.md:2: 'name' is no text: write it in one line, in quotes",
        ),
        (
            "---\nname: a\ndescription: b\ntools: {a: b}\n---\n",
            "it/SKILL.md:4: 'tools' is no list of names: write [first, second]",
        ),
        (
            skill(name="n" * 101),
            "it/SKILL.md:2: the name has more than 100 characters: shorten it",
        ),
    ],
)
def test_a_malformed_header_is_reported(tmp_path, text, problem):
    """Case D37."""
    registry = load(tmp_path, text)
    assert registry.names() == []
    assert problems(registry, tmp_path) == [problem]


def test_rules_in_the_body_belong_to_the_body(tmp_path):
    """Case D37."""
    body = "one\n\n---\n\ntwo\n---\n----\nthree"
    assert load(tmp_path, skill(body=body)).resolve("demo").instructions == body


@pytest.mark.parametrize(
    "data",
    [
        skill().replace("\n", "\r\n").encode(),
        skill().replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + skill().encode(),
        b"\n\n" + skill().encode(),
        skill().replace("---", "---  ").encode(),
    ],
    ids=["CRLF", "CR", "BOM", "blank lines first", "spaces after the fence"],
)
def test_line_ends_marks_and_blanks_make_no_difference(tmp_path, data):
    registry = load(tmp_path, data)
    assert registry.problems == []
    assert registry.resolve("demo").instructions == "do it"


def test_a_file_that_is_not_utf8_is_named_with_the_line(tmp_path):
    registry = load(tmp_path, skill(body="one\ntwo ").encode() + b"\xff\n")
    assert problems(registry, tmp_path) == ["it/SKILL.md:7: is not UTF-8 text: save it in UTF-8"]


def test_a_huge_file_is_not_read(tmp_path):
    (problem,) = problems(load(tmp_path, skill(body="x" * MAX_BYTES)), tmp_path)
    assert problem.startswith("it/SKILL.md: has 262,")
    assert problem.endswith("262,144 is the most: move parts into files beside it")


def test_a_huge_header_is_refused(tmp_path):
    (problem,) = problems(load(tmp_path, skill(description="x" * 20_000)), tmp_path)
    assert problem == "it/SKILL.md:1: the header has more than 16,384 characters: move text below it"


def test_a_skill_without_a_name_goes_by_that_of_its_folder_and_is_listed(tmp_path):
    registry = load(tmp_path, "---\ndescription: b\n---\nbody")
    assert registry.resolve("it").instructions == "body"
    assert problems(registry, tmp_path) == [
        "it/SKILL.md: has no name and goes by that of its folder: add 'name: it'"
    ]


def test_a_skill_without_a_description_can_be_opened_and_is_listed(tmp_path):
    registry = load(tmp_path, "---\nname: a\n---\nbody")
    assert registry.open_skill("a") == "body"
    assert problems(registry, tmp_path) == [
        "it/SKILL.md: has no description, so nobody knows when to use it: add one"
    ]


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ("tools: [read, write]", ("read", "write")),
        ("tools:\n  - read\n  - write", ("read", "write")),
        ("tools: read, write", ("read", "write")),
        ("allowed-tools: read write", ("read", "write")),
        ("allowed-tools: Bash(git add *), Read", ("Bash(git add *)", "Read")),
        ("tools: []", ()),
        ("tools:", ()),
        ("license: MIT", ()),
    ],
)
def test_tools_are_a_list_or_names_in_a_line(tmp_path, written, tools):
    registry = load(tmp_path, skill(extra=f"{written}\n"))
    assert registry.problems == []
    assert registry.resolve("demo").tools == tools


def test_yaml_tags_build_nothing(tmp_path):
    registry = load(tmp_path, skill(description='!!python/object/apply:os.system ["echo no"]'))
    assert registry.names() == []
    assert len(registry.problems) == 1


def outcome(text):
    """The body and header of a skill file, or the line of the error."""
    try:
        told = parse_skill(text)
    except SkillFileError as error:
        return error.line
    return told.body, dict(told.header)


@given(st.text() | st.text("-ab: '\"\n", max_size=60))
def test_any_text_is_a_skill_or_an_error_with_a_line(text):
    line = outcome(text)
    assert isinstance(line, tuple) or 1 <= line <= text.count("\n") + text.count("\r") + 1


values = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), max_size=40)


@given(values)
def test_a_value_on_one_line_leaves_body_and_other_entries_alone_or_is_refused(value):
    read = outcome(f"---\nname: a\ndescription: {value}\n---\nbody")
    assert read in (2, 3, 4) or (read[0], read[1]["name"]) == ("body", "a")


# The folder


def test_a_folder_can_be_a_skill_and_hold_others_at_any_depth(tmp_path):
    put(tmp_path, ".", skill("root"))
    put(tmp_path, "writing/copy", skill("copy"))
    put(tmp_path, "writing", skill("writing"))
    put(tmp_path, ".hidden/x", skill("hidden"))
    put(tmp_path, "node_modules/x", skill("module"))
    assert [found.name for found in SkillRegistry().load_dir(tmp_path)] == ["root", "writing", "copy"]


def test_of_two_skills_of_one_name_the_first_counts_and_the_second_is_listed(tmp_path):
    put(tmp_path, "a", skill("Same", body="first"))
    put(tmp_path, "b", skill("same", body="second"))
    registry = SkillRegistry()
    assert len(registry.load_dir(tmp_path)) == 1
    assert registry.open_skill("SAME") == "first"
    assert problems(registry, tmp_path) == ["b/SKILL.md: the name 'same' is that of a/SKILL.md: rename one"]


def test_a_file_does_not_replace_a_registered_skill(tmp_path):
    put(tmp_path, "a", skill("same"))
    registry = SkillRegistry().register(Skill("same", "by program"))
    registry.load_dir(tmp_path)
    assert registry.resolve("same").description == "by program"
    assert problems(registry, tmp_path) == [
        "a/SKILL.md: the name 'same' is that of a registered skill: rename one"
    ]


def test_loading_again_brings_skills_and_problems_up_to_date(tmp_path):
    mended = put(tmp_path, "a", "---\nname: a\n")
    gone = put(tmp_path, "b", skill("b"))
    registry = SkillRegistry()
    registry.load_dir(tmp_path)
    assert (registry.names(), len(registry.problems)) == (["b"], 1)
    mended.write_text(skill("a"))
    gone.unlink()
    registry.load_dir(tmp_path)
    assert (registry.names(), registry.problems) == (["a"], [])
    assert registry.match("b") is None


def test_links_out_of_the_folder_are_not_followed_and_are_listed(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    secret = put(outside, "secret", skill("secret"))
    put(inside, "good", skill("good"))
    (inside / "file").mkdir()
    (inside / "file" / "SKILL.md").symlink_to(secret)
    (inside / "folder").symlink_to(outside / "secret")
    (inside / "loop").symlink_to(inside)
    (inside / "self").mkdir()
    (inside / "self" / "SKILL.md").symlink_to("SKILL.md")
    registry = SkillRegistry()
    registry.load_dir(inside)
    assert registry.names() == ["good"]
    assert problems(registry, inside) == [
        f"folder: is a link out of {inside}: copy the skill into it",
        f"file/SKILL.md: is a link out of {inside}: copy the file into it",
        "self/SKILL.md: cannot be read: Too many levels of symbolic links",
    ]


def test_another_spelling_of_the_file_name_is_found(tmp_path):
    put(tmp_path, "a", skill("lower"), file="skill.md")
    put(tmp_path, "b", skill("right"))
    put(tmp_path, "b", skill("wrong"), file="Skill.md")
    registry = SkillRegistry()
    registry.load_dir(tmp_path)
    assert registry.names() == ["lower", "right"]
    assert problems(registry, tmp_path) == ["b/Skill.md: is passed over: SKILL.md is beside it"]


def test_what_is_no_file_is_listed(tmp_path):
    (tmp_path / "a" / "SKILL.md").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / "SKILL.md")
    registry = SkillRegistry()
    assert registry.load_dir(tmp_path) == []
    assert problems(registry, tmp_path) == [
        "a/SKILL.md: is no regular file",
        "b/SKILL.md: is no regular file",
    ]


def test_a_missing_folder_is_a_problem(tmp_path):
    registry = SkillRegistry()
    assert registry.load_dir(tmp_path / "none") == []
    assert problems(registry, tmp_path) == ["none: is no folder: give one that holds skills"]


def test_skills_too_deep_are_said_not_to_be_looked_for(tmp_path):
    put(tmp_path, "1/2/3/4/5/6/7/8/9", skill())
    registry = SkillRegistry()
    registry.load_dir(tmp_path)
    assert problems(registry, tmp_path) == [
        "1/2/3/4/5/6/7/8: is 8 folders deep: skills below it are not looked for"
    ]


# Choosing


def test_a_skill_is_matched_by_the_words_of_a_task():
    registry = SkillRegistry()
    registry.register(Skill("退款流程", "处理退款退货售后", instructions="先核验订单再退款"))
    registry.register(Skill("code-review", "Use when the user wants a pull request reviewed"))
    assert registry.match("这个客户要退款").name == "退款流程"
    assert registry.match("Please look at this pull request").name == "code-review"


@pytest.mark.parametrize("task", ["what is the weather", "how do I use this", "这个怎么处理", "when?", ""])
def test_routine_words_match_nothing(task):
    registry = SkillRegistry().register(Skill("refund", "Use this when a user needs a refund. 处理这个退款"))
    assert registry.match(task) is None


def test_a_single_character_in_common_is_no_match():
    registry = SkillRegistry().register(Skill("审查", "写代码以后的检查"))
    assert registry.match("给我写首诗") is None
    assert registry.match("给我写代码").name == "审查"


def test_a_skill_that_is_named_is_the_one():
    registry = SkillRegistry()
    registry.register(Skill("pdf", "reads and fills forms, invoices and contracts"))
    registry.register(Skill("contracts", "checks contracts, invoices and forms"))
    registry.register(Skill("a", "nothing"))
    assert registry.match("use the pdf skill on a list of contracts and invoices").name == "contracts"
    assert registry.match("fill forms with PDF, a form").name == "pdf"
    assert registry.match("请用pdf处理").name == "pdf"


def test_without_skills_nothing_matches():
    assert SkillRegistry().match("anything") is None


def test_a_skill_registered_again_replaces_the_one_before():
    registry = SkillRegistry().register(Skill("a", "mango")).register(Skill("A", "coffee"))
    assert registry.names() == ["A"]
    assert registry.match("mango") is None


def test_a_skill_needs_a_name():
    with pytest.raises(ValueError, match="a skill needs a name"):
        SkillRegistry().register(Skill("  ", "x"))


# Using


def test_instructions_go_below_the_system_prompt():
    registry = SkillRegistry()
    refund = Skill("refund", "", "first check the order")
    assert registry.apply_to_system(refund, "You are a clerk.") == (
        "You are a clerk.\n\nUse the skill 'refund':\nfirst check the order"
    )
    assert registry.apply_to_system(refund).startswith("Use the skill")
    assert registry.apply_to_system(None, "You are a clerk.") == "You are a clerk."


def test_the_overview_tells_names_and_descriptions_and_no_instructions():
    registry = SkillRegistry().register(Skill("a", "does\n  a", "secret")).register(Skill("b", "x" * 9_999))
    first, second = registry.overview().split("\n")
    assert first == "- a: does a"
    assert len(second) < 1_100


async def test_a_model_opens_a_skill_and_its_files_as_a_tool(tmp_path):
    put(tmp_path, "demo", skill(body="read ref/table.md"))
    put(tmp_path, "demo", "the table", file="notes.txt")
    put(tmp_path, "demo/ref", "| a | b |", file="table.md")
    put(tmp_path, "demo/other", skill("other"))
    put(tmp_path, ".", "outside", file="secret.txt")
    (tmp_path / "demo" / "link.txt").symlink_to(tmp_path / "secret.txt")
    registry = SkillRegistry()
    registry.load_dir(tmp_path)
    tools = ToolRegistry().function(registry.open_skill)

    async def opened(**arguments):
        result = await tools.dispatch(ToolCall("open_skill", arguments))
        return result.output if result.ok else result.error

    assert await opened(name="demo") == f"read ref/table.md\n\nFiles: notes.txt, ref{os.sep}table.md"
    assert await opened(name="demo", file="ref/table.md") == "| a | b |"
    for file in ("../secret.txt", "link.txt", "/etc/passwd", "ref", "none.txt"):
        assert "is not there; its files are: notes.txt" in await opened(name="demo", file=file)
    assert "there is no skill 'dmeo'; the skills are: demo, other" in await opened(name="dmeo")


def test_a_skill_without_a_folder_has_no_files():
    registry = SkillRegistry().register(Skill("a", "x", "do it"))
    assert registry.open_skill("a") == "do it"
    with pytest.raises(LookupError, match="'f' of the skill 'a' is not there; its files are: none"):
        registry.open_skill("a", "f")


async def test_only_the_tools_of_a_skill_are_shown_and_run():
    calls = []
    tools = ToolRegistry()
    for name in ("git_log", "git_diff", "delete"):
        tools.function(lambda name=name: calls.append(name), name=name, description=name)
    scoped = ScopedTools(tools, Skill("review", "", tools=["git_*"]))
    assert [schema["function"]["name"] for schema in scoped.schemas()] == ["git_log", "git_diff"]
    assert (await scoped.dispatch(ToolCall("git_log", {}))).ok
    assert await scoped.dispatch(ToolCall("delete", {}, "c1")) == ToolResult.failure(
        "the skill 'review' does not use the tool 'delete'; it uses: git_log, git_diff", "c1"
    )
    assert calls == ["git_log"]


def test_a_skill_without_tools_leaves_all_of_them():
    assert len(ScopedTools(ToolRegistry().function(print_nothing), Skill("a", "x")).schemas()) == 1


def print_nothing():
    """Does nothing."""


def test_yaml_is_loaded_with_the_first_skill_file_not_with_the_module():
    code = "import sys, playground.runtime.skills; print('yaml' in sys.modules)"
    assert run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
