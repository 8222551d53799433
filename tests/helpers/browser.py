"""Headless Chromium, driven by selenium with the driver that is installed beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

__all__ = ["Browser", "Keys"]


class Browser:
    """The few things that tests do with a page."""

    def __init__(self, chromium: str, driver: str, profile: Path):
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
        for flag in (*flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        # a driver that is named is never looked for, and never downloaded
        self.driver = webdriver.Chrome(options, Service(driver))

    def start(self) -> None:
        """Forget what was."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.screen(1200, 900)
        self.media()
        self.home = "file:"

    def open(self, path: Path, fragment: str = "") -> None:
        """Show a file, and wait until its script is through."""
        self.visit(path.as_uri() + fragment)

    def visit(self, address: str, home: str = "file:") -> None:
        """Show a page, and wait until its script is through; requests to `home` are its own."""
        self.home = home
        self.driver.get(address)
        self.wait("return document.documentElement.dataset.ready === 'yes'")

    def screen(self, width: int, height: int) -> None:
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip

    def media(self, kind: str = "", scheme: str = "light") -> None:
        # without smooth scrolling: a click on what still moves would miss it
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.command("Emulation.setEmulatedMedia", media=kind, features=features)

    def command(self, name: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, parameters)

    def script(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def wait(self, code: str, *arguments: Any) -> None:
        """Wait until a script returns true."""
        WebDriverWait(self.driver, 20, poll_frequency=0.02).until(lambda _: self.script(code, *arguments))

    def find(self, css: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        """The text of every element, as it is shown."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.trim())", css
        )

    def press(self, *keys: str) -> None:
        """Keys for whatever has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def focused(self) -> str:
        return self.script("return document.activeElement.innerText")

    def complaints(self) -> list[str]:
        """What the console says, of any level."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for, apart from the page itself and what is in it."""
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        asked = (e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent")
        own = [*asked, *self.script("return performance.getEntriesByType('resource').map((e) => e.name)")]
        return [url[:100] for url in own if not url.startswith(("data:", "blob:", "about:", self.home))]

    def quit(self) -> None:
        self.driver.quit()
