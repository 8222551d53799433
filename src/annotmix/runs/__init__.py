"""One run of the tool: from files to a folder with results, and commands on such a folder."""
