"""The papermill driver and the build of the book: the `regretbook` command."""
