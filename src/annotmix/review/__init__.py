"""A web page to review the items of a run: look at the votes, decide, and learn again with the decisions."""
