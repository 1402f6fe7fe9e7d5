from .html import render_page as render_page, write_page as write_page
from .page import Page as Page, Prose as Prose, Section as Section
from .plots import plot_forms as plot_forms, plot_paired as plot_paired
