"""Chat templates: read from model files, rendered in a sandbox, and matched with the formats that parse their text."""

import contextlib
import io
import json
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rightcall import Format, parse
from rightcall.errors import CallerError
from rightcall.formats.templates import gguf as header
from rightcall.formats.templates import template_child as child
from rightcall.formats.templates.confined import ChildBounds, render_template
from rightcall.formats.templates.gguf import chat_templates
from rightcall.formats.templates.source import TemplateSource, read_source
from rightcall.formats.templates.template_detection import PROBES, detect_template, matching_formats
from rightcall.formats.templates.template_faults import BadTemplate, TemplateStopped
from support.chat_templates import APRIEL, DEEPSEEK, GLM, HERMES, LLAMA3, STYLES, THINKING, WITHOUT_TOOLS, gguf
from support.command import failed, run

pytest.importorskip("jinja2")

QUICK = ChildBounds(cpu_seconds=1)


def source_of(data: bytes | str) -> TemplateSource:
    return read_source(io.BytesIO(data.encode() if isinstance(data, str) else data).read)


def render_text(template: str, **context: Any) -> str:
    (rendering,) = render_template(template, [context])
    assert not rendering.error, rendering.error
    return rendering.text


# -- detection of formats ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STYLES)
def test_the_format_of_a_template_comes_first(name: str) -> None:
    found = detect_template(STYLES[name])
    assert found.formats[0] == name, found


def test_formats_that_also_find_the_reasoning_come_first() -> None:
    assert detect_template(APRIEL).formats[0] == "apriel"


def test_a_template_that_requires_reasoning_is_detected() -> None:
    assert detect_template(THINKING).formats[0] == "hermes"


def test_the_most_specific_conversation_that_renders_decides() -> None:
    assert detect_template(HERMES).shows == PROBES[0].shows
    assert detect_template(LLAMA3).shows == "one call, nested arguments"


def test_only_the_text_of_the_assistant_is_matched() -> None:
    assert detect_template(HERMES).text.startswith("\n<tool_call>")
    assert detect_template(LLAMA3).text.startswith('{"name": "get_weather"')
    assert detect_template(DEEPSEEK).text.startswith("<｜tool▁calls▁begin｜>")
    assert detect_template(GLM).text.startswith("</think>")


def test_a_template_without_tools_has_no_format() -> None:
    found = detect_template(WITHOUT_TOOLS)
    assert found.formats == () and "get_weather" not in found.text


def test_a_matching_format_gives_exactly_the_rendered_calls() -> None:
    (call,) = PROBES[3].calls
    whole = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}\n</tool_call>'
    assert matching_formats(whole, (call,))[0] == "hermes"
    for wrong in (whole + whole, whole.replace("3", '"3"'), whole[:-20], whole.replace("Oslo", "Rome"), ""):
        assert matching_formats(wrong, (call,)) == ()


def test_a_template_that_rejects_every_conversation_is_an_error_with_its_reason() -> None:
    with pytest.raises(BadTemplate, match="refuses the conversation: TemplateError: not with me"):
        detect_template("{{ raise_exception('not with me') }}")
    with pytest.raises(BadTemplate, match="writes nothing"):
        detect_template("{# nothing #}")


# -- rendering ---------------------------------------------------------------------------------------------------------


def test_templates_have_the_functions_of_model_libraries() -> None:
    assert render_text("{{ x | tojson }}", x={"a": "<é>"}) == '{"a": "<é>"}'
    assert render_text("{{ x | tojson(indent=1) }}", x=[1]) == "[\n 1\n]"
    assert render_text("{{ strftime_now('%Y') }}").isdigit()
    assert render_text("{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "1"
    assert render_text("a{% generation %}b{% endgeneration %}c") == "abc"
    assert render_text("  {% if true %}\nx\n  {% endif %}\ny") == "x\ny"


def test_conversations_are_rejected_individually() -> None:
    refusing = "{% if x %}{{ raise_exception('no') }}{% endif %}y"
    first, second = render_template(refusing, [{"x": True}, {"x": False}])
    assert (first.error, second.text) == ("TemplateError: no", "y")


def test_an_invalid_template_is_reported() -> None:
    with pytest.raises(BadTemplate, match="TemplateSyntaxError"):
        render_template("{% if %}", [{}])


def test_a_lone_surrogate_is_rendered() -> None:
    assert render_text("{{ x }}", x="\ud800") == "\ud800"


HOSTILE = {
    "a loop without end": ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "cpu"),
    "a huge power": ("{{ 9 ** (9 ** 9) }}", "cpu"),
    "a huge string": ("{{ 'a' * 10 ** 10 }}", "memory"),
    "a huge list": ("{{ [1] * 10 ** 10 }}", "memory"),
    "a huge width": ("{{ '%2000000000d' % 1 }}", "memory"),
    "text without end": ("{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}", "output"),
}
LIMITS = {
    "cpu": "1 seconds of CPU time",
    "memory": "more memory than 512,000,000",
    "output": "more than 4,000,000 char",
}


@pytest.mark.parametrize("template, limit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS does not enforce the memory limit")
def test_a_hostile_template_is_stopped_and_the_limit_is_named(template: str, limit: str) -> None:
    with pytest.raises(TemplateStopped, match=LIMITS[limit]) as caught:
        detect_template(template, bounds=QUICK)
    assert caught.value.limit == limit


def test_a_template_over_the_wall_clock_limit_is_stopped() -> None:
    busy = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    start = time.monotonic()
    with pytest.raises(TemplateStopped, match="longer than 1 seconds"):
        detect_template(busy, bounds=ChildBounds(cpu_seconds=60, wall_seconds=1))
    assert time.monotonic() - start < 50


ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ cycler.__init__.__globals__.os.system('true') }}",
    "{{ raise_exception.__globals__ }}",
    "{{ strftime_now.__code__ }}",
    "{{ (messages | map(attribute='__class__') | list)[0].__mro__ }}",
    "{{ '{0.__class__.__mro__}'.format(1) }}",
    "{{ messages.append(1) }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{{ range(10 ** 9) }}",
]


@pytest.mark.parametrize("template", ESCAPES)
def test_a_template_cannot_escape_its_sandbox(template: str) -> None:
    with pytest.raises(BadTemplate):
        detect_template(template)


def test_the_child_process_cannot_write_a_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    program = f"import runpy; runpy.run_path({child.__file__!r})['limit_resources'](5, 10**9); "
    program += f"open({str(path)!r}, 'wb', 0).write(b'x')"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, timeout=60)
    assert done.returncode != 0 and b"File too large" in done.stderr and path.read_bytes() == b""


def test_the_child_process_has_an_empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    environments: list[Any] = []
    popen = subprocess.Popen

    def start(*args: Any, **options: Any) -> Any:
        environments.append(options["env"])
        return popen(*args, **options)

    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setattr(subprocess, "Popen", start)
    assert render_text("x") == "x" and environments == [{}]


def test_a_missing_jinja2_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(CallerError, match=r"pip install 'rightcall\[templates\]'"):
        render_template("x", [{}])


# -- sources of templates ----------------------------------------------------------------------------------------------


def test_a_jinja_file_is_one_template() -> None:
    assert source_of(HERMES).templates == {"default": HERMES}
    assert source_of('{"a": {{ x }}').templates == {"default": '{"a": {{ x }}'}


def test_a_tokenizer_config_has_one_template_or_several() -> None:
    tokens = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": None}
    assert source_of(json.dumps({"chat_template": "x", **tokens})) == TemplateSource(
        {"default": "x"}, {"bos_token": "<s>", "eos_token": "</s>"}
    )
    several = [{"name": "default", "template": "x"}, {"name": "tool_use", "template": "y"}, 3]
    assert source_of(json.dumps({"chat_template": several})).templates == {"default": "x", "tool_use": "y"}
    assert source_of(json.dumps({"chat_template": {"default": "x"}})).templates == {"default": "x"}


def test_a_template_that_expects_tools_as_text_is_detected() -> None:
    assert detect_template("{{ functions + datetime }}" + HERMES).formats[0] == "hermes"


def test_special_tokens_of_the_config_are_passed_to_the_template() -> None:
    assert render_text("{{ bos_token }}x", bos_token="<s>") == "<s>x"
    assert detect_template("{{ bos_token }}" + HERMES, {"bos_token": "<s>"}).formats[0] == "hermes"


@pytest.mark.parametrize(
    "data, message",
    [
        ("", "no chat template"),
        ("{}", "no chat template"),
        (json.dumps({"chat_template": ""}), "no chat template"),
        (json.dumps({"chat_template": [{"name": "a", "template": 3}]}), "no chat template"),
        (json.dumps({"chat_template": [{"name": str(i), "template": "x"} for i in range(17)]}), "at most 16"),
        ("x" * 1_000_001, "at most 1,000,000"),
        (b"\x89PNG\r\n", "neither GGUF nor UTF-8 text"),
    ],
)
def test_a_file_without_a_usable_template_is_rejected(data: str | bytes, message: str) -> None:
    with pytest.raises(BadTemplate, match=message):
        source_of(data)


ENTRIES: list[tuple[str, Any]] = [
    ("general.architecture", "qwen2"),
    ("llama.rope", 1.5),
    ("llama.blocks", 24),
    ("flag", True),
    ("tokenizer.ggml.tokens", ["a", "bc", "d" * 300]),
    ("tokenizer.ggml.scores", [0.5] * 5),
    ("nested", [["x"], ["y", "z"]]),
    ("tokenizer.chat_template.tool_use", "for tools"),
    ("tokenizer.chat_template", "{{ 'é' }}"),
    ("general.name", "later"),
]


@pytest.mark.parametrize("version, order", [(1, "<"), (2, "<"), (3, "<"), (3, ">")])
def test_only_the_header_of_a_gguf_file_is_read(version: int, order: str) -> None:
    data = gguf(ENTRIES, version=version, order=order)
    file = io.BytesIO(data + b"tensors" * 1000)
    assert chat_templates(file.read) == {"tool_use": "for tools", "default": "{{ 'é' }}"}
    assert file.tell() == len(data)
    assert source_of(data).templates["default"] == "{{ 'é' }}"


def _entry(key: str, kind: int, value: bytes) -> bytes:
    return gguf([], count=1) + struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value


BROKEN_HEADERS = {
    "no magic": (b"GGML" + b"\0" * 40, "no GGUF file"),
    "unknown version": (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "version 9"),
    "too many entries": (gguf([], count=2**60), "at most 65,536"),
    "entries that are not there": (gguf([], count=3), "ends inside its header"),
    "a key that is too long": (gguf([], count=1) + struct.pack("<Q", 2**40), "at most 65,535"),
    "a template that is too long": (
        _entry("tokenizer.chat_template", 8, struct.pack("<Q", 2**31)),
        "at most 1,000,000",
    ),
    "a string that is too long": (_entry("x", 8, struct.pack("<Q", 2**62)), "at most 16,000,000"),
    "an array that is too long": (_entry("x", 9, struct.pack("<IQ", 8, 2**50)), "at most 16,000,000"),
    "a long array of nothing": (_entry("x", 9, struct.pack("<IQ", 8, 15_000_000)), "ends inside its header"),
    "arrays in arrays": (_entry("x", 9, struct.pack("<IQ", 9, 1) * 9), "nested deeper than 4"),
    "an unknown type": (_entry("x", 77, b""), "unknown type 77"),
    "a cut": (gguf(ENTRIES)[:200], "ends inside its header"),
    "no template": (gguf(ENTRIES[:3]), "no chat template"),
}


@pytest.mark.parametrize("data, message", BROKEN_HEADERS.values(), ids=BROKEN_HEADERS)
def test_a_broken_gguf_header_is_rejected_quickly(data: bytes, message: str) -> None:
    start = time.process_time()
    with pytest.raises(BadTemplate, match=message):
        source_of(data) if data.startswith(b"GGUF") else chat_templates(io.BytesIO(data).read)
    assert time.process_time() - start < 5


def test_a_gguf_header_over_the_size_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header, "MAX_HEADER", 1_000)
    data = _entry("x", 9, struct.pack("<IQ", 0, 5_000)) + b"\0" * 5_000
    with pytest.raises(BadTemplate, match="longer than 1,000 bytes"):
        source_of(data)


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_truncated_gguf_file_raises_only_bad_template(cut: int) -> None:
    data = gguf(ENTRIES)[:cut]
    with contextlib.suppress(BadTemplate):
        chat_templates(io.BytesIO(data).read)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_accepts_every_kind_of_file(tmp_path: Path) -> None:
    for name, data in {
        "chat_template.jinja": HERMES.encode(),
        "tokenizer_config.json": json.dumps({"chat_template": HERMES}).encode(),
        "model.gguf": gguf([("tokenizer.chat_template", HERMES)]) + b"\0" * 100,
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        result = run("formats", "detect", str(path))
        assert result.exit_code == 0, result.output
        assert "formats    hermes\n" in result.stdout and "<tool_call>" in result.stdout
        assert json.loads(run("formats", "detect", str(path), "--json").stdout)["default"]["formats"][0] == "hermes"


def test_several_templates_are_reported_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer_config.json"
    entries = [{"name": "default", "template": WITHOUT_TOOLS}, {"name": "tool_use", "template": HERMES}]
    path.write_text(json.dumps({"chat_template": entries}))
    result = run("formats", "detect", str(path))
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines() if line.startswith(("template", "formats"))] == [
        ["template", "default"],
        ["formats", "none"],
        ["template", "tool_use"],
        ["formats", "hermes"],
    ]


def test_no_matching_format_gives_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "plain.jinja"
    path.write_text(WITHOUT_TOOLS)
    result = run("formats", "detect", str(path))
    assert result.exit_code == 1 and "no format parses what this template writes" in result.stderr


def test_a_template_that_cannot_be_rendered_is_a_one_line_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.jinja"
    for template, message in (
        ("{% if %}", "cannot be used"),
        ("{{ ''.__class__.x }}", "unsafe"),
        ("", "no chat template"),
    ):
        path.write_text(template)
        assert message in failed(run("formats", "detect", str(path)))
    assert "No such file" in failed(run("formats", "detect", str(tmp_path / "no.jinja")))
    assert "directory" in failed(run("formats", "detect", str(tmp_path)))
    assert "no file" in failed(run("formats", "detect"))


def test_control_characters_of_a_template_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "bad.jinja"
    path.write_text("\x1b[2J\u202e{% for m in messages %}{{ m.role }}\x07{% endfor %}")
    result = run("formats", "detect", str(path))
    assert result.exit_code == 1 and "\x1b" not in result.output and "\u202e" not in result.output
    path.write_text("{{ raise_exception('\x1b[2J') }}")
    assert "\x1b" not in failed(run("formats", "detect", str(path)))


# -- drafts for unknown formats ----------------------------------------------------------------------------------------

_EACH = "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}BEFORE{% endfor %}{% endfor %}"
_ITEMS = "{% for k, v in c.function.arguments | items %}"
_VALUE = "{{ v if v is string else v | tojson }}"
UNKNOWN_FORMATS = {
    "an envelope with keys of its own": '<<do>>{"verb": "{{ c.function.name }}", '
    '"with": {{ c.function.arguments | tojson }}}<<done>>',
    "tags around each argument": "<do>\n<use tool={{ c.function.name }}>\nITEMS"
    "<with key={{ k }}>\nVALUE\n</with>\n{% endfor %}</use>\n</do>\n",
    "tags that are the keys": '<use tool="{{ c.function.name }}">ITEMS<{{ k }}>VALUE</{{ k }}>{% endfor %}</use>',
    "a name, then tags for keys and for values": "[do]{{ c.function.name }}\n"
    "ITEMS[k]{{ k }}[/k]\n[v]VALUE[/v]\n{% endfor %}[/do]",
    "a name, then JSON": "@@run {{ c.function.name }} => {{ c.function.arguments | tojson }} @@end\\n",
}


@pytest.mark.parametrize("kind", UNKNOWN_FORMATS)
def test_a_draft_is_written_for_an_unknown_format(kind: str, tmp_path: Path) -> None:
    template = _EACH.replace("BEFORE", UNKNOWN_FORMATS[kind]).replace("ITEMS", _ITEMS).replace("VALUE", _VALUE)
    found = detect_template(template)
    assert found.formats == () and found.draft
    format = Format.from_toml(found.draft)
    assert [call.name for call in parse(found.text, format=format).calls][:1] == ["get_weather"]
    path = tmp_path / "chat.jinja"
    path.write_text(template)
    result = run("formats", "detect", str(path))
    assert result.exit_code == 1 and "draft" in result.stdout and "formats check FILE" in result.stderr
