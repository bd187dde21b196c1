import json
from datetime import UTC, datetime
from types import SimpleNamespace

import boto3
import pytest
from botocore.exceptions import NoRegionError
from botocore.stub import Stubber

from mcp_roundtrip_tools.deploy import account as releases
from mcp_roundtrip_tools.deploy.account import MAX_RELEASES, Account, Release
from mcp_roundtrip_tools.deploy.environments import Refused

TEMPLATE = "Parameters: {AuthMode: {Type: String}, Password: {Type: String, NoEcho: true}}"
FIRST, SECOND = Release(TEMPLATE, {"AuthMode": "none"}), Release("two", {"AuthMode": "none"})


def test_the_newest_release_that_differs_from_the_running_one_is_previous(tmp_path):
    releases.save_release(tmp_path, "default", FIRST)
    releases.save_release(tmp_path, "default", SECOND)
    assert releases.previous_release(tmp_path, "default", SECOND) == FIRST
    assert releases.previous_release(tmp_path, "default", None) == SECOND


def test_a_release_is_not_saved_twice_in_a_row_and_old_ones_are_deleted(tmp_path):
    assert releases.save_release(tmp_path, "default", FIRST) == releases.save_release(
        tmp_path, "default", FIRST
    )
    for number in range(MAX_RELEASES + 3):
        newest = releases.save_release(tmp_path, "default", Release(str(number), {}))
    assert len(list(newest.parent.iterdir())) == MAX_RELEASES
    assert releases.read_release(newest) == Release(str(MAX_RELEASES + 2), {})


def test_without_an_earlier_release_of_the_environment_the_rollback_is_refused(tmp_path):
    releases.save_release(tmp_path, "prod", FIRST)
    releases.save_release(tmp_path, "default", SECOND)
    with pytest.raises(Refused, match="release of default"):
        releases.previous_release(tmp_path, "default", SECOND)


@pytest.mark.parametrize("text", ["", "{}"])
def test_a_file_that_is_no_release_is_named(tmp_path, text):
    path = releases.save_release(tmp_path, "default", FIRST)
    path.write_text(text)
    with pytest.raises(Refused, match=path.name):
        releases.previous_release(tmp_path, "default", None)


def account(template=TEMPLATE, **stack):
    """Return an account with one stack, whose template boto3 has parsed if it is JSON."""
    stack = {"StackStatus": "UPDATE_COMPLETE", **stack}
    cloudformation = SimpleNamespace(
        describe_stacks=lambda StackName: {"Stacks": [stack]},
        get_template=lambda StackName, TemplateStage: {"TemplateBody": template},
    )
    return Account(lambda service: cloudformation)


def test_what_runs_is_its_template_and_all_its_parameters_that_aws_shows():
    values = {"AuthMode": "none", "Password": "****"}
    parameters = [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]
    assert releases.running_release(account(Parameters=parameters), "s") == FIRST
    template = {"Parameters": {"AuthMode": {}, "Password": {"NoEcho": "true"}}}
    parsed = releases.running_release(account(template, Parameters=parameters), "s")
    assert parsed == Release(json.dumps(template), {"AuthMode": "none"})
    assert releases.running_release(account("Resources: {}"), "s") == Release("Resources: {}", {})
    assert releases.running_release(account(StackStatus="REVIEW_IN_PROGRESS"), "s") is None


def test_a_stack_whose_deployment_did_not_end_has_no_url():
    output = {"OutputKey": "McpUrl", "OutputValue": "https://t.example/mcp"}
    assert releases.endpoint(account(Outputs=[output]), "s") == "https://t.example/mcp"
    with pytest.raises(Refused, match="McpUrl"):
        releases.endpoint(account(Outputs=[]), "s")


def test_the_url_of_a_stack_that_cannot_be_read_is_refused_with_the_reason():
    def clients(service):
        raise NoRegionError

    with pytest.raises(Refused, match=f"stack s .*{NoRegionError()}"):
        releases.endpoint(Account(clients), "s")


@pytest.mark.parametrize("region", ["eu-wets-1", "eu west 1"])
def test_a_region_in_which_aws_cannot_be_reached_is_no_fault_of_the_credentials(region):
    session = boto3.Session("x", "x", region_name=region)
    with pytest.raises(Refused, match="Region"):
        Account(lambda _: session.client("sts", endpoint_url="http://127.0.0.1:9")).check_credentials()


def test_the_command_for_a_stack_that_cannot_be_deployed_names_its_region():
    cloudformation = boto3.client("cloudformation", "eu-west-1")
    stack = {"StackName": "s", "CreationTime": datetime.now(UTC), "StackStatus": "UPDATE_ROLLBACK_FAILED"}
    with Stubber(cloudformation) as aws:
        aws.add_response("describe_stacks", {"Stacks": [stack]})
        command = "aws cloudformation continue-update-rollback --stack-name s --region eu-west-1"
        with pytest.raises(Refused, match=command):
            Account(lambda service: cloudformation).check_stack("s")


DENIED = ("AccessDenied", "not authorized to perform: cloudformation:DeleteStack")


@pytest.mark.parametrize("refusal", [DENIED, None], ids=["denied", "failed"])
def test_a_failed_first_deployment_that_cannot_be_deleted_is_refused(refusal):
    cloudformation = boto3.client("cloudformation", "eu-west-1")
    stack = {"StackName": "s", "CreationTime": datetime.now(UTC)}
    with Stubber(cloudformation) as aws:
        aws.add_response("describe_stacks", {"Stacks": [{**stack, "StackStatus": "ROLLBACK_COMPLETE"}]})
        if refusal:
            aws.add_client_error("delete_stack", *refusal)
        else:
            aws.add_response("delete_stack", {})
            aws.add_response("describe_stacks", {"Stacks": [{**stack, "StackStatus": "DELETE_FAILED"}]})
        with pytest.raises(Refused, match=DENIED[1] if refusal else "DELETE_FAILED"):
            Account(lambda service: cloudformation).delete_failed_creation("s")
