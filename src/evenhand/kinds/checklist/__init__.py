"""The kind `checklist`: criteria that one output meets or does not."""
