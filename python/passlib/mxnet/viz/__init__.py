"""Descriptions of symbols, with MXNet's names: a table, and a drawing by graphviz."""

from __future__ import annotations

from passlib.mxnet.viz.network import plot_network
from passlib.mxnet.viz.summary import print_summary

__all__ = ["plot_network", "print_summary"]
