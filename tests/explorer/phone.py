"""A phone, for browser tests."""

SLIDERS = "#panel-latents .slider"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def scroll_on_a_phone(page):
    """Open every tab and check that the page is not wider than the phone; end at the last slider of the latents."""
    for tab in ("latents", "mix", "find"):
        page.tap(f"#tab-{tab}")
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    page.tap("#tab-latents")
    page.locator(SLIDERS).last.scroll_into_view_if_needed()
