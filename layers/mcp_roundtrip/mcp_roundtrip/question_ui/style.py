"""The style sheet of the question page, and the source expression that allows it."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --line: #767b82; --soft: #f3f4f6; --muted: #555b63; --bad: #b3120c;
  --accent: #0b57d0; --on-accent: #fff }
@media (prefers-color-scheme: dark) { :root { --line: #8b929b; --soft: #26292e; --muted: #b0b7c0;
  --bad: #ffb4ab; --accent: #a8c7fa; --on-accent: #062e6f } }
html { background: Canvas; color: CanvasText }
* { box-sizing: border-box }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 38rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; line-height: 1.35; margin: 0 0 1rem; overflow-wrap: anywhere; white-space: pre-line }
section { border-top: 1px solid var(--line); padding-top: 1.25rem; margin-top: 1.25rem }
p { margin: 0 0 .5rem; overflow-wrap: anywhere; white-space: pre-line }
.note, .hint { color: var(--muted); font-size: .92rem }
.field { margin: 0 0 1.4rem; padding: 0; border: 0; min-width: 0 }
.label, legend { display: block; font-weight: 600; padding: 0; margin-bottom: .25rem; overflow-wrap: anywhere;
  white-space: pre-line; max-width: 100% }
legend { float: left; width: 100% } legend + * { clear: both } input + select { margin-top: .5rem }
.optional { font-weight: 400; color: var(--muted) }
input[type=text], input[type=email], input[type=url], input[type=date], input[type=datetime-local],
textarea, select { font: inherit; color: inherit; background: Field; width: 100%; min-height: 2.75rem;
  padding: .5rem .6rem; border: 1px solid var(--line); border-radius: .4rem }
textarea { min-height: 5.5rem; field-sizing: content; max-height: 24rem }
.invalid { border-left: .3rem solid var(--bad); padding-left: .8rem }
.error { color: var(--bad); font-weight: 600 }
.summary { border: 2px solid var(--bad); border-radius: .4rem; padding: .9rem 1rem; margin: 1rem 0 }
.summary h2 { margin-bottom: .4rem } .summary ul { margin: 0; padding-left: 1.2rem }
.summary a { color: var(--bad) }
.options { max-height: 24rem; overflow-y: auto }
.option { display: flex; gap: .6rem; align-items: flex-start; padding: .5rem 0; overflow-wrap: anywhere }
.option input { flex: none; width: 1.25rem; height: 1.25rem; margin: .12rem }
.option span { min-width: 0 }
.address { background: var(--soft); border-radius: .4rem; padding: .6rem .8rem }
.address code { overflow-wrap: anywhere }
a { color: var(--accent) }
.actions { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1.5rem 0 .75rem }
button { font: inherit; min-height: 2.75rem; padding: .5rem 1.25rem; border: 1px solid var(--line);
  border-radius: .4rem; background: var(--soft); color: inherit }
button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent);
  font-weight: 600 }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
@media (max-width: 30rem) { .actions button { flex: 1 1 100% } }
"""

STYLE_SOURCE: Final = f"'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
"""The source expression of `STYLE` for `style-src` (CSP Level 3)."""
