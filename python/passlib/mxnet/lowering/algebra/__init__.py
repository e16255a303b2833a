"""Linear algebra: matrix products, factorizations, inverses, determinants."""
