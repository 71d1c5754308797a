"""The choice of an upstream for a model, and the model lists, as tables."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.model_lists import (
    ListedModel,
    merged,
    model_list,
    read_models,
    shown_model,
)
from rightcall.serve.proxy_settings import ModelSettings, ProxySettings, UpstreamSettings
from rightcall.serve.upstream_routes import model_settings, routed

SMALL = UpstreamSettings(url="http://a:1", name="small", models=("qwen*", "llama-3"))
LARGE = UpstreamSettings(url="http://b:1", name="large")
SPARE = UpstreamSettings(url="http://c:1", name="spare")
SETTINGS = ProxySettings(
    upstream=(SMALL, LARGE, SPARE),
    models={
        "claude-opus": ModelSettings(upstream=("spare",)),
        "claude-*": ModelSettings(alias="qwen3", mode="native"),
        "qwen3": ModelSettings(mode="text", format="hermes"),
        "both": ModelSettings(upstream=("large", "small")),
    },
)
ROUTES = {
    "qwen3": ("qwen3", ["small", "large", "spare"]),
    "llama-3": ("llama-3", ["small", "large", "spare"]),
    "Qwen3": ("Qwen3", ["large", "spare"]),
    "anything": ("anything", ["large", "spare"]),
    "": ("", ["large", "spare"]),
    "claude-opus": ("claude-opus", ["spare"]),
    "claude-sonnet": ("qwen3", ["small", "large", "spare"]),
    "both": ("both", ["large", "small"]),
}


@pytest.mark.parametrize("model", [*ROUTES])
def test_a_route_has_the_upstream_model_name_and_ordered_upstreams(model: str) -> None:
    route = routed(SETTINGS, model)
    assert (route.model, [each.name for each in route.upstreams]) == ROUTES[model]


def test_upstreams_that_list_the_model_come_first() -> None:
    assert [each.name for each in routed(SETTINGS, "x", {"spare": {"x"}}).upstreams] == ["spare", "large"]


def test_settings_of_an_alias_override_those_of_its_model() -> None:
    assert model_settings(SETTINGS, "claude-sonnet") == ModelSettings(alias="qwen3", mode="native", format="hermes")
    assert model_settings(SETTINGS, "nobody") == ModelSettings()


def test_a_model_without_an_upstream_is_rejected_with_the_known_models() -> None:
    with pytest.raises(RefusedRequest, match=r"qwen\*, llama-3") as raised:
        routed(ProxySettings(upstream=(SMALL,)), "gpt")
    assert (raised.value.status, raised.value.code) == (400, "model_not_found")


@given(st.text(max_size=400))
def test_every_name_has_a_route_if_one_upstream_accepts_all_models(model: str) -> None:
    assert routed(SETTINGS, model).upstreams


# -- lists -------------------------------------------------------------------------------------------------------------

VLLM = {"object": "list", "data": [{"id": "smollm2", "created": 1794753344, "owned_by": "vllm", "max_model_len": 4096}]}
LLAMA = {
    "models": [{"name": "s.gguf", "model": "s.gguf", "modified_at": ""}],
    "data": [{"id": "s.gguf", "owned_by": "llamacpp", "created": 5, "meta": {"n_ctx": 2048, "n_ctx_train": 8192}}],
}
OLLAMA = {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "modified_at": "2026-11-15T14:00:00.5Z",
                      "size": 7, "digest": "d", "details": {"family": "qwen3"}}]}  # fmt: skip
GEMINI = {"models": [{"name": "models/gemini-3", "inputTokenLimit": 1000, "outputTokenLimit": 10, "version": "3"}]}
ANTHROPIC = {"data": [{"type": "model", "id": "claude-x", "display_name": "X", "created_at": "2026-01-01T00:00:00Z"}]}


def _listed_models() -> list[ListedModel]:
    lists = [("chat", VLLM), ("chat", LLAMA), ("ollama", OLLAMA), ("gemini", GEMINI), ("messages", ANTHROPIC)]
    return [model for api, body in lists for model in read_models(api, body)]  # type: ignore[arg-type]


def test_model_lists_of_every_server_type_are_read() -> None:
    assert [(each.id, each.context, each.output) for each in _listed_models()] == [
        ("smollm2", 4096, None),
        ("s.gguf", 2048, None),
        ("qwen3:8b", None, None),
        ("gemini-3", 1000, 10),
        ("claude-x", None, None),
    ]


def test_the_openai_list_has_both_keys_and_keeps_unknown_fields() -> None:
    body = model_list("openai", _listed_models())
    first = body["data"][0]
    assert first["context_length"] == first["max_model_len"] == 4096 and first["owned_by"] == "vllm"
    ids = [each.id for each in _listed_models()]
    assert [each["id"] for each in body["data"]] == [each["name"] for each in body["models"]] == ids
    assert all(type(each["created"]) is int and each["object"] == "model" for each in body["data"])


def test_the_codex_list_has_no_model_entries() -> None:
    body = model_list("codex", _listed_models())
    assert body["models"] == [] and len(body["data"]) == 5


def test_the_anthropic_list_has_paging_fields_and_dates() -> None:
    body = model_list("messages", _listed_models())
    assert (body["has_more"], body["first_id"], body["last_id"]) == (False, "smollm2", "claude-x")
    assert body["data"][-1] == {**ANTHROPIC["data"][0], "created_at": "2026-01-01T00:00:00Z"}
    assert body["data"][0]["created_at"] == "2026-11-15T14:35:44Z"
    assert model_list("messages", []) == {"data": [], "has_more": False, "first_id": None, "last_id": None}


def test_the_ollama_list_keeps_details_and_show_has_the_tools_capability() -> None:
    body = model_list("tags", _listed_models())
    kept = next(each for each in body["models"] if each["name"] == "qwen3:8b")
    assert (kept["size"], kept["details"]["family"]) == (7, "qwen3")
    shown = shown_model(_listed_models()[0])
    assert "tools" in shown["capabilities"] and shown["model_info"]["unknown.context_length"] == 4096


def test_the_gemini_list_names_the_supported_methods() -> None:
    body = model_list("gemini", _listed_models())
    assert body["models"][3]["inputTokenLimit"] == 1000 and body["models"][3]["version"] == "3"
    assert all("generateContent" in each["supportedGenerationMethods"] for each in body["models"])


def test_merged_lists_have_each_name_once_from_its_first_upstream() -> None:
    lists = {
        "small": [ListedModel(id="qwen3", owner="a"), ListedModel(id="other")],
        "large": [ListedModel(id="qwen3", owner="b"), ListedModel(id="gpt")],
    }
    settings = ProxySettings(
        upstream=(SMALL, LARGE), models={"best": ModelSettings(alias="qwen3"), "g*": ModelSettings(alias="x")}
    )
    found = merged(settings, lists)
    assert [(each.id, each.owner) for each in found] == [("qwen3", "a"), ("gpt", ""), ("best", "a")]


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from("id name model data models created created_at meta n_ctx details".split()),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_an_arbitrary_list_is_read_and_written_in_every_shape(body: Any) -> None:
    found = read_models("chat", body)
    for shape in ("openai", "codex", "messages", "tags", "gemini"):
        json.dumps(model_list(shape, found))
    for each in found:
        json.dumps(shown_model(each))
