"""Densities of distributions, draws that need rejection, and counts."""
