"""The colors of the page have the contrast that WCAG 2.2 requires (success criteria 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re

import pytest

from mcp_roundtrip.question_ui.page import STYLE

CANVAS = {"light": "#ffffff", "dark": "#121212"}
"""The color of an empty page in Chromium, by color scheme."""


def colors(scheme: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", dark if scheme == "dark" else light))
    return {
        name: value if len(value) == 7 else re.sub("[0-9a-f]", r"\g<0>\g<0>", value)
        for name, value in found.items()
    }


def luminance(color: str) -> float:
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", CANVAS)
def test_texts_and_borders_have_contrast(scheme: str) -> None:
    of, canvas = colors(scheme), CANVAS[scheme]
    assert of.keys() == {"line", "soft", "muted", "bad", "accent", "on-accent"}
    for text, background in (
        *(("muted", canvas), ("bad", canvas), ("accent", canvas), ("on-accent", of["accent"])),
        ("muted", of["soft"]),
    ):
        assert contrast(of[text], background) >= 4.5, text
    assert contrast(of["line"], canvas) >= 3
    assert contrast({"light": "#000000", "dark": "#ffffff"}[scheme], of["soft"]) >= 7
