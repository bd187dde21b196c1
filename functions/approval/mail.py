"""E-mail through Amazon SES."""

import os


def send(recipient: str, subject: str, text: str) -> None:
    """Send a plain text message from APPROVAL_SENDER, an identity that SES has verified."""
    import boto3
    from botocore.config import Config  # most requests send no e-mail

    config = Config(connect_timeout=1, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    boto3.client("sesv2", config=config).send_email(
        FromEmailAddress=os.environ["APPROVAL_SENDER"],
        Destination={"ToAddresses": [recipient]},
        Content={"Simple": {"Subject": {"Data": subject}, "Body": {"Text": {"Data": text}}}},
    )
