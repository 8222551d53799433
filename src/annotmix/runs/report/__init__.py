"""The report: charts and a self-contained HTML page."""
