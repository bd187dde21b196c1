"""AWS services behind the interfaces of `state` and `tasks`. Only this package imports boto3."""
