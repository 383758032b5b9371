"""2-D maps of vectors, and plots of models and training. matplotlib is imported when a plot is drawn."""

from firth.maps.attention import plot_attention
from firth.maps.compression import plot_codes, plot_columns, plot_images, plot_parts
from firth.maps.layout_files import save_layout, saved_layout, saved_layouts
from firth.maps.layouts import Layout, layout
from firth.maps.learning import plot_confusion, plot_curve
from firth.maps.parts import TreeCost, plot_positions, plot_tree, tree_cost
from firth.maps.pca import Projection, pca
from firth.maps.plots import (
    plot_analogies,
    plot_block,
    plot_loss,
    plot_map,
    plot_similarity,
    plot_variance,
    plot_zipf,
)
from firth.maps.preserved import Preservation, preservation
from firth.maps.senses import plot_senses

__all__ = [
    "Layout",
    "Preservation",
    "Projection",
    "TreeCost",
    "layout",
    "pca",
    "plot_analogies",
    "plot_attention",
    "plot_block",
    "plot_codes",
    "plot_columns",
    "plot_images",
    "plot_confusion",
    "plot_curve",
    "plot_loss",
    "plot_map",
    "plot_parts",
    "plot_positions",
    "plot_senses",
    "plot_similarity",
    "plot_tree",
    "plot_variance",
    "plot_zipf",
    "preservation",
    "save_layout",
    "saved_layout",
    "saved_layouts",
    "tree_cost",
]
