"""Every endpoint from the service's own OpenAPI description, with whatever schemathesis makes of it: never a 500.

The same few examples each time; `make fuzz` makes other ones, for ten minutes or so (MIRADA_FUZZ_EXAMPLES an endpoint).
"""

from __future__ import annotations

import os

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import one_of
from schemathesis import GenerationMode

from mirada.serving.app import build
from serving.conftest import settings_for

EXAMPLES = int(os.environ.get("MIRADA_FUZZ_EXAMPLES", "0"))
LIMITS = {"max_tokens": 30, "max_texts": 4, "max_body_bytes": 20_000, "max_beam_size": 4}


@pytest.fixture(scope="module")
def schema(folders):
    """The description of a service with two models and small limits."""
    app, _ = build(settings_for({name: folders[name] for name in ("luong", "classic")}, **LIMITS))
    with TestClient(app):
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


def test_nothing_breaks_the_service(schema):
    for operation in schema.get_all_operations():
        break_it(operation.ok())


def break_it(operation) -> None:
    """Ask one endpoint for whatever its description allows, and for what it does not."""

    @settings(
        max_examples=EXAMPLES or 2,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def broken(case) -> None:
        answer = case.call()
        assert answer.status_code < 500 or answer.status_code == 503, (operation.label, answer.text)
        assert answer.headers["x-request-id"]
        if answer.status_code >= 400:
            assert set(answer.json()) == {"error", "id"}

    broken()
