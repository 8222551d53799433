"""What a person looks at: charts and self-contained HTML pages."""
