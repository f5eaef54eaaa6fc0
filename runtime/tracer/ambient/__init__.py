"""What is known before anything is traced: which trace this thread is in, where it stands, what objects are."""
