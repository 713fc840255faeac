"""SQL over datasets: views of a revision, queries in a locked-down child, previews, saved queries."""
