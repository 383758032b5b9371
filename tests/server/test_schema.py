"""Everything that /openapi.json describes, tried by schemathesis: what is valid and what is not."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

OPERATIONS = [
    *("POST /v1/embeddings", "GET /v1/models", "GET /v1/models/{model}"),
    *("POST /embed", "POST /embed_all", "POST /similarity", "POST /tokenize", "POST /predict", "POST /search"),
    *("GET /health", "GET /info", "GET /metrics"),
]


@pytest.fixture(scope="module")
def described(client):
    found = schemathesis.openapi.from_url(f"{client.base_url}/openapi.json").get_all_operations()
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    return {f"{each.method.upper()} {each.path}": each for each in operations}


def test_every_route_is_tested(described):
    assert sorted(described) == sorted(OPERATIONS)


VALID = [(name, GenerationMode.POSITIVE) for name in OPERATIONS]
INVALID = [(name, GenerationMode.NEGATIVE) for name in OPERATIONS if name.startswith("POST")]  # only a body can be


@pytest.mark.parametrize(("name", "mode"), [*VALID, *INVALID])
def test_responses_match_the_schema(described, name, mode):
    @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=described[name].as_strategy(generation_mode=mode))
    def tried(case):
        # What is well-formed may still be more than a model can do: fewer dimensions, labels, an unknown column.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    tried()
