"""SQL over datasets: queries in a child process, previews of their rows, and saved queries."""
