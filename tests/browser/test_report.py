"""The report in a real browser: it opens offline, sorts, filters, folds, and everybody can read it."""

import re
import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

pytest.importorskip("playwright", reason="playwright is not installed (pip install -e '.[dev]' brings it)")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium", path="/usr/bin")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium (apt-get install chromium brings it)")

QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
LAPTOP, PHONE = (1280, 800), (390, 844)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


@pytest.fixture(scope="module")
def report(finished: Path) -> Path:
    return finished / "report.html"


class Opened:
    """The report in a window of its own, and what the browser complained of and asked for."""

    def __init__(self, browser: Browser, report: Path, size: tuple[int, int] = LAPTOP, **settings: Any) -> None:
        viewport = {"width": size[0], "height": size[1]}
        self.context = browser.new_context(viewport=viewport, **settings)  # type: ignore[arg-type]
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(report.as_uri())


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Opened]:
    window = Opened(browser, report)
    yield window
    window.context.close()


@pytest.fixture
def page(opened: Opened) -> Page:
    return opened.page


# offline, and without a word of complaint ---------------------------------------------------------------------------


def test_nothing_is_asked_for_and_nothing_complained_of(opened: Opened, report: Path) -> None:
    for fold in opened.page.locator("details:not([open]) > summary").all():
        if fold.is_visible():
            fold.click()
    opened.page.wait_for_load_state("networkidle")
    assert opened.requests == [report.as_uri()]
    assert opened.complaints == []


def test_a_script_that_is_not_ours_does_not_run(page: Page, opened: Opened) -> None:
    """The policy of the page allows one script by its hash; so a title could not bring one either."""
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'stolen = 1'}))")
    assert page.evaluate("typeof stolen") == "undefined"
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)


# sorting and filtering -----------------------------------------------------------------------------------------------


def longest_table(page: Page) -> Locator:
    """The table with the most rows among those of the report, unfolded."""
    names = page.evaluate(
        """[...document.querySelectorAll('#tables section')]
           .sort((a, b) => b.querySelectorAll('tbody tr').length - a.querySelectorAll('tbody tr').length)[0].id"""
    )
    section = page.locator(f"#{names}")
    fold = section.locator("summary")
    if fold.count():
        fold.click()
    return section


def column(section: Locator, index: int) -> list[float | str | None]:
    """What the rows of a column are sorted by: numbers, words, or None where the cell is empty."""
    cells: list[list[str | None]] = section.locator(f"tbody tr td:nth-child({index + 1})").evaluate_all(
        "cells => cells.map(cell => [cell.dataset.value ?? null, cell.textContent.trim()])"
    )
    return [float(raw) if raw is not None else text or None for raw, text in cells]


def headers(section: Locator, numeric: bool) -> list[int]:
    """The columns that hold numbers only, or words only, and not the same in all rows."""
    rows = section.locator("tbody tr").count()
    kind = float if numeric else str
    there = [[each for each in column(section, i) if each is not None] for i in range(section.locator("th").count())]
    return [
        i
        for i, cells in enumerate(there)
        if all(isinstance(each, kind) for each in cells) and len(set(cells)) > 1 and rows > 1
    ]


def as_people_sort(cell: float | str | None) -> Any:
    """Numbers within words count as numbers, and capitals do not matter."""
    if not isinstance(cell, str):
        return cell
    return [(part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", cell.casefold())]


@pytest.mark.parametrize("numeric", [True, False], ids=["numbers", "words"])
@pytest.mark.parametrize("press", ["click", "Enter", " "])
def test_a_header_sorts_both_ways(page: Page, numeric: bool, press: str) -> None:
    section = longest_table(page)
    chosen = max(headers(section, numeric), key=lambda each: len(set(column(section, each))))
    header = section.locator("th").nth(chosen)
    before = column(section, chosen)
    there = [cell for cell in before if cell is not None]
    missing = [None] * (len(before) - len(there))
    for direction, falling in (("ascending", False), ("descending", True), ("ascending", False)):
        header.locator("button").focus()
        header.locator("button").click() if press == "click" else page.keyboard.press(press)
        assert column(section, chosen) == sorted(there, key=as_people_sort, reverse=falling) + missing
        assert header.get_attribute("aria-sort") == direction
    others = [each.get_attribute("aria-sort") for each in section.locator("th").all()]
    assert others.count("none") == len(others) - 1


def test_missing_cells_stay_last_and_rows_stay_whole(page: Page) -> None:
    """In rows made for it: decimals, a large and negative numbers, a blank, and words beside them."""
    page.evaluate(
        """() => {
            const body = document.querySelector('#tables table.data').tBodies[0];
            const width = body.rows[0].cells.length;
            const row = (value, name) => `<tr><td${value && ` data-value="${value}"`}>${value}</td><td>${name}</td>`
                + '<td></td>'.repeat(width - 2) + '</tr>';
            body.innerHTML = row('0.3', 'd') + row('', 'none') + row('10', 'e') + row('-1e-3', 'b') + row('-2', 'a')
                + row('0.25', 'c');
            document.querySelector('#tables details')?.setAttribute('open', '');
        }"""
    )
    table = page.locator("#tables table.data").first
    button = table.locator("th button").first
    for expected in ([*"abcde", "none"], [*"edcba", "none"]):
        button.click()
        assert table.locator("tbody tr td:nth-child(2)").all_text_contents() == expected


def test_a_filter_keeps_the_rows_that_have_all_its_words(page: Page) -> None:
    section = longest_table(page)
    rows = section.locator("tbody tr")
    every = [text.lower() for text in rows.all_text_contents()]
    words = section.locator("tbody tr").last.locator("td").all_text_contents()
    wanted = [word for word in words if word.strip()][:2]
    box = section.get_by_role("searchbox")
    box.fill(" ".join(wanted))
    parts = " ".join(wanted).lower().split()
    assert 0 < visible(rows) < len(every)
    assert visible(rows) == sum(all(part in text for part in parts) for text in every)
    assert section.locator("output").text_content() == f"{visible(rows)} of {len(every)} rows"
    box.fill("no such row anywhere")
    assert visible(rows) == 0
    box.fill("")
    assert visible(rows) == len(every)


def visible(rows: Locator) -> int:
    return int(rows.evaluate_all("rows => rows.filter(row => row.checkVisibility()).length"))


# pictures and folds --------------------------------------------------------------------------------------------------


def test_every_figure_is_drawn(page: Page) -> None:
    drawings = page.locator("figure svg")
    assert drawings.count() == 9
    for drawing in drawings.all():
        box = drawing.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 100
        painted = drawing.evaluate(
            """svg => [...svg.querySelectorAll('path')].filter(path => {
                const box = path.getBoundingClientRect();
                return box.width + box.height > 0 && path.getTotalLength() > 0;
            }).length"""
        )
        assert painted >= 10
        # glyphs and markers stand once in the file and are used where they are needed: a wrong id would leave holes
        lost = drawing.evaluate(
            """svg => [...svg.querySelectorAll('use')]
                .map(use => use.getAttribute('href') ?? use.getAttribute('xlink:href'))
                .filter(name => !document.querySelector(name))"""
        )
        assert lost == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_have_the_ground_of_the_page(browser: Browser, report: Path, scheme: str) -> None:
    window = Opened(browser, report, color_scheme=scheme)
    drawing = imread(BytesIO(window.page.locator(".drawing").first.screenshot()))[:, :, :3]
    page = imread(BytesIO(window.page.screenshot(clip={"x": 0, "y": 0, "width": 8, "height": 8})))[0, 0, :3]
    assert np.abs(np.median(drawing, axis=(0, 1)) - page).max() < 0.06
    away = np.abs(drawing - page).max(axis=2)
    assert 0.01 < (away > 0.5).mean() < 0.5, "ink stands out from it"
    window.context.close()


def test_a_phone_shows_whole_figures(browser: Browser, report: Path) -> None:
    window = Opened(browser, report, PHONE)
    for drawing in window.page.locator("figure svg").all():
        box = drawing.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE[0]
        inside = drawing.evaluate("svg => svg.parentElement.scrollWidth <= svg.parentElement.clientWidth")
        assert inside
    window.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_that_goes_on_has_a_shade_at_that_side(browser: Browser, report: Path, scheme: str) -> None:
    window = Opened(browser, report, PHONE, color_scheme=scheme)
    section = longest_table(window.page)
    region = section.locator(".scroll")
    assert region.evaluate("region => region.scrollWidth > region.clientWidth")

    def shaded() -> tuple[bool, bool]:
        """Whether the outermost pixels differ from those further in, at the left and at the right."""
        picture = imread(BytesIO(region.screenshot()))[60:, :, :3]
        ground = np.median(picture, axis=(0, 1))
        ends = (np.median(picture[:, at], axis=0) for at in (1, -2))
        left, right = (bool(np.abs(end - ground).max() > 0.05) for end in ends)
        return left, right

    assert shaded() == (False, True)
    region.evaluate("region => region.scrollLeft = 40")
    assert shaded() == (True, True)
    region.evaluate("region => region.scrollLeft = region.scrollWidth")
    assert shaded() == (True, False)
    window.context.close()


def test_a_fold_opens_and_closes(page: Page) -> None:
    fold = page.locator("#artifacts details").first
    row = fold.locator("tbody tr").first
    assert not row.is_visible()
    fold.locator("summary").click()
    assert row.is_visible()
    fold.locator("summary").press("Enter")
    assert not row.is_visible()


def test_contents_are_folded_on_a_phone_only(browser: Browser, report: Path) -> None:
    window = Opened(browser, report, PHONE)
    contents = window.page.locator("#contents")
    link = contents.locator("a").first
    assert not link.is_visible()
    contents.locator("summary").click()
    assert link.is_visible()
    link.click()
    assert not link.is_visible()  # it would hide what was asked for
    window.page.set_viewport_size({"width": 1280, "height": 800})
    assert link.is_visible()
    window.context.close()


def test_everything_is_there_without_scripts(browser: Browser, report: Path) -> None:
    window = Opened(browser, report, java_script_enabled=False)
    assert window.page.locator("#contents a").first.is_visible()
    assert window.page.locator("th button, input").count() == 0
    for section in window.page.locator("main > section").all():
        assert section.is_visible()
    fold = window.page.locator("#artifacts details").first
    fold.locator("summary").click()
    assert fold.locator("tbody tr").first.is_visible()
    window.context.close()


def test_paper_shows_what_is_folded(page: Page) -> None:
    page.emulate_media(media="print")
    for row in page.locator("main details tbody tr:first-child").all():
        assert row.is_visible()
    assert not page.locator(".contents").is_visible()


# for every eye, on every screen --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_axe_has_nothing_to_say(browser: Browser, report: Path, scheme: str, size: tuple[int, int]) -> None:
    window = Opened(browser, report, size, color_scheme=scheme)
    window.page.evaluate(
        """() => {
            for (const fold of document.querySelectorAll('details')) fold.open = true;
            for (const row of document.querySelectorAll('tbody tr:nth-child(n + 6)')) row.remove();  // like the others
        }"""
    )
    found = Axe().run(window.page)
    assert found.violations_count == 0, found.generate_report()
    window.context.close()


@pytest.mark.parametrize("width", [360, PHONE[0], 768, LAPTOP[0]])
def test_only_tables_scroll_sideways(browser: Browser, report: Path, width: int) -> None:
    window = Opened(browser, report, (width, 800))
    window.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert window.page.evaluate("document.documentElement.scrollWidth") <= width
    for wide in window.page.locator(".scroll").all():
        assert wide.get_attribute("tabindex") == "0"
        assert wide.get_attribute("role") == "region"
    labels = window.page.locator("[role=region]").evaluate_all("all => all.map(each => each.ariaLabel)")
    assert all(labels)
    assert len(set(labels)) == len(labels)
    window.context.close()
