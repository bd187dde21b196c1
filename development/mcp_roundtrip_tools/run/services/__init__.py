"""The services that functions call under `make run`.

Lambda's Invoke and SQS's SendMessage lead to this runner's processes, which no emulator can start. KMS is
`kms.FakeKms`: moto hashes digests again and ignores key states; ministack accepts messages over 4,096 bytes
and has no DryRun (tests/tools/run/test_kms.py compares the two). DynamoDB and S3 are ministack's: moto loses
updates among threads.
"""
