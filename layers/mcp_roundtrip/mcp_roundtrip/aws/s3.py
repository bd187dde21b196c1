"""An S3 client whose presigned URLs work in every Region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from mcp_roundtrip.aws.calls import client_config

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def s3_client(region: str | None = None, endpoint_url: str | None = None) -> S3Client:
    """An S3 client that signs with version 4 and names the bucket's Region in its URLs.

    Region and endpoint come from the environment, as for every AWS SDK, unless they are given.
    """
    # Left alone, boto3 presigns with version 2, which younger Regions refuse, and for the host of us-east-1,
    # whose redirect the signature does not survive. An upload is answered once all of it is stored.
    signing = Config(signature_version="s3v4", s3={"addressing_style": "virtual"}, read_timeout=10)
    config = client_config().merge(signing)
    return boto3.client("s3", region_name=region, endpoint_url=endpoint_url, config=config)
