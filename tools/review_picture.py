"""Take docs/images/review.png: `annotmix review` on the run of `annotmix demo`, in headless Chromium.

python tools/review_picture.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.browser import Browser  # noqa: E402
from helpers.review_run import served  # noqa: E402

from annotmix.runs.demo import run_demo  # noqa: E402


def main() -> None:
    """Make the run, decide a few items, and take the picture."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        raise SystemExit("This needs chromium and chromedriver.")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder)
        if not (out / "run").exists():
            run_demo(out, print, 0)
        browser = Browser(chromium, driver, Path(folder) / "profile")
        with served(out / "run") as (address, session):
            browser.start()
            browser.screen(1440, 860)
            browser.visit(address, address)
            for n in range(24):
                key = (
                    "?"
                    if n == 9
                    else browser.script("return document.querySelector('.consensus kbd')?.innerText")
                )
                before = browser.find("#name").text
                browser.press(key or "s")
                browser.wait("return document.querySelector('#name').innerText !== arguments[0]", before)
            time.sleep(1)
            browser.script("document.activeElement.blur(); scrollTo(0, 0)")
            browser.driver.save_screenshot(str(ROOT / "docs" / "images" / "review.png"))
            browser.driver.get("about:blank")
            assert session.decisions.current()
        browser.quit()


if __name__ == "__main__":
    main()
