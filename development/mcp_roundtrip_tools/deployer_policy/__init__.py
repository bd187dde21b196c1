"""The policy of the role with which CloudFormation deploys template.yaml: `make deployer-policy`."""
