"""Retries, with botocore's standard mode as the oracle."""

import math
from types import SimpleNamespace

import pytest
from botocore.retries import standard
from botocore.session import get_session
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.aws.client_interface import AwsError, NoResponse, NotSent
from mcp_roundtrip.aws.signed_client import (
    THROTTLING_CODES,
    TRANSIENT_CODES,
    StandardRetries,
    retry_connection,
)

OPERATIONS = {
    "lambda": ["Invoke"],
    "kms": ["Sign", "GenerateMac", "GetPublicKey"],
    "dynamodb": ["GetItem", "PutItem", "UpdateItem", "Query", "TransactWriteItems"],
    "sqs": ["SendMessage", "ChangeMessageVisibility"],
}


def operation_models():
    session = get_session()
    for service, names in OPERATIONS.items():
        model = session.get_service_model(service)
        yield from (model.operation_model(name) for name in names)


MODELS = {f"{model.service_model.service_name}.{model.name}": model for model in operation_models()}

COMMON_CODES = {
    *("InternalFailure", "ExpiredTokenException", "RequestTimeTooSkewed", "AccessDeniedException"),
    *THROTTLING_CODES,
    *TRANSIENT_CODES,
} - {"ReplicatedWriteConflictException"}  # only of the operations whose models have it


def statuses(model, code):
    """Return the HTTP statuses with which AWS can answer: a modelled error has its own."""
    modelled = {shape.name: shape.metadata.get("error") for shape in model.error_shapes}
    if code not in modelled:
        return st.sampled_from([400, 403, 404, 429, 500, 502, 503, 504])
    return st.just((modelled[code] or {}).get("httpStatusCode", 400))


def oracle(model, error, attempt, random):
    """Return botocore's decision: the pause, or None."""
    retryable = standard.StandardRetryConditions(max_attempts=3)
    adapter = standard.RetryEventAdapter()
    detector = standard.ThrottlingErrorDetector(adapter)
    context = standard.RetryContext(
        attempt,
        model,
        {"Error": {"Code": error.code}},
        SimpleNamespace(status_code=error.status, headers={}, content=b""),
    )
    if not retryable.is_retryable(context):
        return None
    backoff = standard.ExponentialBackoff(random=random, throttling_detector=detector)
    return backoff.delay_amount(context)


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_botocore_makes_the_same_decision(name, data):
    model = MODELS[name]
    codes = sorted(COMMON_CODES | {shape.name for shape in model.error_shapes})
    code = data.draw(st.sampled_from(codes))
    error = AwsError(code, status=data.draw(statuses(model, code)))
    attempt = data.draw(st.integers(1, 4))
    share = data.draw(st.integers(0, 2**53 - 1)) / 2**53  # what `kernel_random` returns
    retries = StandardRetries(random=lambda: share)
    assert retries(error, attempt) == oracle(model, error, attempt, lambda: share)


@pytest.mark.parametrize("error", [NotSent("EndpointConnectionError"), NoResponse("ConnectionClosedError")])
def test_a_failed_connection_is_retried_twice_and_an_error_that_no_attempt_can_mend_never(error):
    retries = StandardRetries(random=lambda: 1)
    assert [retries(error, attempt) for attempt in (1, 2, 3)] == [0.05, 0.1, None]
    for final in (AwsError("credentials_unavailable"), AwsError("malformed_answer", status=200)):
        assert retries(final, 1) is None


FAILED, THROTTLED = AwsError("x", status=500), AwsError("ThrottlingException", status=400)


@pytest.mark.parametrize(("left_s", "pause_s"), [(math.inf, 1.0), (1.001, 1.0), (1.0, None), (-1.0, None)])
def test_a_pause_that_would_outlast_the_invocation_is_not_begun(left_s, pause_s):
    retries = StandardRetries(time_left_s=lambda: left_s, random=lambda: 1)
    assert retries(THROTTLED, 1) == pause_s


def test_a_call_that_may_have_been_executed_is_not_repeated():
    assert retry_connection(NotSent("timeout"), 1) == 0
    assert retry_connection(NotSent("timeout"), 2) is None
    for error in (NoResponse("timeout"), NoResponse("SSLError"), FAILED, THROTTLED):
        assert retry_connection(error, 1) is None
