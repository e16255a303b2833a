"""Rules that ARK files must follow, and reports of where a file breaks them."""
