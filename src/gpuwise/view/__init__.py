"""Results in words: each verb's result becomes a `Page` of blocks, which `render` writes as text, HTML or Markdown."""

from gpuwise.view.catalogue import Change, Pool, changes_page, check_page, name_page, offers_page, pools, pools_page
from gpuwise.view.explanation import explanation_page
from gpuwise.view.page import Block, Caution, Cell, Chart, Column, Fact, Facts, Page, Table, Text, facts_table, stated
from gpuwise.view.ranking import ranking_page
from gpuwise.view.workload import workload_page

__all__ = [
    "Block",
    "Caution",
    "Cell",
    "Change",
    "Chart",
    "Column",
    "Fact",
    "Facts",
    "Page",
    "Pool",
    "Table",
    "Text",
    "changes_page",
    "check_page",
    "explanation_page",
    "facts_table",
    "name_page",
    "offers_page",
    "pools",
    "pools_page",
    "ranking_page",
    "stated",
    "workload_page",
]
