import os
import re
import tempfile
import urllib.error
import urllib.request
from contextlib import ExitStack, closing
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services import ministack as ministack_installation
from mcp_roundtrip_tools.run.services.aws_endpoint import Credentials
from mcp_roundtrip_tools.run.services.ministack import Emulator, Installation
from mcp_roundtrip_tools.template.model import Storage
from support.project import ROOT

KEY = {
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
}
INDEX = {
    "IndexName": "by-id",
    "KeySchema": KEY["KeySchema"],
    "Projection": {"ProjectionType": "ALL"},
    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
}
STORAGE = Storage({"Orders": {**KEY, "GlobalSecondaryIndexes": [INDEX]}}, ("local-reports",))
CREDENTIALS = Credentials.random()


@pytest.fixture(scope="module")
def emulator():
    with closing(Emulator(print)) as found:
        found.declare(STORAGE)
        yield found


@pytest.fixture(scope="module")
def url(emulator):
    guarded = CREDENTIALS.guard(emulator.respond)
    with closing(HttpServer(guarded).start()) as server:
        yield server.url


@pytest.fixture(scope="module")
def connect(url):
    """Return a boto3 client of a service, with these options in place of the usual ones."""
    with ExitStack() as stack:
        usual = {"endpoint_url": url, "region_name": "us-east-1", "aws_secret_access_key": "any"}
        usual["aws_access_key_id"] = CREDENTIALS.access_key_id
        yield lambda name, **options: stack.enter_context(closing(boto3.client(name, **{**usual, **options})))


@pytest.fixture(scope="module")
def dynamodb(connect):
    return connect("dynamodb")


def test_a_declared_table_and_its_index_exist(dynamodb):
    dynamodb.put_item(TableName="Orders", Item={"id": {"S": "1"}, "raw": {"B": b"\x00\xff"}})
    found = dynamodb.query(
        TableName="Orders",
        IndexName="by-id",
        KeyConditionExpression="id = :id",
        ExpressionAttributeValues={":id": {"S": "1"}},
    )
    assert found["Items"] == [{"id": {"S": "1"}, "raw": {"B": b"\x00\xff"}}]


def test_a_table_declared_later_is_created_and_others_keep_their_data(emulator, dynamodb):
    dynamodb.put_item(TableName="Orders", Item={"id": {"S": "stored"}})
    emulator.declare(Storage({**STORAGE.tables, "Later": KEY}, STORAGE.buckets))
    dynamodb.put_item(TableName="Later", Item={"id": {"S": "1"}})
    assert "Item" in dynamodb.get_item(TableName="Orders", Key={"id": {"S": "stored"}})


def test_it_answers_more_requests_than_ministack_may_have_descriptors():
    request = Request("POST", "/", (("x-amz-target", "DynamoDB_20120810.ListTables"),), b"{}")
    usual, most = getrlimit(RLIMIT_NOFILE)
    few = len(os.listdir("/dev/fd")) + 40  # 1,024 are usual, on macOS 256
    with closing(Emulator(print)) as limited:
        setrlimit(RLIMIT_NOFILE, (few, most))
        try:
            limited.respond(request)
        finally:
            setrlimit(RLIMIT_NOFILE, (usual, most))
        assert all(limited.respond(request).status == 200 for _ in range(few))


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_a_presigned_url_works_without_further_credentials(connect, version):
    connect("s3").put_object(Bucket="local-reports", Key="report", Body=b"done")
    signer = connect("s3", config=Config(signature_version=version))
    link = signer.generate_presigned_url("get_object", Params={"Bucket": "local-reports", "Key": "report"})
    from_a_page = urllib.request.Request(link, headers={"Sec-Fetch-Site": "cross-site"})
    with urllib.request.urlopen(from_a_page) as response:
        assert response.read() == b"done"
    other = link.replace(CREDENTIALS.access_key_id, "ASIAOTHER")
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        urllib.request.urlopen(other)
    refused.value.close()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"aws_access_key_id": "foreign"}, "UnrecognizedClientException"),
        ({"config": Config(signature_version=UNSIGNED)}, "MissingAuthenticationTokenException"),
    ],
)
def test_requests_with_other_credentials_or_none_are_refused(connect, options, code):
    with pytest.raises(ClientError, match=f"{code}.*AWS_ACCESS_KEY_ID"):
        connect("dynamodb", **options).list_tables()


@pytest.mark.parametrize("header", ["Origin", "Sec-Fetch-Site"])
def test_a_signed_request_of_a_web_page_is_refused(url, header):
    credential = f"Credential={CREDENTIALS.access_key_id}/20260101/us-east-1/dynamodb/aws4_request"
    headers = {"Authorization": f"AWS4-HMAC-SHA256 {credential}, Signature=0"}
    targeted = {**headers, "X-Amz-Target": "DynamoDB_20120810.ListTables"}
    with urllib.request.urlopen(urllib.request.Request(url, b"{}", targeted)) as response:
        assert b"Orders" in response.read()
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        urllib.request.urlopen(urllib.request.Request(url, b"{}", {**targeted, header: "same-origin"}))
    refused.value.close()


def test_credentials_differ_from_run_to_run():
    assert len({Credentials.random().access_key_id for _ in range(9)}) == 9


def test_a_socket_is_in_tmp_if_the_path_of_temporary_files_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}{'x' * 100}")
    request = Request("GET", "/", (("authorization", CREDENTIALS.access_key_id),), b"")
    with closing(Emulator(print)) as found:
        assert found.respond(request).status != 501


def test_a_failed_installation_of_ministack_is_tried_once_and_reported_at_each_call(tmp_path, monkeypatch):
    log: list[str] = []
    monkeypatch.setattr(ministack_installation, "REQUIREMENTS", ("./no-such-folder",))
    missing = Emulator(log.append, Installation(log.append, tmp_path / "ministack", tmp_path / "python"))
    request = Request("GET", "/", (), b"")
    assert [missing.respond(request).status for _ in range(2)] == [501, 501]
    assert [line.partition(" ")[0] for line in log] == ["Installing", "[ministack]", "[ministack]"]
    assert "no-such-folder" in log[2]
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_reported_with_the_variable_of_its_folder(tmp_path):
    log: list[str] = []
    tmp_path.joinpath("cache").touch()
    Emulator(log.append, Installation(log.append, tmp_path / "cache/a", tmp_path / "python")).respond(
        Request("GET", "/", (), b"")
    )
    assert "XDG_CACHE_HOME" in log[1]


def test_ministack_is_installed_once_and_only_for_a_template_that_needs_it(tmp_path, monkeypatch):
    commands: list[list[str]] = []

    def install(folder: Path, command: list[str]) -> None:
        commands.append(command)
        folder.mkdir(parents=True)

    monkeypatch.setattr(ministack_installation, "install_packages", install)
    (tmp_path / "python").touch()  # of an installation that was interrupted
    installation = Installation(print, tmp_path / "cache/ministack", tmp_path / "python")
    emulator = Emulator(print, installation)
    emulator.declare(Storage())
    assert commands == []
    emulator.declare(STORAGE)
    emulator.declare(STORAGE)
    assert installation.packages() == tmp_path / "cache/ministack"
    assert len(commands) == 1


def test_the_makefile_installs_the_same_version():
    [pinned] = re.findall(r"^MINISTACK_PIN +:= (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(ministack_installation.REQUIREMENTS) <= set(pinned.split())
