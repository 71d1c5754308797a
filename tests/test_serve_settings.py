"""Settings of the proxy: flags, variables and file keys are equivalent; errors are reported with place and cure."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import formats
from rightcall.errors import CallerError
from rightcall.formats.toml_text import _write_value as toml_value
from rightcall.serve.proxy_settings import SETTINGS, ProxySettings, Setting
from rightcall.serve.settings_source import SettingsSource, source_of
from rightcall.serve.toml_lines import line_of
from rightcall.serve.upstream_routes import routed
from rightcall.serve.upstream_spelling import guessed_api, split_api
from support.command import MINE

URL = "http://127.0.0.1:8080/v1"
WITH = {"upstream": [URL]}


def _sample(setting: Setting) -> object:
    """Return a value that is not the default."""
    found = msgspec.inspect.type_info(setting.type)
    kind = found.type if isinstance(found, msgspec.inspect.Metadata) else found
    match kind:
        case msgspec.inspect.LiteralType():
            return next(each for each in kind.values if each != setting.default)
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.IntType():
            return 12 if setting.name == "max_retries" else 7000
        case msgspec.inspect.FloatType():
            return 0.5
        case msgspec.inspect.VarTupleType():
            return ["http://a.example:1", "http://b.example:2"]
        case _:
            return {"format": "hermes", "host": "::1", "key_env": "MINE"}.get(setting.name, "some.file")


def _source_with_flag(name: str, value: object) -> SettingsSource:
    as_text = value if isinstance(value, list) else True if value is True else str(value)
    return SettingsSource(flags={**WITH, name: as_text}, environ={"MINE": "abcdefgh1"})


@pytest.mark.parametrize(
    "name", [name for name in SETTINGS if name != "format_file"]
)  # This setting names a file that is read: see below.
def test_flag_variable_and_toml_key_of_a_setting_are_equivalent(name: str, tmp_path: Path) -> None:
    setting, value = SETTINGS[name], _sample(SETTINGS[name])
    as_text = " ".join(value) if isinstance(value, list) else str(value)
    file = tmp_path / "some.toml"
    base = "" if name == "upstream" else f'upstream = "{URL}"\n'
    file.write_text(f"{base}{name} = {toml_value(value)}\n")
    keys = {"MINE": "abcdefgh1"}
    by_flag = _source_with_flag(name, value).read()
    by_variable = SettingsSource(
        flags={} if name == "upstream" else WITH, environ={**keys, setting.variable: as_text}
    ).read()
    by_file = SettingsSource(environ=keys, config=str(file)).read()
    assert repr(by_flag) == repr(by_variable) == repr(by_file)
    assert getattr(by_flag, name) != setting.default


def test_every_field_except_tables_and_key_is_a_setting() -> None:
    assert set(ProxySettings.__struct_fields__) - set(SETTINGS) == {"models", "key"}
    assert all(each.help.endswith(".") and each.group for each in SETTINGS.values())


def test_flags_override_the_environment_and_the_environment_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(f'upstream = "{URL}"\nport = 1\nmax_retries = 1\nhost = "localhost"')
    environ = {"RIGHTCALL_SERVE_PORT": "2", "RIGHTCALL_SERVE_MAX_RETRIES": "2", "RIGHTCALL_SERVE_CONFIG": str(file)}
    found = source_of({"port": "3", "mode": None, "trace": False}, environ=environ).read()
    assert (found.port, found.max_retries, found.host) == (3, 2, "localhost")


WHOLE = """
port = 9000
give_up = "error"

[[upstream]]
url = "http://127.0.0.1:8080/v1"
name = "small"
models = ["qwen*", "llama-3"]

[[upstream]]
url = "https://api.anthropic.com"
name = "large"
api_key_env = "MY_KEY"

[models."qwen*"]
mode = "text"
format = "hermes"
repair = "lenient"
upstream = ["small", "large"]
alias = "qwen3-8b"
"""


def test_a_settings_file_defines_upstreams_and_models(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(WHOLE)
    found = SettingsSource(config=str(file), environ={"MY_KEY": "sk-secret-1"}).read()
    small, large = found.upstream
    assert (small.api, small.models, large.api) == ("chat", ("qwen*", "llama-3"), "messages")
    assert large.key is not None and large.key.reveal() == "sk-secret-1" and "sk-secret-1" not in repr(found)
    assert found.models["qwen*"].mode == "text" and found.models["qwen*"].upstream == ("small", "large")


WRONG = {
    "prot = 1": "a.toml:1: prot: there is no such setting; did you mean port?",
    '\nmode = "nativ"': "a.toml:2: mode: 'nativ' is none of native, text, grammar, auto; did you mean native?",
    "port = 99999": "a.toml:1: port: '99999' does not do: expected int <= 65535",
    'port = "8787"': "a.toml:1: port: '8787' does not do: expected int, got str",
    '[models."q*"]\n\nmoed = "text"': "a.toml:3: models.q*.moed: there is no such setting; did you mean mode?",
    '[models."q*"]\nupstream = "nowhere"': "models.q*: there is no upstream 'nowhere'",
    '[[upstream]]\nurl = "http://a"\n[[upstream]]\nurl = "http://b"\nnmae = "x"': "a.toml:5: upstream.nmae",
    '[[upstream]]\nname = "x"': 'a.toml:1: upstream: it has no url; write url = "http://127.0.0.1:8080/v1"',
    '[[upstream]]\nurl = "http://a"\nkey = "sk-1"': "a.toml:3: upstream.key: there is no such setting",
    '[[upstream]]\nurl = "http://a"\napi = "chatt"': "a.toml:3: upstream.api: no api 'chatt' (did you mean 'chat'?)",
    '[[upstream]]\nurl = "http://a"\nheaders = {Authorization = "x"}': "the header Authorization holds a secret",
    '[[upstream]]\nurl = "http://u:p@a"': "holds credentials",
    '[[upstream]]\nurl = "http://a"\nname = "x"\n[[upstream]]\nurl = "http://b"\nname = "x"': "two upstreams are named",
    '[[upstream]]\nurl = "http://a"\napi_key_env = "NOT_SET"': "the environment has no NOT_SET",
    '[[upstream]]\nurl = "http://a"\nprofile = "vlm"': "no profile 'vlm'",
    "upstream = 5": "a.toml:1: upstream: it is no address",
    'format = "herms"': "format: no format 'herms'",
    "models = 5": "a.toml:1: models: it is no table",
    "port = ": "a.toml is no valid TOML",
    'upstream = "ftp://a"': "a.toml:1: upstream: 'ftp://a' is no address",
    'upstream = "http://127.0.0.1:8787"': "is this proxy itself",
    'host = "0.0.0.0"': "lets other machines in",
    'key_env = "NOT_SET"': "the environment variable NOT_SET is not set",
}


@pytest.mark.parametrize("text", [*WRONG])
def test_an_error_in_a_settings_file_is_reported_with_its_place(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    flags = {} if text.startswith(("[[upstream]]", "upstream")) else WITH
    with pytest.raises(CallerError) as raised:
        SettingsSource(flags=flags, config=str(file)).read()
    assert WRONG[text] in str(raised.value)


WRONG_VARIABLES = {
    ("RIGHTCALL_SERVE_PORTT", "1"): "there is no setting RIGHTCALL_SERVE_PORTT; did you mean RIGHTCALL_SERVE_PORT?",
    ("RIGHTCALL_SERVE_PORT", "many"): "RIGHTCALL_SERVE_PORT: 'many' does not do",
    ("RIGHTCALL_SERVE_GUARD", "al"): "RIGHTCALL_SERVE_GUARD: 'al' is none of none, parse, full",
    ("RIGHTCALL_SERVE_TRACE", "perhaps"): "RIGHTCALL_SERVE_TRACE: 'perhaps' does not do",
    ("RIGHTCALL_SERVE_ALLOW_ORIGIN", "*"): "is not an origin",
}


@pytest.mark.parametrize("variable", [*WRONG_VARIABLES])
def test_an_error_in_the_environment_is_reported_with_the_variable(variable: tuple[str, str]) -> None:
    with pytest.raises(CallerError) as raised:
        SettingsSource(flags=WITH, environ=dict([variable])).read()
    assert WRONG_VARIABLES[variable] in str(raised.value)


def test_a_key_can_be_in_a_variable_that_looks_like_a_setting() -> None:
    environ = {"RIGHTCALL_SERVE_KEY": "abcdefgh1"}
    found = SettingsSource(flags={**WITH, "key_env": "RIGHTCALL_SERVE_KEY"}, environ=environ).read()
    assert found.key is not None and found.gate().key is found.key


def test_a_proxy_without_upstreams_is_an_error_that_names_the_option() -> None:
    with pytest.raises(CallerError, match="--upstream"):
        SettingsSource().read()


def test_other_machines_are_admitted_with_a_key_or_by_an_explicit_setting() -> None:
    settings = SettingsSource(flags={**WITH, "host": "0.0.0.0", "no_key": True}).read()
    assert settings.gate().key is None
    keyed = SettingsSource(flags={**WITH, "host": "0.0.0.0", "key_env": "K"}, environ={"K": "abcdefgh1"}).read()
    assert keyed.gate().key is keyed.key
    with pytest.raises(CallerError, match="exclude each other"):
        SettingsSource(flags={**WITH, "no_key": True, "key_env": "K"}, environ={"K": "abcdefgh1"}).read()


GUESSED = {
    "http://localhost:8080/v1": "chat",
    "http://localhost:8080": "chat",
    "http://localhost:11434": "ollama",
    "http://localhost:11434/v1": "chat",
    "http://localhost:8000/v1/chat/completions": "chat",
    "http://localhost:8000/v1/completions": "completions",
    "http://localhost:8000/v1/responses": "responses",
    "http://localhost:8000/v1/messages/": "messages",
    "http://localhost:8000/api/chat": "ollama",
    "https://api.anthropic.com": "messages",
    "https://generativelanguage.googleapis.com/v1beta": "gemini",
    "https://generativelanguage.googleapis.com": "gemini",
    "https://api.openai.com/v1": "chat",
}


@pytest.mark.parametrize("url", [*GUESSED])
def test_the_dialect_of_an_upstream_is_guessed_from_its_address(url: str) -> None:
    assert guessed_api(url) == GUESSED[url]
    assert SettingsSource(flags={"upstream": [url]}).read().upstream[0].api == GUESSED[url]


def test_the_dialect_of_an_upstream_can_be_set() -> None:
    assert split_api("anthropic=http://a:1") == ("messages", "http://a:1")
    assert split_api("http://a:1/x=y") == ("", "http://a:1/x=y")
    with pytest.raises(CallerError, match="no api 'mesages'"):
        SettingsSource(flags={"upstream": ["mesages=http://a"]}).read()


def test_upstreams_with_the_same_address_get_different_names() -> None:
    found = SettingsSource(flags={"upstream": [URL, f"messages={URL}"]}).read()
    assert [each.name for each in found.upstream] == ["127.0.0.1:8080", "127.0.0.1:8080-2"]


def test_keys_of_the_environment_are_not_sent_over_unencrypted_http() -> None:
    environ = {"OPENAI_API_KEY": "sk-secret-1", "GEMINI_API_KEY": "g-secret-1"}
    near = SettingsSource(flags={"upstream": ["https://a.example", "gemini=https://b.example"]}, environ=environ).read()
    assert [each.key.reveal() for each in near.upstream if each.key] == ["sk-secret-1", "g-secret-1"]
    far = SettingsSource(flags={"upstream": ["http://a.example", "gemini=http://b.example"]}, environ=environ).read()
    assert [each.key for each in far.upstream] == [None, None]


@given(st.text(max_size=200))
def test_an_arbitrary_settings_file_is_valid_or_one_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "anything.toml"
    file.write_text(text, "utf-8", "surrogatepass")
    message = ""
    try:
        SettingsSource(flags=WITH, config=str(file)).read()
    except CallerError as error:
        message = str(error)
    assert not message or str(file) in message


def test_the_line_of_a_key_is_found_in_every_kind_of_table() -> None:
    text = 'a = 1\n[b]\n"c d" = 2\n[[e]]\nf = 1\n[[e]]\nf = 2\n[g."h*"]\ni.j = 3\n'
    places = {("a",): 1, ("b", "c d"): 3, ("e", 0, "f"): 5, ("e", 1, "f"): 7, ("g", "h*", "i", "j"): 9, ("x",): 0}
    assert {place: line_of(text, place) for place in places} == places


def test_the_documented_settings_file_is_valid(tmp_path: Path) -> None:
    document = (Path(__file__).parent.parent / "docs" / "proxy.md").read_text("utf-8")
    file = tmp_path / "serve.toml"
    file.write_text(document.partition("<!-- file: serve.toml -->\n```toml\n")[2].partition("```")[0])
    settings = SettingsSource(config=str(file), environ={"ANTHROPIC_API_KEY": "sk-ant-1234"}).read()
    haiku, opus = routed(settings, "claude-haiku-5"), routed(settings, "claude-opus-5")
    assert (haiku.model, haiku.upstreams[0].name, haiku.settings.mode) == ("qwen3-8b", "small", "text")
    assert [each.name for each in opus.upstreams] == ["large"]


def test_a_format_file_registers_a_custom_format(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(MINE, "utf-8")
    environ = {"RIGHTCALL_SERVE_UPSTREAM": "http://127.0.0.1:1", "RIGHTCALL_SERVE_FORMAT_FILE": str(own)}
    try:
        settings = SettingsSource(flags={}, environ=environ).read()
        assert settings.format == "mine"
    finally:
        formats.unregister("mine")
    with pytest.raises(CallerError, match="format_file"):
        SettingsSource(flags={}, environ={**environ, "RIGHTCALL_SERVE_FORMAT_FILE": str(tmp_path / "none")}).read()
