"""The layer order, and which layers may use sockets, files and processes, checked on the syntax tree of every module.

Every import counts, including imports inside functions and under TYPE_CHECKING. A rule is a function of a path and a
source text; the tables at the end verify each rule.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "rightcall"
SOURCES = {file.relative_to(PACKAGE).as_posix(): file.read_text("utf-8") for file in sorted(PACKAGE.rglob("*.py"))}

ORDER = """
errors
extras
lazy_names
safe_text
types
api_names
problems
strict_json
redaction
request_gate
listeners
parsing/values
ids
schema
tools
repairs
formats
parsing
testing/laws
formats/templates
providers
contracts
constrain
masks
messages
dispatching
hooks
storage
datasets/rows
evaluation/webpage
workspace
mcp
guard
backends
testing
loop
capture
datasets
evaluation/reports
evaluation
serve
doctor
cli
""".split()

# (file, imported layer): why this one import may point to a later layer
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("formats/__init__.py", "storage"): "formats of one's own are found in folders",
    ("testing/__init__.py", "doctor"): "tests of one's own look for everything in one room, a server's doctor too",
    ("types.py", "tools"): "a tool that comes out of another process is declared again",
    ("types.py", "repairs"): "a call is made of argument text with the repairs and checks of every other",
    ("types.py", "providers"): "a reply writes itself for a history, in the words of an API",
}

CONNECTION_APIS = set(
    "socket ssl aiohttp httpx requests urllib3 urllib.request http.client websockets websocket ftplib smtplib imaplib "
    "poplib telnetlib xmlrpc.client asyncio.open_connection asyncio.open_unix_connection".split()
)
SERVER_APIS = set(
    "starlette uvicorn fastapi hypercorn http.server socketserver wsgiref xmlrpc.server aiohttp.web "
    "asyncio.start_server asyncio.start_unix_server".split()
)
PORT_APIS = set(
    "uvicorn hypercorn http.server socketserver wsgiref xmlrpc.server aiohttp.web.run_app aiohttp.web.AppRunner "
    "aiohttp.web.TCPSite aiohttp.web.SockSite asyncio.start_server asyncio.start_unix_server".split()
)
FILE_APIS = set(
    "open io.open io.FileIO codecs.open pathlib.Path pathlib.PosixPath shutil tempfile glob fileinput linecache mmap "
    "zipfile tarfile sqlite3 dbm shelve importlib.resources os.open os.fdopen os.listdir os.scandir os.walk os.mkdir "
    "os.makedirs os.remove os.unlink os.rename os.replace os.rmdir os.link os.symlink os.truncate os.chmod".split()
)
WRITE_APIS = set("os.rename os.replace os.link os.truncate os.ftruncate os.O_CREAT os.O_TRUNC shutil.move".split())
PROCESS_APIS = set(
    "subprocess multiprocessing pty os.system os.popen os.fork os.execv os.execve os.posix_spawn os.spawnv "
    "asyncio.create_subprocess_exec asyncio.create_subprocess_shell concurrent.futures.ProcessPoolExecutor".split()
)
FILE_METHODS = {"read_text", "write_text", "read_bytes", "write_bytes"}
HEAVY = set("pydantic jsonschema_rs llguidance typer rich jinja2 aiohttp starlette uvicorn xllamacpp".split())

MAY_CONNECT = {"backends", "mcp", "serve/upstream_lines.py", "serve/upstream_link.py"}
MAY_LISTEN = {"listeners.py", "serve", "backends/recording.py", "backends/relay.py", "mcp"}
MAY_BIND = {"listeners.py", "mcp/server.py"}
MAY_USE_FILES = set(
    "storage loop datasets/rows evaluation/webpage workspace backends capture datasets evaluation serve cli".split()
)
MAY_USE_FILES.add("dispatching/tool_child.py")
MAY_USE_FILES.add("repairs/rules.py")  # the table of rules, which is data of the package
MAY_USE_FILES.add("tools/value_types.py")  # paths are arguments of a tool; no file is opened
MAY_WRITE = {"storage", "backends/models.py"}  # the second downloads into its own folder
MAY_START_PROCESSES = set(
    "formats/templates/confined.py dispatching/isolate.py dispatching/tool_child.py datasets/rows/engines.py "
    "workspace mcp backends".split()
)

CONTROL_FLOW = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.IfExp, ast.BoolOp),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
FORMAT_MACHINERY = {
    "formats/__init__.py",
    "formats/body_kinds.py",
    "formats/spec.py",
    "formats/toml.py",
    "formats/toml_rules.py",
}
FORMAT_MACHINERY |= {"formats/toml_text.py", "formats/special_tokens.py", "formats/registered.py", "formats/builtin.py"}
FORMAT_LINES = 60
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


class Use(NamedTuple):
    """One use of a module or of a name in it, by its full dotted name: "rightcall.parsing.engine", "os.open"."""

    name: str
    line: int
    how: Literal["import", "mention"]
    when: Literal["load", "call", "never"]  # never: under TYPE_CHECKING


class UseCollector(ast.NodeVisitor):
    """Collects the uses of one file; relative imports are made absolute and aliases are undone."""

    def __init__(self, path: str) -> None:
        self.package = ["rightcall", *PurePosixPath(path).parts[:-1]]
        self.uses: list[Use] = []
        self.aliases: dict[str, str] = {}
        self.when: Literal["load", "call", "never"] = "load"

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(node, alias.name, "import")
            if alias.asname:
                self.aliases[alias.asname] = alias.name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.package[: len(self.package) - node.level + 1] if node.level else []
        for alias in node.names:
            name = ".".join([*base, *filter(None, [node.module]), alias.name])
            self.add(node, name, "import")
            self.aliases[alias.asname or alias.name] = name

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                self.add(node, name, "import")
            case ast.Call(func=ast.Name(id=name)):
                self.add(node, self.aliases.get(name, name), "mention")
            case ast.Call(func=ast.Attribute(attr=name)) if name in FILE_METHODS:
                self.add(node, f"pathlib.Path.{name}", "mention")
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        first, _, rest = ast.unparse(node).partition(".")
        self.add(node, f"{self.aliases.get(first, first)}.{rest}", "mention")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            self.visit_all(node.body, when="never")
            self.visit_all(node.orelse, when=self.when)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_all([*node.decorator_list, node.args], when=self.when)
        self.visit_all(node.body, when="call")

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_all(self, nodes: Iterable[ast.AST], *, when: Literal["load", "call", "never"]) -> None:
        before, self.when = self.when, when
        for node in nodes:
            self.visit(node)
        self.when = before

    def add(self, node: ast.stmt | ast.expr, name: str, how: Literal["import", "mention"]) -> None:
        self.uses.append(Use(name, node.lineno, how, self.when))


@cache  # every rule needs the uses of every file
def uses(path: str, source: str) -> list[Use]:
    reader = UseCollector(path)
    reader.visit(ast.parse(source))
    return reader.uses


def layer_of(path: str) -> str:
    if path == "__main__.py":
        return "cli"
    return layer_named(path.removesuffix(".py").removesuffix("/__init__"))


def layer_named(path: str) -> str:
    """Return the longest entry of ORDER that is a prefix of the path; a subpackage can be a separate layer."""
    parts = path.split("/")
    found = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((each for each in found if each in ORDER), parts[0])


def is_any_of(name: str, modules: set[str]) -> bool:
    return any(name == module or name.startswith(module + ".") for module in modules)


# The rules. Each takes a path below src/rightcall and the text of that file, and yields the violations.

Rule = Callable[[str, str], Iterator[str]]


def later_layer_imports(path: str, source: str) -> Iterator[str]:
    layer = layer_of(path)
    if layer == "__init__":  # the package itself re-exports from everywhere
        return
    for use in uses(path, source):
        root, _, rest = use.name.partition(".")
        if root != "rightcall" or use.how != "import" or rest == "__version__":
            continue
        target = layer_named(rest.replace(".", "/"))
        if (path, target) in EXCEPTIONS:
            continue
        if target not in ORDER:
            if layer != "cli":
                yield f"{path}:{use.line} imports {use.name}: name the layer that has it, not the package"
        elif ORDER.index(target) > ORDER.index(layer):
            yield f"{path}:{use.line} imports {use.name}, and {target} comes after {layer}"


def connection_use(path: str, source: str) -> Iterator[str]:
    yield from only_in(MAY_CONNECT, CONNECTION_APIS, path, source)


def server_use(path: str, source: str) -> Iterator[str]:
    yield from only_in(MAY_LISTEN, SERVER_APIS, path, source)


def port_use(path: str, source: str) -> Iterator[str]:
    """Only code behind the request gate opens a port."""
    yield from only_in(MAY_BIND, PORT_APIS, path, source)


def file_access(path: str, source: str) -> Iterator[str]:
    yield from only_in(MAY_USE_FILES, FILE_APIS, path, source)


def file_writing(path: str, source: str) -> Iterator[str]:
    """Only `storage` opens files for writing."""
    yield from only_in(MAY_WRITE, WRITE_APIS, path, source)
    if not MAY_WRITE.isdisjoint({path, layer_of(path)}) or "open(" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and any(set(mode) & set("wax+") for mode in open_modes(node)):
            yield f"{path}:{node.lineno} opens a file to write to it; storage/ does that"


def open_modes(call: ast.Call) -> Iterator[str]:
    """Yield the mode arguments of a call that opens a file."""
    name = ast.unparse(call.func)
    if name.rpartition(".")[2] in ("open", "fdopen"):
        given = call.args[name in ("open", "io.open", "os.fdopen") :]
        for each in (*given, *[word.value for word in call.keywords]):
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and set(each.value) <= set("rwaxbt+"):
                yield each.value


def process_use(path: str, source: str) -> Iterator[str]:
    yield from only_in(MAY_START_PROCESSES, PROCESS_APIS, path, source)


def only_in(owners: set[str], modules: set[str], path: str, source: str) -> Iterator[str]:
    if owners.isdisjoint({path, layer_of(path)}):
        for use in uses(path, source):
            if (
                use.when != "never"
                and is_any_of(use.name, modules)
                and not (modules is CONNECTION_APIS and is_server_part(use))
            ):
                yield f"{path}:{use.line} uses {use.name}; only {', '.join(sorted(owners))} may"


def is_server_part(use: Use) -> bool:
    """Return whether this is the server half of a library that has both halves."""
    return is_any_of(use.name, {"aiohttp.web"})


def heavy_imports(path: str, source: str) -> Iterator[str]:
    if layer_of(path) != "cli":
        for use in uses(path, source):
            if use.how == "import" and use.when == "load" and is_any_of(use.name, HEAVY):
                yield f"{path}:{use.line} imports {use.name} on load; import it where it is first used"


def format_files(path: str, source: str) -> Iterator[str]:
    if layer_of(path) != "formats" or path in FORMAT_MACHINERY:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, CONTROL_FLOW):
            yield f"{path}:{getattr(node, 'lineno', '?')} has {type(node).__name__}; a format is data"
    if (lines := len(source.splitlines())) > FORMAT_LINES:
        yield f"{path} has {lines} lines; a format file has at most {FORMAT_LINES}"


def vague_names(path: str, source: str) -> Iterator[str]:
    for part in PurePosixPath(path).parts:
        if part.removesuffix(".py").strip("_") in VAGUE_NAMES:
            yield f"{path}: {part} says nothing; name it for what it holds"


RULES: tuple[Rule, ...] = (
    *(later_layer_imports, connection_use, server_use, port_use, file_access, file_writing, process_use),
    *(heavy_imports, format_files, vague_names),
)


def violations(rule: Rule) -> list[str]:
    return [line for path, source in SOURCES.items() for line in rule(path, source)]


def test_the_core_layers_exist() -> None:
    assert {"types", "formats", "constrain", "parsing"} <= {layer_of(path) for path in SOURCES}
    assert [path for path in SOURCES if layer_of(path) == "formats" and path not in FORMAT_MACHINERY]


def test_every_module_belongs_to_a_layer() -> None:
    assert {layer_of(path) for path in SOURCES} - {"__init__"} <= set(ORDER)


def test_no_module_imports_a_later_layer() -> None:
    assert violations(later_layer_imports) == []


def test_every_exception_to_the_order_is_still_needed() -> None:
    imported = {
        (path, layer_named(use.name.removeprefix("rightcall.").replace(".", "/")))
        for path, source in SOURCES.items()
        for use in uses(path, source)
        if use.how == "import" and use.name.startswith("rightcall.")
    }
    assert set(EXCEPTIONS) <= imported


def test_only_backend_and_mcp_open_connections() -> None:
    assert violations(connection_use) == []


def test_only_servers_listen() -> None:
    assert violations(server_use) == []


def test_only_servers_with_the_request_gate_open_a_port() -> None:
    assert violations(port_use) == []


def test_only_the_layers_that_own_files_use_files() -> None:
    assert violations(file_access) == []


def test_files_are_written_in_one_place() -> None:
    assert violations(file_writing) == []


def test_only_the_listed_files_and_layers_start_processes() -> None:
    assert violations(process_use) == []


def test_heavy_modules_are_imported_on_first_use() -> None:
    assert violations(heavy_imports) == []


def test_format_files_are_short_and_have_no_control_flow() -> None:
    assert violations(format_files) == []


def test_no_module_has_a_vague_name() -> None:
    assert violations(vague_names) == []


BROKEN = [
    (later_layer_imports, "parsing/engine.py", "from rightcall.cli import main"),
    (later_layer_imports, "parsing/engine.py", "from ..serve.proxy import app"),
    (later_layer_imports, "parsing/engine.py", "from .. import cli"),
    (later_layer_imports, "parsing/engine.py", "from rightcall import Tool"),
    (later_layer_imports, "parsing/engine.py", "import rightcall"),
    (later_layer_imports, "errors.py", "from . import types"),
    (later_layer_imports, "types.py", "def f():\n    import rightcall.parsing.engine"),
    (later_layer_imports, "types.py", "if TYPE_CHECKING:\n    from rightcall.dispatching import Toolset"),
    (later_layer_imports, "formats/__init__.py", "import importlib\nimportlib.import_module('rightcall.parsing')"),
    (connection_use, "parsing/engine.py", "import socket"),
    (connection_use, "serve/proxy.py", "from aiohttp import ClientSession"),
    (connection_use, "schema/walk.py", "from urllib import request"),
    (connection_use, "guard/turn.py", "import asyncio as aio\nasync def f():\n    await aio.open_connection('h', 1)"),
    (server_use, "backends/http.py", "import http.server"),
    (server_use, "run.py", "import asyncio\nasyncio.start_server(f)"),
    (port_use, "serve/proxy.py", "from aiohttp import web\nweb.run_app(app)"),
    (port_use, "backends/recording.py", "from aiohttp import web\ndef f():\n    web.TCPSite(runner)"),
    (file_access, "formats/toml.py", "open('x')"),
    (file_access, "formats/toml.py", "path.read_text()"),
    (file_access, "schema/walk.py", "from pathlib import Path"),
    (file_access, "schema/walk.py", "import pathlib\npathlib.Path('x')"),
    (file_access, "run.py", "import os\ndef f():\n    return os.open('x', 0)"),
    (file_access, "run.py", "from os import remove as forget"),
    (file_access, "run.py", "import tempfile"),
    (file_writing, "cli/stats.py", "open('x', 'w')"),
    (file_writing, "cli/stats.py", "path.open(mode='ab')"),
    (file_writing, "capture/resumption.py", "import os\nos.open('x', os.O_RDWR | os.O_CREAT)"),
    (file_writing, "datasets/splitting.py", "from os import replace\nreplace('a', 'b')"),
    (process_use, "formats/templates/template_detection.py", "import subprocess"),
    (process_use, "dispatching/dispatcher.py", "import asyncio\nasyncio.create_subprocess_exec('true')"),
    (process_use, "cli/formats_command.py", "import os\nos.system('true')"),
    (heavy_imports, "tools/model.py", "import pydantic"),
    (
        heavy_imports,
        "tools/checks.py",
        "try:\n    from jsonschema_rs import validator_for\nexcept ImportError:\n    pass",
    ),
    (format_files, "formats/hermes.py", "NAMES = [name for name in 'ab']"),
    (format_files, "formats/hermes.py", "A = 1 if B else 2"),
    (format_files, "formats/hermes.py", "def f(): ..."),
    (format_files, "formats/hermes.py", "\n" * 61),
    (vague_names, "parsing/utils.py", ""),
    (vague_names, "common/text.py", ""),
]

VALID = [
    ("__init__.py", "from rightcall.parsing import parse\nfrom rightcall.types import Call"),
    ("__main__.py", "from rightcall.cli import main"),
    ("cli/parse_command.py", "import typer, pathlib, rightcall\nfrom rightcall import __version__\nopen('x')"),
    ("parsing/engine.py", "from . import markers\nfrom ..types import Call\nfrom rightcall.formats.spec import Format"),
    ("parsing/engine.py", "class Section:\n    def open(self): ...\ndef f(section): section.open()"),
    ("parsing/engine.py", "from pathlib import PurePath\nimport os\nos.environ"),
    ("tools/model.py", "def f():\n    import pydantic"),
    ("tools/model.py", "if TYPE_CHECKING:\n    import pydantic\n    from pathlib import Path"),
    ("backends/http.py", "def f():\n    import aiohttp"),
    ("backends/recording.py", "def f():\n    from aiohttp import web\n    web.Response()\nopen('x')"),
    ("formats/templates/confined.py", "import subprocess"),
    ("dispatching/isolate.py", "import asyncio\nasyncio.create_subprocess_exec('true')"),
    ("formats/hermes.py", "HERMES = Format('hermes', call=('<tool_call>', '</tool_call>'))"),
    ("formats/spec.py", "def f(): ...\n" * 100),
]


@pytest.mark.parametrize("rule, path, source", BROKEN)
def test_each_rule_detects_its_violations(rule: Rule, path: str, source: str) -> None:
    assert list(rule(path, source))


@pytest.mark.parametrize("path, source", VALID)
def test_valid_code_violates_no_rule(path: str, source: str) -> None:
    assert [line for rule in RULES for line in rule(path, source)] == []
