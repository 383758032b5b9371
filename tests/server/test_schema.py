"""Everything that /openapi.json describes, tried by schemathesis: what is valid and what is not."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

OPERATIONS = [
    *("POST /v1/embeddings", "GET /v1/models", "GET /v1/models/{model}"),
    *("POST /embed", "POST /embed_all", "POST /similarity", "POST /tokenize", "POST /predict", "POST /search"),
    *("GET /health", "GET /info", "GET /metrics"),
]


@pytest.fixture(scope="module")
def described(client):
    found = schemathesis.openapi.from_url(f"{client.base_url}/openapi.json").get_all_operations()
    return {f"{each.ok().method.upper()} {each.ok().path}": each.ok() for each in found}


def test_every_route_is_tested(described):
    assert sorted(described) == sorted(OPERATIONS)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_responses_match_the_schema(described, name, mode):
    if mode is GenerationMode.NEGATIVE and not name.startswith("POST"):
        return  # there is nothing to be wrong

    @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=described[name].as_strategy(generation_mode=mode))
    def tried(case):
        # What is well-formed may still be more than a model can do: fewer dimensions, labels, an unknown column.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    tried()
