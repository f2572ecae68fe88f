"""Models in pages: a folder of static files that any server can hand out (`eshkol export web`).

`pages.py` chooses the page for a model, `site.py` writes its folder; `eshkol.js` runs models that `ek.export_wasm` has
written, and `pages/` holds what the pages consist of.
"""

KINDS = ("digits", "text", "plain")  # of pages
