"""The names of fields with secrets: `db_password`, `dbPassword`, `DB-PASSWORD`, `x-goog-api-key`.

A name is split into words, and its last word decides: `password_policy` and `max_tokens` name no secret. The names of
properties in a schema are treated alike; their values are schemas, which `is_schema` recognises.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_LONGEST = 120
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]++")

# Endings of secret names, joined into one word: `client_secret`, `clientSecret` and `clientsecret` are the same.
_ENDS = tuple(
    "password passwd passphrase passcode passwort pwd secret credential credentials creds authorization cookie token "
    "apikey secretkey privatekey accesskey authkey signingkey encryptionkey decryptionkey sshkey masterkey accountkey "
    "sharedkey sharedaccesskey storagekey servicekey subscriptionkey hmackey deploykey licensekey webhookkey clientkey "
    "adminkey appkey applicationkey rolekey sessionkey rsakey aeskey pgpkey gpgkey hostkey integrationkey ingestkey "
    "consumerkey connectionstring connstring connstr seedphrase recoveryphrase backupcode phpsessid jsessionid".split()
)
_WHOLE = frozenset("auth bearer jwt otp cvv cvc mnemonic".split())
# Companies whose name before `key` makes a secret name: `openai_key`.
_COMPANIES = tuple(
    "openai anthropic claude mistral cohere groq gemini azure aws stripe datadog sendgrid twilio mailgun replicate "
    "deepseek xai perplexity together fireworks huggingface openrouter algolia heroku cloudflare sentry github".split()
)
# Words before `pass` that make it a password: a boarding pass and the pass of a test are none.
_PASS = frozenset("db user smtp imap mail email mysql pg postgres redis mongo admin root ftp ldap proxy http".split())
_PASS_ENDS = frozenset("pass pw".split())
# Words after the deciding word: the value is still the secret.
_BEHIND = frozenset(
    "value text raw plain plaintext b64 base64 pem hash digest old new current confirm confirmation repeat".split()
)
_QUESTIONS = frozenset(
    "is has had needs need requires require required show hide use uses allow enable enabled".split()
)
# Words before `token` that make it a text token, a count of them, or a page token.
_TEXT_TOKENS = frozenset(
    "max min num n nb count total prompt completion input output cached cache reasoning bos eos bot eot pad unk cls "
    "sep mask special stop start end begin first next last prev previous page continuation sync cursor per new sampled "
    "text audio image byte word think thinking tool extra added nextpage forced".split()
)


def split_name(name: str) -> list[str]:
    """Split a name in camel case, or with separators, into lower-case words. Only its first 120 characters are used."""
    return [word.lower() for word in _CAMEL.split(name[:_LONGEST]) if word]


def _significant_words(name: str) -> list[str]:
    """Return the words of a name without digits at their ends (`key2` is `key`), and without final words such as
    `value` and `b64` that do not change its meaning."""
    split = split_name(name)
    words = [word for word in (each if each in _BEHIND else each.rstrip("0123456789") for each in split) if word]
    while len(words) > 1 and words[-1] in _BEHIND:
        words.pop()
    return words


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Return whether the name alone says that its value is a secret, such as `db_password`; False for `has_password`,
    `max_token` and other names whose words show a flag or a count."""
    words = _significant_words(name)
    if not words or words[0] in _QUESTIONS:
        return False
    before, last = ["", *words][-2:]
    if last == "token":
        return before not in _TEXT_TOKENS
    if last in _PASS_ENDS:
        return not before or before in _PASS
    joined = "".join(words)
    if last in ("key", "keys") and joined.removesuffix(last).endswith(_COMPANIES):
        return True
    return last in _WHOLE or joined.endswith(_ENDS) or _is_plural_of_secret_name(joined)


def _is_plural_of_secret_name(joined: str) -> bool:
    """Return whether a name, written as one word, is the plural of a secret name, such as `apikeys`. A name that ends
    in `tokens` is one only after a credential word, as `accesstokens`: other tokens are text tokens."""
    single = joined[:-1] if joined.endswith("s") else ""
    return (
        single != "token"
        and single.endswith(_ENDS)
        and (not single.endswith("token") or _is_credential_word(single[:-5]))
    )


def _is_credential_word(owner: str) -> bool:
    """Return whether a word before `tokens` makes them credentials, such as `access`."""
    return owner.endswith(("access", "refresh", "auth", "api", "bearer", "session", "id", "security"))


_KINDS = frozenset("string number integer boolean object array null".split())
_SAYS = frozenset("$ref anyOf oneOf allOf not enum const items properties pattern format description title".split())
HOLDS_SCHEMAS = frozenset("properties patternProperties $defs definitions dependentSchemas".split())


def is_schema(value: Any) -> bool:
    """Return whether a value is an object that is a JSON Schema: its `type` is a JSON type or a list of them, or it has
    no `type` but a keyword of schemas such as `enum`."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kind is not None and all(isinstance(each, str) and each.lower() in _KINDS for each in kinds):
        return True
    return kind is None and not _SAYS.isdisjoint(value)


# Texts in place of a secret that are not replaced: a type, a word such as `null`, a variable.
_PLACEHOLDER = re.compile(
    r"(?i)(?:(?:str(?:ing)?|int(?:eger)?|num(?:ber)?|bool(?:ean)?|float|object|array|any|unknown|optional|required|null|none"
    r"|nil|undefined|true|false|hidden|redacted|masked|basic|bearer|digest|oauth2?|jwt|apikey)"
    r"(?:[ ]?[|?\[][^\n]{0,60}+)?"
    r"|\*{2,64}+|\.{3}|x{3,64}+|-{1,8}+|<[^<>\n]{0,80}+>|\$\{[^{}\n]{0,80}+\}|\$[A-Z_][A-Z0-9_]{0,60}+|%[A-Z_]{1,60}+%"
    r"|\{{1,2}[^{}\n]{0,80}+\}{1,2}|\[[a-z -]{1,40}+\]|(?:os\.environ|os\.getenv|getenv|process\.env|env\.)[^\n]{0,80}+"
    r"|redacted-(?:[a-z]{1,20}+-){1,4}[0-9a-f]{8})"
).fullmatch


def is_placeholder(text: str) -> bool:
    """Return whether a text stands in place of a secret: it is empty, a type, a word such as `null`, a variable, or
    `***`."""
    return not text.strip() or _PLACEHOLDER(text.strip()) is not None
