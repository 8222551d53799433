"""One run of the tool: from files to a folder with answers, and from the folder to more of them."""
