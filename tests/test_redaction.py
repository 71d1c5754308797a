"""One set of rules for secrets: what is removed, what is kept, and the encodings in which a secret can hide."""

import base64
import json
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.backends.cassette import scrub_response
from rightcall.redaction.pieces import scrub_pieces
from rightcall.redaction.scrubber import KEY, Scrubber
from rightcall.redaction.secret_names import is_secret_name
from support.format_sample import selected

SCRUBBER = Scrubber()
HEX = "0123456789abcdef"
MIXED = "aZ3kQ9xW7vB2nM5pL8rT4yU6"  # 24 letters and digits, as in real keys

# kind: (the whole text, the part that must not be found afterwards)
SECRETS: dict[str, tuple[str, str]] = {
    "openai": (f"sk-{MIXED}{MIXED}", MIXED),
    "openai project": (f"sk-proj-{MIXED}-{MIXED}_x", MIXED),
    "openai letters only": ("sk-abcdefghijklmnopqrstuvwx", "abcdefghijkl"),
    "anthropic": (f"sk-ant-api03-{MIXED}-{MIXED}-AA", MIXED),
    "openrouter": (f"sk-or-v1-{HEX * 4}", HEX),
    "github classic": (f"ghp_{MIXED}{MIXED[:12]}", MIXED),
    "github app": (f"ghs_{MIXED}{MIXED[:12]}", MIXED),
    "github fine-grained": (f"github_pat_11ABCDEFG0{MIXED}_{MIXED}", MIXED),
    "gitlab": (f"glpat-{MIXED[:20]}", MIXED[:20]),
    "slack bot": (f"xoxb-123456789012-{MIXED}", MIXED),
    "slack user": (f"xoxp-123456789012-{MIXED}", MIXED),
    "slack app": ("xapp-1-A0123456789-abcdef", "A0123456789"),
    "slack webhook": (f"https://hooks.slack.com/services/T0000000/B0000000/{MIXED}", MIXED),
    "stripe": (f"sk_live_{MIXED}", MIXED),
    "rightcall": (f"rck_{MIXED}abcdefgh", MIXED),
    "stripe webhook": (f"whsec_{MIXED}{MIXED}", MIXED),
    "aws access": ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    "aws temporary": ("ASIAABCDEFGHIJKLMNOP", "ABCDEFGHIJKL"),
    "aws secret": ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "bPxRfiCY"),
    "aws session": ("AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJHMEU", "CXVzLWVh"),
    "google api": (f"AIza{MIXED}{MIXED[:11]}", MIXED),
    "google oauth": ("ya29.a0AfH6SMBabcdefghijklmnop", "AfH6SMB"),
    "google refresh": (f"1//0{MIXED}{MIXED}", MIXED),
    "google client": (f"GOCSPX-{MIXED}AbCd", MIXED),
    "google service account": ('{"type": "service_account", "private_key": "MIIEvQIBADANBg"}', "MIIEvQ"),
    "azure storage": ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + "aB3" * 28 + "==;", "aB3aB3"),
    "azure sas": (f"https://x.blob.core.windows.net/c?sv=2024&sig={MIXED}%3D", MIXED),
    "azure client secret": (f"abc8Q~{MIXED}defghij.kl", MIXED),
    "npm": ("npm_" + "aB3" * 12, "aB3aB3"),
    "pypi": (f"pypi-AgEIcHlwaS5vcmc{MIXED}{MIXED}", MIXED),
    "hugging face": (f"hf_{MIXED}abcdefghij", MIXED),
    "groq": ("gsk_" + "a" * 52, "aaaaaaaa"),
    "xai": ("xai-" + "a" * 80, "aaaaaaaa"),
    "replicate": ("r8_" + "a" * 37, "aaaaaaaa"),
    "perplexity": (f"pplx-{MIXED}{MIXED}", MIXED),
    "nvidia": (f"nvapi-{MIXED}_{MIXED}", MIXED),
    "langsmith": (f"lsv2_pt_{HEX}{HEX}_{HEX[:10]}", HEX),
    "tavily": (f"tvly-{MIXED}", MIXED),
    "cohere by name": (f"COHERE_API_KEY={MIXED}", MIXED),
    "mistral by name": (f"mistral_key: {MIXED}", MIXED),
    "digitalocean": (f"dop_v1_{HEX * 4}", HEX),
    "heroku by name": ("HEROKU_API_KEY=01234567-89ab-cdef-0123-456789abcdef", "89ab-cdef"),
    "twilio": (f"SK{HEX * 2}", HEX),
    "sendgrid": (f"SG.{MIXED[:22]}.{MIXED}{MIXED[:19]}", MIXED[:20]),
    "mailgun": (f"key-{HEX * 2}", HEX),
    "telegram": (f"123456789:AA{MIXED}abcdefghi", MIXED),
    "discord bot": (f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{MIXED}abc", MIXED),
    "discord webhook": (f"https://discord.com/api/webhooks/123456789012345678/{MIXED}", MIXED),
    "shopify": (f"shpat_{HEX * 2}", HEX),
    "square": (f"sq0atp-{MIXED[:22]}", MIXED[:22]),
    "databricks": (f"dapi{HEX * 2}", HEX),
    "vault": (f"hvs.{MIXED}{MIXED}", MIXED),
    "linear": (f"lin_api_{MIXED}{MIXED[:16]}", MIXED),
    "notion": (f"ntn_{MIXED}{MIXED}", MIXED),
    "notion, older": (f"secret_{MIXED}{MIXED[:19]}", MIXED),
    "figma": (f"figd_{MIXED}{MIXED[:16]}", MIXED),
    "postman": (f"PMAK-{HEX}01234567-{HEX * 2}01", HEX),
    "new relic": (f"NRAK-{MIXED}ABC", MIXED),
    "datadog by name": (f"DD_APP_KEY={HEX * 2}01234567", HEX),
    "sentry dsn": (f"https://{HEX * 2}@o123.ingest.sentry.io/456", HEX),
    "sentry token": (f"sntryu_{HEX * 4}", HEX),
    "doppler": (f"dp.pt.{MIXED}{MIXED[:19]}", MIXED),
    "grafana": (f"glsa_{MIXED}{MIXED[:8]}_01234567", MIXED),
    "docker": (f"dckr_pat_{MIXED}", MIXED),
    "rubygems": (f"rubygems_{HEX * 3}", HEX),
    "terraform": (f"{MIXED[:14]}.atlasv1.{MIXED}{MIXED}{MIXED[:20]}", MIXED),
    "age": ("AGE-SECRET-KEY-1" + "QPZRY9X8GF" * 6, "QPZRY9X8GF"),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "dozjgNry"),
    "pem": ("-----BEGIN PRIVATE KEY-----MIIEvQIBADANBgkqhkiG-----END PRIVATE KEY-----", "MIIEvQ"),
    "pem rsa": ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/=\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    "pem ec": ("-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----", "MHcCAQ"),
    "openssh": ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----", "b3BlbnNz"),
    "pgp": ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n-----END PGP PRIVATE KEY BLOCK-----", "lQOYBF"),
    "pem encrypted": (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\nMIIEow\n"
        "-----END RSA PRIVATE KEY-----",
        "MIIEow",
    ),
    "pem that is cut off": ("-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG", "MIIEvQ"),
    "bearer": ("Authorization: Bearer abcdef0123456789", "abcdef01"),
    "bearer, small": ("bearer abcdefghijklmnop", "abcdefghijkl"),
    "basic": ("Basic dXNlcjpwYXNzd29yZDEyMzQ1Ng==", "dXNlcjpw"),
    "digest": ('Authorization: Digest username="ann", realm="r", response="6629fae49393a0539"', "6629fae4"),
    "authorization of another kind": ("Authorization: ApiKey opensesame", "opensesame"),
    "cookie": ("Cookie: session=opensesame; theme=dark", "opensesame"),
    "set-cookie": ("set-cookie: sid=opensesame; HttpOnly", "opensesame"),
    "url": ("https://user:hunter2secret@host/x", "hunter2"),
    "url with an at sign": ("https://user:hunter2@secret@host/x", "hunter2"),
    "postgres": ("postgresql://app:hunter2@db:5432/app", "hunter2"),
    "mongodb": ("mongodb+srv://app:hunter2@cluster0.example.net", "hunter2"),
    "redis": ("redis://:hunter2@cache:6379/0", "hunter2"),
    "amqp": ("amqp://guest:hunter2@mq/vhost", "hunter2"),
    "jdbc": ("jdbc:sqlserver://h;user=sa;password=hunter2;", "hunter2"),
    "jdbc oracle": ("jdbc:oracle:thin:scott/hunter2@//db:1521/x", "hunter2"),
    "ado": ("Server=db;User Id=sa;Pwd=hunter2;", "hunter2"),
    "query": ("GET /v1/things?api_key=hunter22&limit=5", "hunter22"),
    "query, amazon": (f"https://b.s3.amazonaws.com/x?X-Amz-Signature={HEX * 4}", HEX),
    "query, google": (f"https://maps.googleapis.com/x?key={MIXED}", MIXED),
    "env": ("export FOO_SECRET=hunter2", "hunter2"),
    "env, quoted": ("FOO_TOKEN='hunter2 and more'", "hunter2"),
    "yaml": ("db:\n  password: hunter2\n", "hunter2"),
    "yaml block": ("passphrase: |\n  hunter2\n", "hunter2"),
    "toml": ('api_key = "hunter2"', "hunter2"),
    "ini": ("[db]\npasswd=hunter2", "hunter2"),
    "option": ("tool --password hunter2 --verbose", "hunter2"),
    "option with a sign": ("tool --api-key=hunter2", "hunter2"),
    "curl": ("curl -u ann:hunter2 https://x", "hunter2"),
    "xml": ("<password>hunter2</password>", "hunter2"),
    "a parameter's tag": ("<parameter=api_key>\nhunter2\n</parameter>", "hunter2"),
    "another parameter's tag": ('<parameter name="password">hunter2</parameter>', "hunter2"),
    "keys and values in tags": ("<arg_key>password</arg_key>\n<arg_value>hunter2</arg_value>", "hunter2"),
    "python": ('connect(host="h", password="hunter2")', "hunter2"),
    "json in text": ('it says {"db_password": "hunter2"} there', "hunter2"),
    "json in json": ('x {"a": "{\\"password\\": \\"hun\\\\\\"ter2\\"}"}', "ter2"),
    "json, cut off": ('{"password": "hunter2', "hunter2"),
    "json with an escape": ('{"p\\u0061ssword": "hunter2"}', "hunter2"),
    "a list in text": ('says {"passwords": ["hunter2", "hunter3"], "n": 1}', "hunter3"),
}


def test_the_tables_have_enough_samples() -> None:
    assert len(SECRETS) >= 60 and len(STAYS) >= 40 and len(NAMES) >= 20


@pytest.mark.parametrize("text, secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_removed_wherever_it_occurs(text: str, secret: str) -> None:
    assert secret in text or "\\u" in text
    for around in ("{}", "see {} there", "line\n{}", '"{}"', "({})"):
        assert secret not in SCRUBBER.text(around.format(text)), around
    in_json = {"messages": [{"role": "tool", "content": f"it is {text}"}]}
    assert secret not in json.dumps(SCRUBBER.value(in_json))
    assert secret not in str(scrub_response(200, {}, [json.dumps(in_json).encode()], [0], "").chunks)


@pytest.mark.parametrize("text, secret", SECRETS.values(), ids=SECRETS)
def test_scrubbing_is_idempotent(text: str, secret: str) -> None:
    once = SCRUBBER.text(f"a {text} b")
    assert SCRUBBER.text(once) == once


NAMES = (
    "password passwd passphrase pwd secret client_secret clientSecret CLIENT-SECRET token access_token accessToken "
    "id_token session_token refresh-token api_key apiKey API-KEY apikey x-api-key x-goog-api-key openai_api_key "
    "secret_key private_key privateKey ssh_key encryption_key aws_secret_access_key db_password dbPassword "
    "DB_PASSWORD user.password connection_string connectionString credentials credential creds authorization "
    "proxy-authorization cookie set-cookie Ocp-Apim-Subscription-Key x-csrf-token auth db_pass smtpPass password2 "
    "password_confirmation passwordHash jwt otp AccountKey SharedAccessKey DD_API_KEY MISTRAL_KEY api_keys "
    "passwords access_tokens secrets GITHUB_TOKEN webhook_secret openai_keys stripeKeys password_b64 secret_base64 "
    "api_key_pem tokenBase64"
).split()
OTHER_NAMES = (
    "max_tokens maxTokens token_count tokens prompt_tokens total_tokens completion_tokens_details tokenizer "
    "bos_token eos_token next_page_token nextToken page_token stop_token key keys primary_key foreign_key "
    "public_key cache_key prompt_cache_key idempotency_key sort_key password_policy passport secretary author "
    "authors authority keyboard monkey pass_rate boarding_pass is_secret has_password requires_token token_type "
    "secret_name access_key_id signature thought_signature id call_id session_id user city description hash commit "
    "seed key_name passenger bypass compass code"
).split()


@pytest.mark.parametrize("name", NAMES)
def test_a_value_under_a_secret_name_is_secret(name: str) -> None:
    assert is_secret_name(name)
    given = {name: "S3cr3t", "list": {name: ["S3cr3t", {"x": "S3cr3t"}]}, "text": json.dumps({name: "S3cr3t"})}
    clean = SCRUBBER.value(given)
    assert "S3cr3t" not in json.dumps(clean) and list(clean) == list(given)
    assert json.loads(clean["text"]) == {name: KEY}
    assert "S3cr3t" not in SCRUBBER.text(f"{name} = S3cr3t0") and "S3cr3t" not in SCRUBBER.text(f'{name}: "S3cr3t"')


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_value_under_another_name_is_kept(name: str) -> None:
    assert not is_secret_name(name)
    given = {name: "Blue", "list": [{name: 5}], "text": f'{name}: Bluebell, "{name}": "x", {name}=4711'}
    assert SCRUBBER.value(given) == given


STAYS: list[Any] = [
    "a sk-skill is fine, and so is scikit's sk-learn-contrib",
    "01234567-89ab-cdef-0123-456789abcdef",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 8).decode(),
    "SKU-HEADPHONES-1 costs 149",
    "call_0123456789abcdef01234567",
    "chatcmpl-9abcDEFghiJKLmnoPQRstuVWXyz",
    "toolu_01A09q90qw90lq917835lq9",
    "req_011CSHoEeqs5C35K2UUqR7Fy",
    "the password policy says twelve letters",
    "a bearer token is needed",
    "bearer authentication, basic authentication, digest authentication",
    "Basic information about passports",
    "the secretary and the author of the token economy",
    "password: string; token?: string | null; apiKey: number",
    "function login(user: string, password: string): boolean",
    "password=self.password, api_key=settings.api_key, token=get_token()",
    'api_key = os.environ["OPENAI_API_KEY"]',
    "const key = process.env.API_KEY",
    "OPENAI_API_KEY=$OPENAI_API_KEY ./run",
    "Authorization: Bearer $TOKEN",
    "api_key: <your key>",
    'password: "${DB_PASSWORD}"',
    'token: "***"',
    "max_tokens=4096, token_count: 12345",
    "https://example.com/a?page=2&limit=50&key_name=blue",
    "https://example.com:8443/path@version",
    "mail me: ann@example.com",
    "2026-06-05T12:00:00Z",
    "http://127.0.0.1:8080/v1",
    "git@github.com:owner/repo.git",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "npm_config_registry and hf_hub_download and key-value stores",
    "key-0 key-1, sl.No, fig_1, do_something, pat_match, gl_texture, sb_admin",
    "eyJ is how base64 of JSON begins",
    "std::vector<token> tokens; auto key = map.find(token);",
    "1763200000000",
    "xoxo, hugs",
    "The quick brown fox: it jumps. Passing: 12, key: left",
    {"max_tokens": 5, "tokens": "x", "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}},
    {"properties": {"api_key": {"type": "string", "description": "The key, as in the mail"}}, "required": ["api_key"]},
    {"properties": {"password": True, "token": {"$ref": "#/$defs/token"}}},
    {"password": {"type": ["string", "null"], "minLength": 8, "pattern": "^[a-z]+$"}},
    {"password": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    {"token": "Hello", "logprob": -0.1, "bytes": [72, 101], "top_logprobs": [{"token": " he", "logprob": -2.0}]},
    {"password": None, "token": False, "secret": "", "has_password": True, "auth": "none", "api_key": 0},
    {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCgIYAhIkYjU2"},
    {"eos_token": "</s>", "bos_token": "<s>", "next_page_token": "CAUQAA"},
    {"headers": {"content-type": "application/json"}, "author": "Ann", "passport": "P1234567"},
]


@pytest.mark.parametrize("value", STAYS, ids=lambda value: str(value)[:40])
def test_text_that_only_resembles_a_secret_is_kept(value: Any) -> None:
    assert SCRUBBER.value(value) == value
    if isinstance(value, str):
        assert SCRUBBER.text(f"so {value}") == f"so {value}"
    else:
        assert SCRUBBER.text("so " + json.dumps(value)) == "so " + json.dumps(value)


def test_a_secret_key_name_is_replaced_and_a_secret_number_becomes_zero() -> None:
    given = {"sk-abcdefghijklmnopqrstuvwx": 1, "password": 12345678, "nested": {"pwd": [1.5, "a", {"b": 2}]}}
    assert SCRUBBER.value(given) == {KEY: 1, "password": 0, "nested": {"pwd": [0, KEY, {"b": 0}]}}
    assert SCRUBBER.text('see {"password": 12345678, "n": 1}') == 'see {"password": 0, "n": 1}'


def test_defaults_and_examples_in_the_schema_of_a_secret_are_removed() -> None:
    schema = {"properties": {"password": {"type": "string", "default": "hunter2", "examples": ["hunter3"]}}}
    assert "hunter" not in json.dumps(SCRUBBER.value(schema))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["password", "city", "api_key", "properties"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_scrubbed_json_has_the_same_shape(value: Any) -> None:
    clean = SCRUBBER.value(value)
    assert SCRUBBER.value(clean) == clean
    assert shape(clean) == shape(value)
    json.loads(SCRUBBER.text(json.dumps(value)))


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return "number" if isinstance(value, int) and not isinstance(value, bool) else type(value).__name__


# -- a known key -------------------------------------------------------------------------------------------------------

OWN = 'ab"c/d+e=fg12345é'


@pytest.mark.parametrize(
    "text",
    [
        OWN,
        json.dumps({"error": OWN}),
        json.dumps({"error": OWN}, ensure_ascii=False),
        json.dumps({"error": OWN}).replace("/", "\\/"),
        json.dumps({"error": json.dumps({"key": OWN})}),
        f"https://h/x?k={quote(OWN, safe='')}",
        f"https://h/x?k={quote(OWN, safe='').lower()}",
        *[f"as {base64.b64encode(('x' * n + OWN + 'y' * n).encode()).decode()}" for n in range(5)],
        f"as {base64.urlsafe_b64encode(('user:' + OWN).encode()).decode()}",
    ],
)
def test_a_known_key_is_found_in_every_spelling(text: str) -> None:
    clean = Scrubber([OWN]).text(text)
    assert KEY in clean and "fg12345" not in clean and "ZmcxMjM0N" not in clean
    found = scrub_response(401, {}, [text.encode()], [0], text, OWN)
    assert "fg12345" not in str(found) and "ZmcxMjM0N" not in str(found)


AWS = "AKIAIOSFODNN7EXAMPLE"
# (known secrets, text, expected text)
OVERLAPS: dict[str, tuple[list[str], str, str]] = {
    "inside a known secret": ([f"front:{AWS}:end77"], f"a front:{AWS}:end77 b", "a [key] b"),
    "at the start of a known secret": ([f"{AWS}:end77"], f"a {AWS}:end77 b", "a [key] b"),
    "at the end of a known secret": ([f"front:{AWS}"], f"a front:{AWS} b", "a [key] b"),
    "around a known secret": (["IOSFODNN7"], f"a {AWS} b", "a [key] b"),
    "begins inside a known secret": (["front:AKIAIOS"], f"a front:{AWS} b", "a [key] b"),
    "ends inside a known secret": (["EXAMPLE:end77"], f"a {AWS}:end77 b", "a [key] b"),
    "two inside a known secret": ([f"x:{AWS}:{AWS}:y77"], f"a x:{AWS}:{AWS}:y77 b", "a [key] b"),
    "inside a password": ([], f'password = "front {AWS} end77" b', 'password = "[key]" b'),
    "a known secret inside a password": (["hunter2"], 'password = "my hunter2 end77" b', 'password = "[key]" b'),
    "directly after a known secret": (["front-77;"], f"a front-77;{AWS} b", "a [key][key] b"),
}


@pytest.mark.parametrize("own, text, expected", OVERLAPS.values(), ids=OVERLAPS)
def test_overlapping_secrets_are_replaced_as_one(own: list[str], text: str, expected: str) -> None:
    assert Scrubber(own).text(text) == expected


# -- secrets in pieces -------------------------------------------------------------------------------------------------


def events(*payloads: Any) -> list[bytes]:
    return [f"data: {json.dumps(each)}\n\n".encode() for each in payloads] + [b"data: [DONE]\n\n"]


def split_text(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def chat(piece: str) -> Any:
    return {"id": "c", "choices": [{"index": 0, "delta": {"content": piece}}]}


def call(piece: str) -> Any:
    return {
        "id": "c",
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}}],
    }


def block(piece: str) -> Any:
    return {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": piece}}


def streamed_text(chunks: list[bytes]) -> str:
    """Return the model's text of all events."""
    lines = b"".join(chunks).decode().splitlines()
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        if isinstance(value, dict):
            value = [each for name, each in value.items() if name not in ("id", "type")]
        for each in value if isinstance(value, list) else ():
            walk(each)

    for line in lines:
        if line.startswith("data: {"):
            walk(json.loads(line[6:]))
    return "".join(found)


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("event", [chat, call, block])
def test_a_secret_streamed_in_small_pieces_is_removed(event: Any, size: int) -> None:
    text = f'{{"password": "hunter2!", "note": "use {OWN[:2]}-sk-{MIXED}", "city": "Oslo"}}'
    pieces = events(*[event(piece) for piece in split_text(text, size)])
    clean, waits = scrub_pieces(pieces, [1] * len(pieces), SCRUBBER)
    assert "hunter2" not in streamed_text(clean) and MIXED not in streamed_text(clean)
    assert '"city": "Oslo"' in streamed_text(clean) and KEY in streamed_text(clean)
    assert sum(waits) == len(pieces) and clean[-1] == b"data: [DONE]\n\n"
    assert scrub_pieces(clean, waits, SCRUBBER) == (clean, waits)


def test_a_secret_across_two_events_is_removed() -> None:
    text = f"use sk-{MIXED} now"
    clean, _ = scrub_pieces(events(chat(text[:12]), chat(text[12:])), [1] * 3, SCRUBBER)
    assert streamed_text(clean) == f"use {KEY} now"


@pytest.mark.parametrize("size", [1, 5, 64])
def test_a_secret_across_network_chunks_is_removed(size: int) -> None:
    whole = b"".join(events(chat("it is "), chat(f"sk-{MIXED} é"), chat("!")))
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    found = scrub_response(200, {}, pieces, [2] * len(pieces), "")
    assert MIXED not in b"".join(found.pieces()).decode() and sum(found.delays) == 2 * len(pieces)
    assert streamed_text(found.pieces()).endswith(f"{KEY} é!")
    assert len(found.chunks) == len(found.delays) > len(pieces) // 3


@given(st.lists(st.binary(max_size=12), max_size=6))
def test_an_answer_without_a_secret_keeps_its_chunks(pieces: list[bytes]) -> None:
    delays = list(range(len(pieces)))
    if not SCRUBBER.find_secrets(b"".join(pieces).decode("utf-8", "surrogateescape")):
        assert scrub_pieces(pieces, delays, SCRUBBER) == (pieces, delays)


# -- cost --------------------------------------------------------------------------------------------------------------

UNITS = [
    *(
        '"password": [',
        '"password":{"a":',
        "password=",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "eyJa.",
        "sk-",
        "Bearer ",
    ),
    *(
        "a",
        " ",
        "\\",
        '"',
        "<password>",
        "--token ",
        "key-",
        "x.",
        "0" * 31 + "-",
        "cookie: ",
        '"password": "\\',
        "1//0",
    ),
    *(
        "MTk4NjIyNDgzNDcx.",
        "token ",
        '{"',
        "dapi",
        "?sig=",
        "-u a:",
        '\\"token\\": \\"',
        "A1",
        "abc8Q~",
        "password: |\n ",
    ),
    *("data: {\n", 'data: {"a": "b"}\n', "Private-Lines: 1\n", "</arg_key>", "[[", "token:" + " " * 30),
]


@pytest.mark.parametrize("unit", selected(UNITS, kept=UNITS[::2]))
def test_scrubbing_takes_bounded_time(unit: str) -> None:
    begun = time.process_time()
    text = unit * (200_000 // len(unit))
    SCRUBBER.text(text)
    scrub_pieces([text.encode()], [0], SCRUBBER)
    assert time.process_time() - begun < 5
