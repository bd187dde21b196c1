"""Parse YAML in C. sam parses the template seven times per deployment, in Python."""

import yaml

if yaml.__with_libyaml__:
    vars(yaml)["SafeLoader"] = yaml.CSafeLoader
