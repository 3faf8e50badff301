"""Past one process: workers that judge what others have begun, and who starts them."""
