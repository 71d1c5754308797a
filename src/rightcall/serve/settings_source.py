"""Where settings come from: a TOML file, the environment, flags; each wins over the one before it.

    source = SettingsSource(flags={"port": "9000"}, environ=os.environ, config="rightcall.toml")
    settings = source.read()       # again at any time: the file is read anew

Whatever cannot be used is a `CallerError` that names where it stands, what is wrong and what to write instead.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from rightcall.api_names import APIS, api_name
from rightcall.backends.address import API_DEFAULTS, find_key, is_private_connection
from rightcall.backends.profiles import find_profile
from rightcall.errors import BadFormat, CallerError
from rightcall.formats import find
from rightcall.formats.registered import register
from rightcall.formats.spec import Format
from rightcall.redaction.key import Key
from rightcall.request_gate import given_key, is_loopback
from rightcall.serve.proxy_settings import (
    PREFIX,
    SETTINGS,
    ModelSettings,
    ProxySettings,
    Setting,
    UpstreamSettings,
    words_of,
)
from rightcall.serve.toml_lines import line_of
from rightcall.serve.upstream_spelling import check_url, guessed_api, split_api, usual_name

LONGEST = 1_000_000  # bytes of a file
_MOST_DOTS = 64  # in one line: the standard parser takes quadratic time on a key of thousands of dotted parts
CONFIG_VARIABLE = PREFIX + "CONFIG"
_APART = re.compile(r"[,\s]+")
_GEMINI_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_SECRET_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization")


class SettingsSource(msgspec.Struct, frozen=True, kw_only=True):
    """What was said when the proxy was started. `flags` are by the names of the settings, as text, a list of texts for
    what can be given several times, or True; `config` is the path of a TOML file or empty."""

    flags: Mapping[str, Any] = {}
    environ: Mapping[str, str] = {}
    config: str = ""

    def read(self) -> ProxySettings:
        """The settings as they are now. Raises `CallerError`."""
        found = _from_file(self.config) if self.config else {}
        found |= _from_environ(self.environ)
        found |= {name: _read(SETTINGS[name], value, SETTINGS[name].flag) for name, value in self.flags.items()}
        settings = ProxySettings(**found)
        _check_variables(settings, self.environ)
        return _finished(settings, self.environ)


# -- the three places --------------------------------------------------------------------------------------------------


def _from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {each.variable: each for each in SETTINGS.values()}
    return {known[name].name: _read(known[name], value, name) for name, value in environ.items() if name in known}


def _check_variables(settings: ProxySettings, environ: Mapping[str, str]) -> None:
    """A variable that looks like a setting is one, or holds a key that a setting names."""
    known = [CONFIG_VARIABLE, *[each.variable for each in SETTINGS.values()]]
    keys = [settings.key_env, *[each.api_key_env for each in settings.upstream]]
    for name in environ:
        if name.startswith(PREFIX) and name not in known and name not in keys:
            raise CallerError(f"there is no setting {name}{_nearest(name, known)}")


def _read(setting: Setting, given: Any, where: str) -> Any:
    """A value that was given as text."""
    if setting.name == "upstream":
        texts = [each for each in _APART.split(given) if each] if isinstance(given, str) else given
        return tuple([_upstream(each, where) for each in texts])
    if isinstance(setting.default, tuple) and isinstance(given, str):
        given = [each for each in _APART.split(given) if each]
    return _converted(given, setting.type, where, strict=False)


def _from_file(path: str) -> dict[str, Any]:
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise CallerError(f"{path}: it is nested too deeply; write plain tables") from None
    except ValueError as error:  # bad TOML, or a number too long to be read
        raise CallerError(f"{path} is no valid TOML: {str(error)[:200]}") from None
    return _TomlFile(path, text).settings(data)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(LONGEST + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CallerError(f"cannot read {path!r}: {reason}; name the settings' file with --config") from None
    if len(data) > LONGEST:
        raise CallerError(f"{path} is larger than {LONGEST:,} bytes; settings take a few lines")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_DOTS and not line.lstrip().startswith(("#", '"', "'")):
            raise CallerError(f"{path}:{number} has more than {_MOST_DOTS} dots; write tables instead of dotted keys")
    return text


class _TomlFile:
    """One file: its keys are the settings' names, and what is wrong is told with its line."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text

    def _at(self, *keys: str | int) -> str:
        line = line_of(self._text, keys)
        named = ".".join([str(each) for each in keys if isinstance(each, str)])
        return f"{self._path}:{line}: {named}" if line else f"{self._path}: {named}"

    def settings(self, data: dict[str, Any]) -> dict[str, Any]:
        self._only(data, [*SETTINGS, "models"])
        found: dict[str, Any] = {}
        for name, value in data.items():
            if name == "models":
                found[name] = self._models(value)
            elif name == "upstream":
                found[name] = self._upstreams(value)
            else:
                found[name] = _converted(value, SETTINGS[name].type, self._at(name))
        return found

    def _only(self, table: dict[str, Any], known: Iterable[str], *within: str | int) -> None:
        for key in table:
            if key not in known:
                raise CallerError(f"{self._at(*within, key)}: there is no such setting{_nearest(key, known)}")

    def _models(self, tables: Any) -> dict[str, ModelSettings]:
        if not isinstance(tables, dict):
            raise CallerError(f'{self._at("models")}: it is no table; write [models."qwen*"] above its settings')
        return {glob: self._model(glob, table) for glob, table in tables.items()}

    def _model(self, glob: str, table: Any) -> ModelSettings:
        if not isinstance(table, dict):
            raise CallerError(
                f'{self._at("models", glob)}: it is no table; write [models."{glob[:40]}"] above settings'
            )
        self._only(table, ModelSettings.__struct_fields__, "models", glob)
        named = table.get("upstream")
        table = {**table, "upstream": [named]} if isinstance(named, str) else table
        types = {field.name: field.type for field in msgspec.structs.fields(ModelSettings)}
        found = {key: _converted(value, types[key], self._at("models", glob, key)) for key, value in table.items()}
        return ModelSettings(**found)

    def _upstreams(self, given: Any) -> tuple[UpstreamSettings, ...]:
        listed = given if isinstance(given, list) else [given]
        return tuple([self._upstream(each, at) for at, each in enumerate(listed)])

    def _upstream(self, given: Any, at: int) -> UpstreamSettings:
        if isinstance(given, str):
            return _upstream(given, self._at("upstream"))
        if not isinstance(given, dict):
            raise CallerError(f'{self._at("upstream")}: it is no address; write upstream = "http://127.0.0.1:8080/v1"')
        known = [name for name in UpstreamSettings.__struct_fields__ if name != "key"]
        self._only(given, known, "upstream", at)
        types = {field.name: field.type for field in msgspec.structs.fields(UpstreamSettings)}
        if isinstance(given.get("api"), str):
            given = {**given, "api": self._api(given["api"], at)}
        if isinstance(given.get("models"), str):
            given = {**given, "models": [given["models"]]}
        found = {key: _converted(value, types[key], self._at("upstream", at, key)) for key, value in given.items()}
        if "url" not in found:
            raise CallerError(f'{self._at("upstream", at)}: it has no url; write url = "http://127.0.0.1:8080/v1"')
        return _whole_upstream(found, self._at("upstream", at, "url"))

    def _api(self, word: str, at: int) -> str:
        try:
            return api_name(word, APIS)
        except CallerError as error:
            raise CallerError(f"{self._at('upstream', at, 'api')}: {error}") from None


def _upstream(text: str, where: str) -> UpstreamSettings:
    try:
        api, url = split_api(text)
    except CallerError as error:
        raise CallerError(f"{where}: {error}") from None
    return _whole_upstream({"url": url, **({"api": api} if api else {})}, where)


def _whole_upstream(found: dict[str, Any], where: str) -> UpstreamSettings:
    url = found["url"]
    try:
        check_url(url)
        if found.get("proxy"):
            check_url(found["proxy"])
        if found.get("profile"):
            find_profile(found["profile"])
    except CallerError as error:
        raise CallerError(f"{where}: {error}") from None
    secret = next((name for name in found.get("headers", {}) if name.lower() in _SECRET_HEADERS), None)
    if secret is not None:
        raise CallerError(f"{where}: the header {secret} holds a secret; set a variable and name it as api_key_env")
    return UpstreamSettings(**{"api": guessed_api(url), "name": usual_name(url), **found})


def _converted(value: Any, type: Any, where: str, *, strict: bool = True) -> Any:
    try:
        return msgspec.convert(value, type, strict=strict)
    except msgspec.ValidationError as error:
        what = str(error).partition(" - at ")[0]
        _refuse(value, type, where, what[:1].lower() + what[1:])


def _refuse(value: Any, type: Any, where: str, what: str) -> NoReturn:
    if words := words_of(type):
        raise CallerError(f"{where}: {str(value)[:80]!r} is none of {', '.join(words)}{_nearest(str(value), words)}")
    raise CallerError(f"{where}: {str(value)[:80]!r} does not do: {what.replace('`', '')}")


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word[:100], list(known), 1, 0.6)
    return f"; did you mean {near[0]}?" if near else "; `rightcall serve --help` lists what there is"


# -- all of it together ------------------------------------------------------------------------------------------------


def _finished(settings: ProxySettings, environ: Mapping[str, str]) -> ProxySettings:
    """With names that differ, and with keys."""
    if not settings.upstream:
        raise CallerError("no server to stand before; say where it is: --upstream http://127.0.0.1:8080/v1")
    ups = _named_apart([_with_key(each, settings, environ) for each in settings.upstream])
    settings = msgspec.structs.replace(
        settings, upstream=ups, key=_own_key(settings, environ), format=_own_format(settings)
    )
    _check_formats(settings)
    _check_routes(settings)
    _check_loop(settings)
    settings.gate()
    return settings


def _with_key(upstream: UpstreamSettings, settings: ProxySettings, environ: Mapping[str, str]) -> UpstreamSettings:
    found = upstream_key(upstream, environ)
    return msgspec.structs.replace(upstream, key=found, ca=upstream.ca or settings.ca)


def upstream_key(upstream: UpstreamSettings, environ: Mapping[str, str]) -> Key | None:
    """The key to send to this upstream, or None. Raises `CallerError` for a variable that is not set."""
    if upstream.api in API_DEFAULTS or upstream.api_key_env:
        return find_key(upstream.api, upstream.api_key_env or None, upstream.url, environ)
    name = next((name for name in _GEMINI_KEYS if environ.get(name, "").strip()), None)
    return find_key(upstream.api, name, upstream.url, environ) if name and is_private_connection(upstream.url) else None


def _own_key(settings: ProxySettings, environ: Mapping[str, str]) -> Key | None:
    name = settings.key_env
    if settings.no_key and name:
        raise CallerError("no_key and key_env exclude each other; give one of them")
    if not name:
        if not settings.no_key and not is_loopback(settings.host):
            cure = "name a variable that holds a key (--key-env), or let everybody in (--no-key)"
            raise CallerError(f"serving on {settings.host!r} lets other machines in; {cure}")
        return None
    text = environ.get(name, "").strip()
    if not text:
        raise CallerError(f"the environment variable {name} is not set; it must hold the key to ask for")
    return Key(given_key(text).reveal(), name)


def _named_apart(upstreams: list[UpstreamSettings]) -> tuple[UpstreamSettings, ...]:
    taken: dict[str, int] = {}
    found = []
    for each in upstreams:
        many = taken[each.name] = taken.get(each.name, 0) + 1
        if many > 1 and each.name != usual_name(each.url):
            raise CallerError(f"two upstreams are named {each.name!r}; give each a name of its own")
        found.append(each if many == 1 else msgspec.structs.replace(each, name=f"{each.name}-{many}"))
    return tuple(found)


def _own_format(settings: ProxySettings) -> str:
    """The name of the format: that of the file's, if there is one, which is known from then on."""
    if not settings.format_file:
        return settings.format
    try:
        own = Format.from_toml(Path(settings.format_file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"format_file: cannot read {settings.format_file!r:.200}: {error}") from None
    except BadFormat as error:
        raise CallerError(f"format_file {settings.format_file!r:.200}: {error}") from None
    if settings.format not in ("auto", own.name):
        raise CallerError("format and format_file both say what the format is; give one of them")
    register(own)
    return own.name


def _check_formats(settings: ProxySettings) -> None:
    formats = {"format": settings.format}
    formats |= {f"models.{glob}.format": each.format for glob, each in settings.models.items() if each.format}
    for where, name in formats.items():
        if name != "auto":
            try:
                find(name)
            except CallerError as error:
                raise CallerError(f"{where}: {error}") from None


def _check_routes(settings: ProxySettings) -> None:
    names = [each.name for each in settings.upstream]
    for glob, model in settings.models.items():
        unknown = next((name for name in model.upstream if name not in names), None)
        if unknown is not None:
            raise CallerError(f"models.{glob}: there is no upstream {unknown!r}; there are {', '.join(names)}")


def _check_loop(settings: ProxySettings) -> None:
    from urllib.parse import urlsplit

    for each in settings.upstream:
        parts = urlsplit(each.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if port == settings.port and is_loopback(parts.hostname or ""):
            raise CallerError(
                f"the upstream {each.url} is this proxy itself; name the model's server, or another --port"
            )


# What the door of a proxy is made of: it stays as it was built.
_FIXED = (
    *("host", "port", "key_env", "no_key", "allow_origin", "allow_host", "stop_seconds"),
    *("body_bytes", "header_count", "header_bytes", "head_seconds", "body_seconds", "concurrency"),
)


def changed_at_start_only(before: ProxySettings, after: ProxySettings) -> list[str]:
    """The settings that differ and that a running proxy cannot take up."""
    return [name for name in _FIXED if getattr(before, name) != getattr(after, name)]


def source_of(flags: Mapping[str, Any], config: str = "", environ: Mapping[str, str] | None = None) -> SettingsSource:
    """The source for these flags, without those that were not given, in this process's environment."""
    environ = os.environ if environ is None else environ
    given = {name: value for name, value in flags.items() if value is not None and value is not False and value != []}
    return SettingsSource(flags=given, environ=environ, config=config or environ.get(CONFIG_VARIABLE, ""))
