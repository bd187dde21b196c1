"""Run the SAM transform of a template in sam's own interpreter, as `sam validate` and CloudFormation do.

`sam validate --lint` reads the source and cannot see errors of the transform and of its output.

Usage: python transform.py TEMPLATE [Name=Value ...]  ->  the CloudFormation template, YAML, on stdout
"""

import sys

from samcli.commands._utils.template import get_template_data
from samcli.lib.translate.sam_template_validator import SamTemplateValidator
from samtranslator.translator.managed_policy_translator import ManagedPolicyLoader


class NoPolicies(ManagedPolicyLoader):
    """A policy loader without policies, because SAM creates no role here. The original calls IAM."""

    def __init__(self) -> None:
        pass

    def load(self) -> dict[str, str]:
        return {}


def main(template: str, *overrides: str) -> None:
    validator = SamTemplateValidator(
        get_template_data(template),
        NoPolicies(),
        region="eu-west-1",
        parameter_overrides=dict(override.split("=", 1) for override in overrides),
    )
    print(validator.get_translated_template_if_valid())


if __name__ == "__main__":
    main(*sys.argv[1:])
