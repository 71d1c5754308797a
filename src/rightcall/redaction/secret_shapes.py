"""The patterns of secrets, as data: the prefix of each, and the characters that follow.

Every repeat is bounded and possessive, so a rule takes linear time on any text. A rule is tried only if one of its
`hints` occurs in the lower-cased text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

import msgspec


def _accept_any(text: str) -> bool:
    """Return True: the check of a `SecretShape` whose pattern is enough."""
    return True


class SecretShape(msgspec.Struct, frozen=True):
    """A pattern of secrets: the texts that hint at it, a check of the match (`sure`), and the group to replace
    (`part`)."""

    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    sure: Callable[[str], bool] = _accept_any
    part: int = 0


def start_pattern(not_behind: str) -> str:
    r"""Return a pattern for the start of a secret: a position that does not follow one of these characters. In JSON
    text it may follow an escape such as `\n`, whose letter is not part of the secret."""
    plain, escaped = rf"(?<![{not_behind}\\])", r"(?<=\\[nrtbf/\"\\])|(?<=\\u[0-9a-fA-F]{4})"
    return rf"(?:{plain}|(?<=\\)(?![nrtbfu/\"\\])|{escaped})"


# -- tokens with a known prefix ----------------------------------------------------------------------------------------

# (prefix in lower case, pattern). Words that only begin alike are excluded by length and alphabet.
_TOKENS: tuple[tuple[str, str], ...] = (
    (
        "sk-",
        r"(?:sk|pk|rk)-(?:(?:proj|ant|svcacct|admin|or|lf)-[\w-]{12,512}+|(?=[\w-]{0,40}\d)[\w-]{16,512}+|[A-Za-z0-9]{16,512}+)",
    ),
    ("sk_", r"(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,250}+"),
    ("sk_", r"sk_[0-9a-f]{32,128}+"),  # ElevenLabs
    ("rck_", r"rck_[\w-]{20,80}+"),  # our own
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{16,200}+"),
    ("gh", r"gh[opsur]_[A-Za-z0-9]{20,255}+"),
    ("github_pat_", r"github_pat_\w{20,255}+"),
    ("gl", r"gl(?:pat|dt|rt|ft|cbt|ptt|soat|agent|oas|imt|ffct)-[\w-]{16,300}+"),
    ("gr1348941", r"GR1348941[\w-]{16,60}+"),
    ("xox", r"xox[abeoprs]-[\w-]{10,512}+"),
    ("xapp-", r"xapp-\d{1,2}-[\w-]{8,512}+"),
    ("hooks.slack.com/", r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[\w/-]{12,300}+"),
    ("webhooks/", r"(?<=/api/webhooks/)\d{10,24}+/[\w-]{20,200}+"),
    ("a", r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("gzxivyxdz", r"F[wQ]oGZXIvYXdz[\w+/=-]{20,4000}+"),
    ("iqojb3jpz2lu", r"IQoJb3JpZ2lu[\w+/=-]{20,4000}+"),
    ("aiza", r"AIza[\w-]{30,60}+"),
    ("ya29.", r"ya29\.[\w.-]{16,2000}+"),
    ("1//0", r"1//0[\w-]{20,300}+"),
    ("gocspx-", r"GOCSPX-[\w-]{16,80}+"),
    ("q~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,40}+"),  # a client secret of Azure's
    ("npm_", r"npm_[A-Za-z0-9]{30,80}+"),
    ("pypi-age", r"pypi-AgE[\w-]{20,1000}+"),
    ("hf_", r"hf_[A-Za-z0-9]{20,255}+"),
    ("api_org_", r"api_org_[A-Za-z0-9]{30,80}+"),
    ("gsk_", r"gsk_[A-Za-z0-9]{20,200}+"),
    ("csk-", r"csk-[A-Za-z0-9]{20,200}+"),
    ("xai-", r"xai-[A-Za-z0-9]{20,200}+"),
    ("r8_", r"r8_[A-Za-z0-9]{20,80}+"),
    ("pplx-", r"pplx-[A-Za-z0-9]{20,100}+"),
    ("tgp_v1_", r"tgp_v1_[\w-]{20,200}+"),
    ("fw_", r"fw_[A-Za-z0-9]{20,80}+"),
    ("nvapi-", r"nvapi-[\w-]{20,200}+"),
    ("lsv2_", r"lsv2_(?:pt|sk)_\w{20,200}+"),
    ("tvly-", r"tvly-[\w-]{16,200}+"),
    ("do", r"do[opr]_v1_[0-9a-f]{32,128}+"),
    ("hrku-", r"HRKU-[\w-]{20,200}+"),
    ("sk", r"SK[0-9a-f]{32}(?![0-9a-zA-Z])"),  # Twilio
    ("sg.", r"SG\.[\w-]{16,40}+\.[\w-]{16,80}+"),
    ("key-", r"key-[0-9a-f]{32}(?![0-9a-zA-Z])"),  # Mailgun
    ("-", r"[0-9a-f]{32}-(?:[0-9a-f]{8}-[0-9a-f]{8}|us\d{1,2})(?![0-9a-zA-Z-])"),  # Mailgun, Mailchimp
    (":aa", r"\d{8,10}:AA[\w-]{30,40}+"),  # Telegram
    (".", r"[MNO][A-Za-z\d_-]{23,27}+\.[\w-]{6}\.[\w-]{27,50}+"),  # Discord
    ("shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{24,64}+"),
    ("sq0", r"sq0[a-z]{3}-[\w-]{22,80}+"),
    ("eaaa", r"EAAA[\w-]{56,80}+"),
    ("dapi", r"dapi[0-9a-f]{32}(?:-\d)?(?![0-9a-zA-Z])"),
    ("hv", r"hv[sbr]\.[\w-]{20,400}+"),
    ("lin_", r"lin_(?:api|oauth|wh)_\w{20,100}+"),
    ("secret_", r"secret_[A-Za-z0-9]{40,60}+"),
    ("ntn_", r"ntn_[A-Za-z0-9]{30,80}+"),
    ("fig", r"fig[dou][_r][\w-]{30,120}+"),
    ("pmak-", r"PMAK-[0-9a-f]{16,40}+-[0-9a-f]{24,60}+"),
    ("nr", r"NR(?:AK|JS|AL|II|IQ|RA|SP|BR)-[A-Za-z0-9]{16,80}+"),
    ("nral", r"[0-9a-f]{36}NRAL"),
    ("sntry", r"sntry[su]_[\w=+/-]{30,400}+"),
    ("dp.", r"dp\.(?:pt|st|sa|ct|scim|audit)\.[\w.]{30,80}+"),
    ("pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.-]{24,100}+"),
    ("gl", r"gl(?:sa|c)_[\w+/=-]{32,500}+"),  # Grafana
    ("sl.", r"sl\.[\w-]{60,2000}+"),  # Dropbox
    ("atatt3", r"ATATT3[\w=-]{60,400}+"),
    ("atbb", r"ATBB[A-Za-z0-9]{24,80}+"),
    ("atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,100}+"),
    ("age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{40,80}+"),
    ("sb", r"sb(?:p_[0-9a-f]{30,80}+|_secret_[\w-]{20,80}+)"),  # Supabase
    ("nfp_", r"nfp_[A-Za-z0-9]{30,60}+"),
    ("dckr_", r"dckr_[a-z]{3}_[\w-]{20,80}+"),
    ("rubygems_", r"rubygems_[0-9a-f]{30,80}+"),
    ("pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{60,70}+"),  # Airtable
    ("pat-", r"pat-[a-z]{2}\d{1,2}-[0-9a-f-]{30,40}+"),  # HubSpot
    ("ops_eyj", r"ops_eyJ[\w+/=-]{60,4000}+"),
    ("fm2_", r"fm[12]_[\w+/=-]{40,4000}+"),
    ("eyj", r"eyJ[\w-]{8,4000}+\.[\w-]{8,16000}+(?:\.[\w-]{0,8000}+){1,3}"),  # JSON Web Tokens, signed and encrypted
)


def _token_shape() -> SecretShape:
    """Return one `SecretShape` that matches the tokens of all known prefixes."""
    written = "|".join([pattern for _, pattern in _TOKENS])
    return SecretShape(
        re.compile(start_pattern("A-Za-z0-9_") + f"(?:{written})", re.A), tuple({hint for hint, _ in _TOKENS})
    )


# -- what is sent in headers and addresses -----------------------------------------------------------------------------


def _is_basic_credential(text: str) -> bool:
    """Return whether a text is the base64 of bytes with a colon, as of `user:password`; False for one that is not
    base64."""
    try:
        return b":" in base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_")
    except (binascii.Error, ValueError):
        return False


def _is_bearer_token(text: str) -> bool:
    """Return whether a text after `Bearer` is long, or has a digit: "bearer authentication" is a phrase."""
    return len(text) >= 16 or (len(text) >= 8 and any(char.isdigit() for char in text))


def _has_digit(text: str) -> bool:
    """Return whether a text has a digit; user names of URLs without one are no tokens."""
    return any(char.isdigit() for char in text)


RULES: dict[str, SecretShape] = {
    "private-key": SecretShape(
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[^-]++|-(?!----)){0,20000}+(?:-----END [A-Z0-9 ]{0,60}-----)?"
            r"|---- BEGIN SSH2 [A-Z ]{0,40}PRIVATE KEY ----[^-]{0,20000}+(?:---- END [A-Z0-9 ]{0,60} ----)?"
            r"|Private-Lines: \d{1,4}(?:(?:\r?\n|\\n)[A-Za-z0-9+/=]{1,128}+){1,400}"
        ),
        ("private key", "private-lines"),
    ),
    "token": _token_shape(),
    "bearer": SecretShape(
        re.compile(start_pattern("A-Za-z0-9_") + r"(?i:bearer)[ ]{1,4}([\w.~+/-]{8,4000}+=*+)"),
        ("bearer",),
        _is_bearer_token,
        1,
    ),
    "basic": SecretShape(
        re.compile(start_pattern("A-Za-z0-9_") + r"(?i:basic)[ ]{1,4}([A-Za-z0-9+/_-]{6,4000}+={0,2}+)"),
        ("basic",),
        _is_basic_credential,
        1,
    ),
    "digest": SecretShape(
        re.compile(start_pattern("A-Za-z0-9_") + r"(?i:digest)[ ]{1,4}(username=[^\r\n]{8,2000}+)"), ("digest",), part=1
    ),
    "credentials": SecretShape(
        re.compile(r"://([^\s/:@\\\"'<>]{0,100}+:(?!//)[^\s/\\\"'<>]{1,200})@"), ("://",), part=1
    ),
    "user": SecretShape(
        re.compile(r"://([A-Za-z0-9_-]{16,200}+)@"), ("://",), _has_digit, 1
    ),  # DSNs, and tokens as users
    "oracle": SecretShape(
        re.compile(r"jdbc:oracle:\w{1,10}:([^\s/@:]{1,100}+/[^\s@\"'\\]{1,200}+)@"), ("jdbc:oracle",), part=1
    ),
    "query": SecretShape(
        re.compile(
            r"(?i)[?&](?:sig|key|x-(?:amz|goog)-(?:signature|credential|security-token)|hapikey|sharedaccesssignature)"
            r"=([^\s&#\"'<>\\]{8,4000}+)"
        ),
        ("?", "&"),
        part=1,
    ),
    "user-option": SecretShape(
        re.compile(
            r"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{1,2}\\{0,3}[\"']?[^\s:\"'/\\]{1,100}+:([^\s\"'\\]{3,200}+)"
        ),
        ("-u ", "-u=", "-user "),
        part=1,
    ),
}
