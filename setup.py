"""Write the description for package indexes: the README with absolute links. pyproject.toml has all else."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent

RELATIVE = r"(?!https?:|#)([^)\"]+)"


def description(readme: str, repository: str, version: str) -> str:
    """Return the README with links to the files of a release, because an index has only this one."""
    readme = re.sub(rf"\]\({RELATIVE}\)", rf"]({repository}/blob/v{version}/\1)", readme)
    return re.sub(rf'src(set)?="{RELATIVE}"', rf'src\1="{repository}/raw/v{version}/\2"', readme)


if __name__ == "__main__":
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    setup(
        long_description=description(
            (HERE / "README.md").read_text("utf-8"), project["urls"]["Repository"], project["version"]
        ),
        long_description_content_type="text/markdown",
    )
