"""The page, its token, and the list of models."""

from __future__ import annotations

import base64

from serving import serving

KEY = "a-key-of-twenty-signs"


def test_the_page_does_not_contain_the_token(client, api):
    """Every user of the machine can load the page; only the user who started the server knows the token."""
    for path in ("/", "/index.html", f"/?token={client.settings.token}", "/?token=wrong"):
        page = client.get(path)
        assert page.status_code == 200 and "default-src 'self'" in page.headers["content-security-policy"]
        assert client.settings.token not in page.text + str(page.headers) and "set-cookie" not in page.headers
        assert (page.headers["referrer-policy"], page.headers["cache-control"]) == ("no-referrer", "no-store")
    for headers in ({}, {"X-Firth-Token": "wrong"}):
        refused = client.get("/api/models", headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "invalid_token")
    assert client.get(f"/api/models?token={client.settings.token}").status_code == 403  # it would be in histories
    assert client.get("/api/models", headers=api()).status_code == 200


def test_the_page_contains_the_token_if_a_key_protects_it(places):
    with serving(models={"words": places["words"]}, key=KEY) as own:
        assert own.get("/").status_code == 401
        basic = base64.b64encode(f"me:{KEY}".encode()).decode()
        assert own.settings.token in own.get("/", headers={"Authorization": f"Basic {basic}"}).text


def test_unknown_addresses_and_methods_refer_to_the_documentation(client):
    unknown = client.get("/v1/embedding").json()["error"]
    assert unknown["code"] == "not_found" and "/docs" in unknown["message"]
    wrong = client.get("/v1/embeddings")
    assert wrong.status_code == 405 and wrong.json()["error"]["message"].startswith("GET ")


def test_models_are_listed_with_their_abilities(client, api):
    models = {model["name"]: model for model in client.get("/api/models", headers=api()).json()["models"]}
    assert set(models) == {"words", "counts", "bert", "gpt", "tuned", "static", "table"}
    assert {"embeds", "vectors", "fills"} <= set(models["words"]["can"]) and "fills" not in models["counts"]["can"]
    assert {"embeds", "contextual", "attends"} <= set(models["bert"]["can"])
    assert models["words"]["tables"]["words"]["dim"] == 16 and "word vectors" in models["words"]["summary"]
    unknown = client.get("/api/models/nobody", headers=api())
    assert unknown.status_code == 404 and "words, counts, bert" in unknown.json()["error"]
